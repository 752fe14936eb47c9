package unwind

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// counted is memory that counts its reads.
type counted struct {
	machine.Memory
	reads, bytes int
}

func (c *counted) ReadMemory(p []byte, addr machine.Addr) error {
	c.reads++
	c.bytes += len(p)
	return c.Memory.ReadMemory(p, addr)
}

// changed is memory with some changed words.
type changed struct {
	machine.Memory
	words map[machine.Addr]uint64
}

func (c changed) ReadMemory(p []byte, addr machine.Addr) error {
	if v, ok := c.words[addr]; ok && len(p) == 8 {
		machine.AMD64.PutUint(p, v)
		return nil
	}
	return c.Memory.ReadMemory(p, addr)
}

// anew is a finder that returns a new Code for one file, as if the file had been loaded again.
type anew struct {
	Finder
	old, now *Code
}

func (a anew) Code(pc machine.Addr) *Code {
	if c := a.Finder.Code(pc); c != a.old {
		return c
	}
	return a.now
}

// sameStack compares everything visible in two stacks, and returns the index of the first frame from which the second shares the data of the first.
func sameStack(t *testing.T, want, got *Stack) (shared int) {
	t.Helper()
	require.Equal(t, want.End, got.End)
	require.Len(t, got.Frames, len(want.Frames))
	visible := func(f Frame) Frame {
		f.Registers, f.code = nil, nil
		return f
	}
	for i := range want.Frames {
		w, g := &want.Frames[i], &got.Frames[i]
		require.Equal(t, visible(*w), visible(*g))
		for reg := range machine.DWARFReg(130) {
			wb, wantErr := w.Registers.Bytes(reg)
			gb, gotErr := g.Registers.Bytes(reg)
			require.Equal(t, wb, gb, "%s of frame #%d", machine.AMD64.RegisterName(reg), i)
			require.Equal(t, wantErr, gotErr, "%s of frame #%d", machine.AMD64.RegisterName(reg), i)
		}
	}
	return firstShared(want, got)
}

// firstShared returns the first frame of two stacks from which all registers are shared in memory.
func firstShared(a, b *Stack) int {
	i := min(len(a.Frames), len(b.Frames))
	for i > 0 && a.Frames[i-1].Registers == b.Frames[i-1].Registers {
		i--
	}
	return i
}

