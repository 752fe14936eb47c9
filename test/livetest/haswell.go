package livetest

import (
	"testing"

	"golang.org/x/sys/cpu"
)

// RunHaswell returns the command line that runs a program compiled with -march=haswell: the program itself if this processor has the required
// features, otherwise QEMU with the program.
func RunHaswell(t testing.TB, program string, args ...string) []string {
	t.Helper()
	if x := &cpu.X86; x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasFMA && x.HasPOPCNT {
		return append([]string{program}, args...)
	}
	return append([]string{Tool(t, "qemu-x86_64"), "-cpu", "max", program}, args...)
}
