package deopt_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestTailCallIsNoted requires a note in a live process that names the function whose frame a tail call has replaced.
func TestTailCallIsNoted(t *testing.T) {
	p := quiet(t, 0, livetest.CXXBinary(t, programSource(t, "tailcall.cc"), "-O2"))
	v := frametest.Look(t, p, false, deopt.Options{})
	f := frametest.One(t, v, "_ZN4shop5staysEl")
	require.Equal(t, "_ZN4shop6sleepsEl", v.Threads[0].Frames[f.Index-1].Function)
	require.Equal(t, []string{fmt.Sprintf("a frame is missing before this one: it called shop::leaves(long), "+
		"which jumped to the function of frame #%d (a tail call)", f.Index-1)}, f.Notes)
	for _, other := range v.Threads[0].Frames {
		if other != f {
			require.Empty(t, other.Notes)
		}
	}
}

// TestTailCallsOfRealPrograms compares the notes on missing frames with the code of the functions that made the tail calls. Each must have a jump
// out of the function, or one with an unknown target.
func TestTailCallsOfRealPrograms(t *testing.T) {
	livetest.Slow(t)
	missing, frames := 0, 0
	for _, program := range stackPrograms {
		if slices.Contains([]string{"vdso", "node, compiled code", "go without debug information"}, program.name) {
			continue // other programs of the list have the same functions
		}
		if program.again && !livetest.Whole() {
			continue
		}
		v := frametest.Look(t, program.start(t), true, deopt.Options{})
		for _, thread := range v.Threads {
			for _, f := range thread.Frames {
				frames++
				if f.Physical().Skipped != 0 {
					missing++
					require.True(t, mayLeave(t, v, f.Physical().Skipped), "%s of frame #%d, %s", v.Space().NameOf(f.Physical().Skipped), f.Index, f.Function)
				}
			}
		}
	}
	t.Logf("%d frames are missing beside %d", missing, frames)
	require.Positive(t, missing)
}

// mayLeave reports whether a function has a jump that may lead out of it.
func mayLeave(t *testing.T, v *deopt.View, start machine.Addr) bool {
	t.Helper()
	s := v.Space().At(start).SymbolAt(start)
	require.True(t, s.Known)
	for at := start; at < start+machine.Addr(s.Size); {
		inst, known, err := amd64.Read(v.Target(), at)
		require.NoError(t, err)
		require.NotZero(t, inst.Len)
		next := at + machine.Addr(inst.Len)
		to, direct := inst.Args[0].(x86asm.Rel)
		out := direct && next+machine.Addr(to)-start >= machine.Addr(s.Size)
		if known && !amd64.IsCall(inst) && (out || inst.Op == x86asm.JMP && !direct) {
			return true
		}
		at = next
	}
	return false
}
