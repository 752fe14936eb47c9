package livetest

import (
	"path/filepath"
	"testing"
)

// Without is the beginning of a command for which the kernel has no such system calls, as testdata/standins/without.c knows them.
func Without(t testing.TB, calls ...string) []string {
	t.Helper()
	return append(append([]string{CBinary(t, filepath.Join("standins", "without.c"))}, calls...), "--")
}

// UnderYama is the beginning of a command that runs without CAP_SYS_PTRACE as if Yama were on. What that stands in for, and what
// not, is said in testdata/standins/yama.c.
func UnderYama(t testing.TB) []string {
	t.Helper()
	return []string{Tool(t, "setpriv"), "--bounding-set", "-sys_ptrace", CBinary(t, filepath.Join("standins", "yama.c"))}
}
