package unwind

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// signals compiles testdata/signals.c and signals.s.
func signals(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "signals")
	run(t, "gcc", "-O2", "-fno-optimize-sibling-calls", "-fPIE", "-pie", "-o", program, "testdata/signals.c", "testdata/signals.s")
	return program
}

// TestSignals unwinds through signal handlers: from each place of a prologue that the signal
// hit, through each code that the handler returns to, with the CFI of the handler and of what
// was interrupted, and without. gdb always has their CFI, and knows code that handlers
// return to by its instructions; of what it does not know, the frames are those it has for the
// same way and other code.
func TestSignals(t *testing.T) {
	program := signals(t)
	functions := []string{"early", "saved", "set", "leaf", "restored", "handles", "traps", "again"}
	for _, hit := range []string{"early", "saved", "set", "leaf", "restored"} {
		for _, to := range []string{"libc", "rax", "padded", "eax"} {
			for _, handler := range []string{"handles", "traps", "again", "other stack"} {
				t.Run(hit+"/"+to+"/"+handler, func(t *testing.T) {
					s := stops(t, []string{"run"}, program, hit, to, handler)[0]
					number := 1
					if handler == "again" {
						number = 2
					}
					s.compareSignals(t, number)
					rule := map[bool]Rule{true: FromCFI, false: FromTrampoline}[to == "libc"]
					stack := s.walk()
					for i, f := range stack.Frames {
						if f.Signal {
							require.Equal(t, rule, stack.Frames[i+1].Rule)
						}
					}
					s.core.hide(program, functions...)
					s.compareSignals(t, number)
				})
			}
		}
	}
}

// compareSignals compares a stack with gdb's.
func (s stop) compareSignals(t *testing.T, number int) {
	t.Helper()
	stack := s.walk()
	signals := 0
	for i, f := range stack.Frames {
		t.Log(i, f.PC, f.Rule, f.Guess, s.want[i].Name)
	}
	require.Len(t, stack.Frames, len(s.want), stack.End.Reason)
	require.True(t, stack.End.Complete, stack.End.Reason)
	for i, f := range stack.Frames {
		compareFrame(t, s.want[i], stack.Frames, i)
		require.Empty(t, f.Guess)
		if f.Signal {
			signals++
		}
	}
	require.Equal(t, number, signals)
}
