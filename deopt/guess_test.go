package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// hasReturned starts testdata/returned.c; by is the distance by which it moves its stack pointer.
func hasReturned(t *testing.T, who, by string) (*livetest.Process, deopt.Options) {
	t.Helper()
	source := livetest.Testdata(t, "returned.c")
	program := livetest.Compiled(t, "gcc", source, "-O1", "-fomit-frame-pointer", "-Wl,-z,now", livetest.Object(t, 19, "returned.ll", "-relocation-model=pic"))
	m, err := ir.ParseFile(livetest.Testdata(t, "programs", "returned.ll"))
	require.NoError(t, err)
	return livetest.Program(t, program, who, by), deopt.Options{Modules: []*ir.Module{m}}
}

// TestFrameThatHasReturned requires that the caller of a function without CFI is a guess if the stack has an older return address before it. The
// function has moved its stack pointer down over the frame of a returned function, whose call names another function. (A version showed @f as the
// caller, with all slots ok.)
func TestFrameThatHasReturned(t *testing.T) {
	for _, test := range []struct {
		who    string
		record uint64
		value  string
	}{
		{"near", 8, "12"}, // a direct call of the function
		{"far", 9, "13"},  // a call through a register, which may call any function
	} {
		t.Run(test.who, func(t *testing.T) {
			p, o := hasReturned(t, test.who, "4104")
			v := frametest.Look(t, p, true, o)
			f := recorded(t, v)
			require.Equal(t, test.who, f.Function)
			require.Equal(t, test.record, f.Record.ID)
			require.Equal(t, frame.InCall, f.Record.Moment)
			require.Equal(t, string(unwind.FromScan), f.Rule)
			require.NotEmpty(t, f.Guess())
			require.Equal(t, f.Guess(), f.Frame.Guess)
			require.Len(t, f.Slots, 1)
			require.Equal(t, frame.Guessed, f.Slots[0].Status)
			require.Equal(t, test.value, f.Slots[0].Value)
			require.Contains(t, f.Slots[0].Reason, "is a guess: the end of the stack of frame #")
			require.True(t, v.Partial())
			require.Nil(t, v.Next().Stack, "nothing is offered that is refused")
			// All frames further out are marked as depending on the guess.
			all := v.Threads[0].Frames
			for _, beyond := range all[f.Index+1:] {
				require.Empty(t, beyond.Guess())
				require.Contains(t, beyond.Uncertain(), "it lies beyond frame #")
			}
			for _, within := range all[:f.Index] {
				require.Empty(t, within.Uncertain())
			}

			s, err := v.Pick(deopt.Choice{Frame: -1})
			require.NoError(t, err)
			_, err = v.Run(t.Context(), s, deopt.Limits{})
			require.ErrorContains(t, err, f.Title()+", is a guess: ")
			require.ErrorContains(t, err, "--force")
			s, err = v.Pick(deopt.Choice{Frame: -1, Force: true})
			require.NoError(t, err)
			out, err := v.Run(t.Context(), s, deopt.Limits{})
			require.NoError(t, err)
			require.Equal(t, map[string]string{"near": "13", "far": "15"}[test.who], out.Result.Value)
		})
	}
}

// TestNoFrameThatHasReturned requires that no frame becomes the caller if the real one is beyond the search limit, because no call before that
// limit leads to the function.
func TestNoFrameThatHasReturned(t *testing.T) {
	p, o := hasReturned(t, "near", "33032")
	v := frametest.Look(t, p, true, o)
	require.Zero(t, v.Records())
	require.Contains(t, v.Threads[0].End.Reason, "are of other functions, which do not lead to it")
}