// TestWalkAfterWalk walks the stacks of a thread at several moments. A walk must reuse exactly the unchanged frames of an earlier walk: the stack
// equals that of a new walk.
func TestWalkAfterWalk(t *testing.T) {
	program := stacks(t, "-O2")
	moment := stops(t, []string{"run", "run", "run"}, program, "moments")
	first := moment[0].walk()
	require.True(t, first.End.Complete, first.End.Reason)
	require.Len(t, first.Frames, 15) // moments, deep 0 to 9, main, three of the C library and _start
	finder := moment[0].core
	// again walks with a previous stack, and compares the result with that of a walk without one.
	again := func(t *testing.T, regs *machine.Registers, memory machine.Memory, finder Finder, before *Stack) (*Stack, int) {
		t.Helper()
		u := Unwinder{Arch: machine.AMD64, Memory: memory, Finder: finder, Executable: moment[0].core.executable}
		got := u.Walk(regs, before)
		sameStack(t, u.Walk(regs, nil), got)
		return got, firstShared(before, got)
	}

	t.Run("nothing changed", func(t *testing.T) {
		got, shared := again(t, moment[0].registers(), moment[0].core, finder, first)
		require.Equal(t, 0, shared)
		_, shared = again(t, moment[0].registers(), moment[0].core, finder, got)
		require.Equal(t, 0, shared)
	})
	t.Run("later in the same frame", func(t *testing.T) {
		got, shared := again(t, moment[1].registers(), moment[1].core, finder, first)
		require.Equal(t, 1, shared)
		for i := range got.Frames {
			compareFrame(t, moment[1].want[i], got.Frames, i)
		}
		// Repeat with that stack as the previous one.
		_, shared = again(t, moment[1].registers(), moment[1].core, finder, got)
		require.Equal(t, 0, shared)
	})
	t.Run("further in", func(t *testing.T) {
		// The frames have other numbers, which appear in the reasons for missing registers.
		got, shared := again(t, moment[2].registers(), moment[2].core, finder, first)
		require.Len(t, got.Frames, 16)
		require.Equal(t, 15, shared)
		require.Equal(t, 2, got.Found) // the new frame, and its caller
		back, shared := again(t, moment[0].registers(), moment[0].core, finder, got)
		require.Equal(t, 15, shared)
		require.Equal(t, 1, back.Found)
	})
	t.Run("a register of the innermost", func(t *testing.T) {
		regs := moment[0].registers().Clone()
		regs.SetUint(rbx, 42) // the function moments preserves the register, and deep saves its caller's value
		_, shared := again(t, regs, moment[0].core, finder, first)
		require.Equal(t, 2, shared)
		regs = moment[0].registers().Clone()
		regs.SetUint(0, 42) // the register is caller-saved, so callers do not depend on it
		_, shared = again(t, regs, moment[0].core, finder, first)
		require.Equal(t, 1, shared)
		regs.Forget(rbx, errors.New("it was not asked for"))
		_, shared = again(t, regs, moment[0].core, finder, first)
		require.Equal(t, 2, shared)
	})
	for i := range first.Frames[:11] {
		t.Run(fmt.Sprintf("a word of frame %d", i), func(t *testing.T) {
			f := &first.Frames[i]
			// Below the return address, deep saves registers; moments saves none.
			at := f.CFA - 16
			old, err := machine.ReadUint(moment[0].core, machine.AMD64, at, 8)
			require.NoError(t, err)
			memory := changed{moment[0].core, map[machine.Addr]uint64{at: old + 1}}
			_, shared := again(t, moment[0].registers(), memory, finder, first)
			switch {
			case i == 0:
				require.Equal(t, 0, shared) // no frame depends on the word
			case i == 10:
				require.Greater(t, shared, 12) // main does not save the register, so frames further out change, too
			default:
				require.Equal(t, i+2, shared) // the word is the r15 of the caller, which saves the r15 of its own caller
			}
		})
	}
	t.Run("another return address", func(t *testing.T) {
		memory := changed{moment[0].core, map[machine.Addr]uint64{first.Frames[4].CFA - 8: uint64(first.Frames[1].PC)}}
		got, shared := again(t, moment[0].registers(), memory, finder, first)
		require.Equal(t, first.Frames[1].PC, got.Frames[5].PC)
		require.Less(t, 5, shared)
	})
	t.Run("code that was loaded anew", func(t *testing.T) {
		old := finder.Code(first.Frames[0].PC)
		now := &Code{Source: old.Source, Table: old.Table, Functions: old.Functions}
		got, shared := again(t, moment[0].registers(), moment[0].core, anew{finder, old, now}, first)
		require.Equal(t, 15, shared, "_start is in that file")
		_, shared = again(t, moment[0].registers(), moment[0].core, anew{finder, old, now}, got)
		require.Zero(t, shared)
	})
	t.Run("memory that is gone", func(t *testing.T) {
		memory := words{}
		u := Unwinder{Arch: machine.AMD64, Memory: memory, Finder: finder, Executable: moment[0].core.executable}
		got := u.Walk(moment[0].registers(), first)
		sameStack(t, u.Walk(moment[0].registers(), nil), got)
		require.Len(t, got.Frames, 1)
	})
	t.Run("reads", func(t *testing.T) {
		// If the code is cached, a walk reads each word that it depends on once, also for reused frames. It reads code only if it is not cached.
		reads := func(before *Stack) int {
			memory := &counted{Memory: moment[0].core}
			u := Unwinder{Arch: machine.AMD64, Memory: memory, Finder: finder, Executable: moment[0].core.executable}
			u.Walk(moment[0].registers(), before)
			return memory.reads
		}
		require.LessOrEqual(t, reads(first), len(first.reads))
		require.LessOrEqual(t, reads(first), reads(nil))
	})
}
