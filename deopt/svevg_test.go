package deopt_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestFrameOfVectorLengthOnARM64 requires that the callers of a function that saves SVE vectors are found if the vector length is known. The CFA
// of that function depends on the length. A core from QEMU does not contain the length.
func TestFrameOfVectorLengthOnARM64(t *testing.T) {
	livetest.Slow(t)
	at := slices.IndexFunc(livetest.Crosses, func(c livetest.Cross) bool { return c.Arch == "arm64" })
	object := livetest.Object(t, 19, mustAbs(t, "testdata/svevg/f.ll"), "-O2", "-mattr=+sve", "-relocation-model=pic")
	program := livetest.Crosses[at].Build(t, []string{"-O1", "-static", object}, mustAbs(t, "testdata/svevg/host.c"))
	cmd := exec.Command(livetest.Tool(t, "prlimit"), "--core=unlimited", livetest.Tool(t, "qemu-aarch64"), "-cpu", "max,sve-default-vector-length=32", program)
	cmd.Dir = t.TempDir()
	require.Error(t, cmd.Run())
	cores, err := filepath.Glob(filepath.Join(cmd.Dir, "qemu_*.core"))
	require.NoError(t, err)
	require.Len(t, cores, 1)
	core, err := ptrace.OpenCore(cores[0], ptrace.CoreOptions{Exe: program})
	require.NoError(t, err)
	defer core.Close()
	functions := func() (names []string, end string) {
		v, err := deopt.Frames(core, deopt.Options{})
		require.NoError(t, err)
		for _, f := range v.Threads[0].Frames {
			if slices.Contains([]string{"stop", "f", "entry", "main"}, f.Function) {
				names = append(names, f.Function)
			}
		}
		return names, v.Threads[0].End.Reason
	}
	names, end := functions()
	require.Equal(t, []string{"stop", "f"}, names, end)
	require.Contains(t, end, "the core does not contain the thread's vector length (NT_ARM_SVE)")

	core.Threads()[0].Registers.SetUint(machine.ARM64VG, 4)
	names, end = functions()
	require.Equal(t, []string{"stop", "f", "entry", "main"}, names, end)
}
