package deopt_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

// arm64Program builds the program of testdata/arm64patches.
func arm64Program(t *testing.T, version int) (cross livetest.Cross, program string, m *ir.Module) {
	t.Helper()
	at := slices.IndexFunc(livetest.Crosses, func(c livetest.Cross) bool { return c.Arch == "arm64" })
	cross = livetest.Crosses[at]
	module := mustAbs(t, "testdata/arm64patches/f.ll")
	m, err := ir.ParseFile(module)
	require.NoError(t, err)
	object := livetest.Object(t, version, module, "-O2", "-relocation-model=pic")
	program = cross.Build(t, []string{"-O1", "-fno-omit-frame-pointer", "-static", "-Wl,-z,separate-code", object}, mustAbs(t, "testdata/arm64patches/host.c"))
	return cross, program, m
}

// TestCallerOfStubWithoutCFIOnARM64 requires that the caller of a stub without CFI is found by the stub's instructions, which save the link
// register.
func TestCallerOfStubWithoutCFIOnARM64(t *testing.T) {
	cross, program, m := arm64Program(t, 19)
	core, err := ptrace.OpenCore(cross.Core(t, program, "call saves"), ptrace.CoreOptions{Exe: program})
	require.NoError(t, err)
	defer core.Close()
	v, err := deopt.Frames(core, deopt.Options{Modules: []*ir.Module{m}})
	require.NoError(t, err)
	require.Equal(t, []string{"handler cfi", "stub_saves cfi", "main code"}, certainFrames(v, "handler", "stub_saves", "main"))
}

// certainFrames lists the frames of the named functions that are not guesses, with their rules.
func certainFrames(v *deopt.View, functions ...string) (list []string) {
	for _, f := range v.Threads[0].Frames {
		if slices.Contains(functions, f.Function) && f.Guess() == "" && f.Frame.Guess == "" {
			list = append(list, f.Function+" "+string(f.Rule))
		}
	}
	return list
}

// TestPatchedShadowsOnARM64 requires that a function with a patched shadow is found in arm64 cores. The patches are calls, jumps to stubs with
// and without CFI, and traps.
func TestPatchedShadowsOnARM64(t *testing.T) {
	livetest.Slow(t)
	for _, version := range livetest.ShareOf([]int{14, 19, 22}, "patched shadows on arm64") {
		cross, program, m := arm64Program(t, version)
		for _, form := range []string{"bl", "nop bl", "push bl", "bl stub", "b cfi", "b nocfi", "brk", "udf"} {
			core, err := ptrace.OpenCore(cross.Core(t, program, form), ptrace.CoreOptions{Exe: program})
			require.NoError(t, err)
			v, err := deopt.Frames(core, deopt.Options{Modules: []*ir.Module{m}})
			require.NoError(t, err)
			var names []string
			for _, f := range v.Threads[0].Frames {
				if f.Function == "f" || f.Function == "main" || f.Function == "handler" {
					names = append(names, f.Function)
				}
				if f.Function != "f" {
					continue
				}
				require.NotNil(t, f.Record, "%s: %q", form, f.Notes)
				require.Equal(t, uint64(77), f.Record.ID, form)
				got := map[string]string{}
				for _, s := range f.Slots {
					require.Equal(t, frame.OK, s.Status, "%s: %+v", form, s)
					got[s.Name] = s.Value
				}
				require.Equal(t, map[string]string{"%x": "21", "%b": "7", "": "4242", "%y": "107"}, got, form)
			}
			require.Equal(t, []string{"handler", "f", "main"}, names, "%s: %+v", form, v.Threads[0].End)
			core.Close()
		}
	}
}
