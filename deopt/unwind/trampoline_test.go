package unwind

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// signals compiles testdata/signals.c and signals.s.
func signals(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "signals")
	livetest.Make(t, "gcc", "-O2", "-fno-optimize-sibling-calls", "-fPIE", "-pie", "-o", program, "testdata/signals.c", "testdata/signals.s")
	return program
}

// signalled lists the functions of signals.c and signals.s that a signal interrupts or that handle one.
var signalled = []string{"early", "saved", "set", "leaf", "restored", "handles", "traps", "again"}

// TestSignals unwinds through signal handlers. Signals interrupt each place of a prologue or epilogue. The trampoline has CFI or none. The
// handler and the interrupted function are unwound by their CFI, or by their instructions only.
func TestSignals(t *testing.T) {
	livetest.Slow(t)
	program := signals(t)
	handlers := map[string]int{"handles": 1, "traps": 1, "again": 2, "other stack": 1}
	for h, hit := range []string{"early", "saved", "set", "leaf", "restored"} {
		for n, to := range []string{"libc", "rax"} {
			for k, handler := range slices.Sorted(maps.Keys(handlers)) {
				number := handlers[handler]
				if number == 2 && hit != "set" {
					continue
				}
				if number == 1 && livetest.Out(3, h+n+k) {
					continue // each of the three combinations gets several of the cases
				}
				t.Run(hit+"/"+to+"/"+handler, func(t *testing.T) {
					s := stops(t, []string{"run"}, program, hit, to, handler)[0]
					s.compareSignals(t, number)
					rule := map[string]Rule{"libc": FromCFI, "rax": FromTrampoline}[to]
					frames := s.walk().Frames
					for i, f := range frames {
						if f.Signal {
							require.Equal(t, rule, frames[i+1].Rule)
						}
					}
					s.core.hide(program, signalled...)
					s.compareSignals(t, number)
				})
			}
		}
	}
}

// TestShortTrampoline makes handlers return to a trampoline that gdb does not know and that does the same as the usual one. It requires the same
// frames as with the usual trampoline, except for the trampoline's pc.
func TestShortTrampoline(t *testing.T) {
	program := signals(t)
	for _, hidden := range [][]string{nil, signalled} {
		usual := stops(t, []string{"run"}, program, "set", "rax", "again")[0]
		short := stops(t, []string{"run"}, program, "set", "eax", "again")[0]
		usual.core.hide(program, hidden...)
		short.core.hide(program, hidden...)
		want, got := usual.walk(), short.walk()
		require.Len(t, want.Frames, 13)
		require.True(t, got.End.Complete, got.End.Reason)
		signals := 0
		for i := range want.Frames {
			w, g := &want.Frames[i], &got.Frames[i]
			if g.Signal {
				signals++
				w.PC += machine.Addr(len(machine.AMD64.Trampolines[0].Code)) // the short trampoline follows the usual one in the source
			}
			require.Equal(t, w.PC, g.PC)
			require.Equal(t, w.Signal, g.Signal)
			require.Equal(t, w.Rule, g.Rule)
			require.Equal(t, w.CFA, g.CFA)
		}
		require.Equal(t, 2, signals)
	}
}

// compareSignals compares a stack with gdb's.
func (s stop) compareSignals(t *testing.T, number int) {
	t.Helper()
	stack := s.walk()
	signals := 0
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
