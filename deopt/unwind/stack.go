package unwind

import (
	"slices"

	"reframe/deopt/machine"
)

// Stack is what a walk found: the frames of a thread, innermost first, and why there are no
// more.
type Stack struct {
	Frames []Frame
	End    End

	reads []read // what the walk took from memory, in order
	until []int  // how many of them were made when each frame was left
}

// read is a word that was read, or the fact that something else was.
type read struct {
	addr  machine.Addr
	value uint64
	size  int // bytes; 0 where the outcome is not kept, and cannot be held against another
}

// ReadMemory implements [machine.Memory] for all that a frame depends on but code.
func (w *walk) ReadMemory(p []byte, addr machine.Addr) error {
	err := w.Memory.ReadMemory(p, addr)
	r := read{addr: addr}
	if err == nil && len(p) <= 8 {
		r.value, r.size = w.Arch.Uint(p), len(p)
	}
	w.reads = append(w.reads, r)
	return err
}

// continues says whether the frames of before from number i on are still what they were: the
// registers that the frame begins with, the code, and each word that was read.
// Otherwise it returns the first frame from which on they may be.
func (w *walk) continues(before *Stack, i int) (next int, same bool) {
	f, old := &w.frames[i], &before.Frames[i]
	if f.PC != old.PC || f.Return != old.Return || f.Rule != old.Rule || f.Guess != old.Guess || f.Skipped != old.Skipped || !f.Registers.Same(old.Registers) {
		return i + 1, false
	}
	for j := i; j < len(before.Frames); j++ {
		if w.Finder.Code(before.Frames[j].lookup()) != before.Frames[j].code {
			return j + 1, false
		}
	}
	first := 0
	if i > 0 {
		first = before.until[i-1]
	}
	for k := first; k < len(before.reads); k++ {
		r := before.reads[k]
		b := w.word[:r.size]
		if r.size == 0 || w.Memory.ReadMemory(b, r.addr) != nil || w.Arch.Uint(b) != r.value {
			j, _ := slices.BinarySearch(before.until, k+1)
			return j + 1, false
		}
	}
	return i, true
}

// resume takes over the frames of before from number i on.
func (w *walk) resume(before *Stack, i int) *Stack {
	first := 0
	if i > 0 {
		first = before.until[i-1]
	}
	shift := len(w.reads) - first
	for _, n := range before.until[i:] {
		w.until = append(w.until, n+shift)
	}
	w.reads = append(w.reads, before.reads[first:]...)
	w.frames = append(w.frames[:i], before.Frames[i:]...)
	return w.stack(before.End)
}
