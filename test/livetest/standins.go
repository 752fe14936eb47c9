package livetest

import (
	"path/filepath"
	"testing"
)

// Without returns the beginning of a command line that runs a command in which some system calls fail. Their names are those in
// testdata/standins/without.c.
func Without(t testing.TB, calls ...string) []string {
	t.Helper()
	return append(append([]string{CBinary(t, filepath.Join("standins", "without.c"))}, calls...), "--")
}

// UnderYama returns the beginning of a command line that runs a command without CAP_SYS_PTRACE, with Yama's restrictions simulated.
// testdata/standins/yama.c documents the parts that it simulates.
func UnderYama(t testing.TB) []string {
	t.Helper()
	return []string{Tool(t, "setpriv"), "--bounding-set", "-sys_ptrace", CBinary(t, filepath.Join("standins", "yama.c"))}
}
