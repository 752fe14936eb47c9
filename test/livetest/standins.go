package livetest

import (
	"path/filepath"
	"testing"
)

// Without returns the beginning of a command that runs without some system calls, given by their names in testdata/standins/without.c.
func Without(t testing.TB, calls ...string) []string {
	t.Helper()
	return append(append([]string{CBinary(t, filepath.Join("standins", "without.c"))}, calls...), "--")
}

// UnderYama returns the beginning of a command that runs without CAP_SYS_PTRACE as if Yama were active. testdata/standins/yama.c documents the parts
// that it simulates.
func UnderYama(t testing.TB) []string {
	t.Helper()
	return []string{Tool(t, "setpriv"), "--bounding-set", "-sys_ptrace", CBinary(t, filepath.Join("standins", "yama.c"))}
}
