package deopt_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestTwoWaysToALinkLoser requires that no call in a function is shown as certain if it led to a stub that has lost the link register and another
// call in the function, through a register, may have led there. The program uses each of the two calls.
func TestTwoWaysToALinkLoser(t *testing.T) {
	at := slices.IndexFunc(livetest.Crosses, func(c livetest.Cross) bool { return c.Arch == "arm64" })
	cross := livetest.Crosses[at]
	object := livetest.Object(t, 19, mustAbs(t, "testdata/arm64ways/f.ll"), "-O2", "-relocation-model=pic")
	for _, entry := range []string{"pointer", "f"} {
		for _, number := range []string{"0", "1"} {
			flags := []string{"-O1", "-nostdlib", "-static", "-fno-omit-frame-pointer", "-fasynchronous-unwind-tables", "-Wl,-z,separate-code",
				"-DENTRY=" + entry, "-DNUMBER=" + number, object}
			program := cross.Build(t, flags, mustAbs(t, "testdata/arm64ways/host.c"))
			core, err := ptrace.OpenCore(cross.Core(t, program), ptrace.CoreOptions{Exe: program})
			require.NoError(t, err)
			defer core.Close()
			v, err := deopt.Frames(core, deopt.Options{})
			require.NoError(t, err)
			require.Equal(t, []string{"boom registers", "stub cfi"}, certainFrames(v, "boom", "stub", "f", "run", "start"), "%s %s", entry, number)
			require.False(t, v.Threads[0].End.Complete)
		}
	}
}
