package livetest

import "testing"

// I686 holds the flags with which clang compiles for 32-bit x86 on Linux. Without SSE2, code computes in wider floats than LLVM IR specifies.
var I686 = []string{"--target=i686-linux-gnu", "-msse2", "-idirafter", "/usr/include/x86_64-linux-gnu"}

// RunI686 returns the command line that runs a 32-bit x86 program under QEMU, because not every kernel accepts 32-bit system calls.
func RunI686(t testing.TB, program string, args ...string) []string {
	t.Helper()
	return append([]string{Tool(t, "qemu-i386"), program}, args...)
}
