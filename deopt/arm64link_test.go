package deopt_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// linkLosers lists patches that lead to stubs that do not save the link register, and the expected functions of the stack.
var linkLosers = []struct {
	form   string
	active []string
}{
	{"bl cfi", []string{"handler", "stub_cfi", "f", "main"}},
	{"blr cfi", []string{"handler", "stub_cfi", "f", "main"}},
	{"bl nocfi", []string{"handler", "f", "main"}}, // the stub runs in the frame of f
	{"b cfi", []string{"handler", "f", "main"}},
	{"b nocfi", []string{"handler", "f", "main"}},
}

// TestStubsThatLoseTheLinkRegister requires that the caller of a stub that has lost the link register is found in arm64 cores. Only the caller's call
// or jump both leads to the stub and agrees with the stack. The caller itself was entered by a direct call.
func TestStubsThatLoseTheLinkRegister(t *testing.T) {
	livetest.Slow(t)
	cross, program, m := arm64Program(t, 19)
	for _, l := range linkLosers {
		core, err := ptrace.OpenCore(cross.Core(t, program, l.form), ptrace.CoreOptions{Exe: program})
		require.NoError(t, err)
		v, err := deopt.Frames(core, deopt.Options{Modules: []*ir.Module{m}})
		require.NoError(t, err)
		var names []string
		for _, f := range v.Threads[0].Frames {
			switch f.Function {
			case "handler", "stub_cfi", "stub_nocfi", "f", "main":
				require.Empty(t, f.Guess(), "%v", l.form)
				names = append(names, f.Function)
			}
			if f.Function == "f" {
				require.NotNil(t, f.Record, "%v: %q", l.form, f.Notes)
				require.Equal(t, uint64(77), f.Record.ID)
				require.Equal(t, "21", f.Slots[0].Value, "%v", l.form)
			}
		}
		require.Equal(t, l.active, names, "%v: %+v", l.form, v.Threads[0].End)
		core.Close()
	}
}

// TestPointersToCallersOfLinkLosers requires that the caller of such a stub is also found if the caller was entered through a pointer: the
// callee-saved registers of main contradict all other calls. The caller must be a guess if a function of the C library has a frame of the same form
// and a call through a register.
func TestPointersToCallersOfLinkLosers(t *testing.T) {
	livetest.Slow(t)
	cross, program, m := arm64Program(t, 19)
	look := func(form ...string) *deopt.View {
		core, err := ptrace.OpenCore(cross.Core(t, program, form...), ptrace.CoreOptions{Exe: program})
		require.NoError(t, err)
		t.Cleanup(func() { core.Close() })
		v, err := deopt.Frames(core, deopt.Options{Modules: []*ir.Module{m}})
		require.NoError(t, err)
		return v
	}
	require.Equal(t, []string{"stub_cfi cfi", "f code", "main cfi"}, certainFrames(look("bl cfi", "indirect"), "stub_cfi", "f", "main"))
	for _, form := range []string{"bl nocfi", "b cfi"} {
		require.Equal(t, []string{"f cfi", "main cfi"}, certainFrames(look(form, "indirect"), "f", "main"), form)
	}
	v := look("call cfi")
	require.Empty(t, certainFrames(v, "f", "main"))
	at := slices.IndexFunc(v.Threads[0].Frames, func(f *deopt.Frame) bool { return f.Function == "main" })
	require.Contains(t, v.Threads[0].Frames[at].Guess(), "has lost the link register, and other calls agree with the stack, too")
}

// TestSharedStubThatLosesTheLinkRegister requires that neither of two functions with similar frames is shown as the caller if both were patched with
// a jump to one stub that loses the link register.
func TestSharedStubThatLosesTheLinkRegister(t *testing.T) {
	cross, program, m := arm64Program(t, 19)
	core, err := ptrace.OpenCore(cross.Core(t, program, "shared", "indirect"), ptrace.CoreOptions{Exe: program})
	require.NoError(t, err)
	defer core.Close()
	v, err := deopt.Frames(core, deopt.Options{Modules: []*ir.Module{m}})
	require.NoError(t, err)
	require.Equal(t, []string{"handler cfi", "stub_nocfi cfi"}, certainFrames(v, "handler", "stub_nocfi", "f", "g", "main"))
	require.Contains(t, v.Threads[0].End.Reason, "the stack does not show which of them it came from")
}
