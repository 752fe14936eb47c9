package unwind

import (
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
)

// Stack is the result of a walk: the frames of a thread, innermost first, and the reason why it ended.
type Stack struct {
	Frames []Frame
	End    End
	// Found is how many of the frames, from the innermost on, the walk found itself: it took over the outer ones from an earlier walk.
	Found int
	// Total is the number of frames of the stack. Omitted counts those that a deep walk did not keep.
	Total   int
	Omitted []Omitted

	callees map[int]*Frame // of frames that follow an omitted part
	reads   []read         // what the walk took from memory, in order
	until   []int          // how many of them were made when each frame was left
}

// Callee is the frame that the frame at place i called, nil of the innermost and where it is not known.
func (s *Stack) Callee(i int) *Frame {
	if i == 0 {
		return nil
	}
	if s.Frames[i-1].Index+1 != s.Frames[i].Index {
		return s.callees[s.Frames[i].Index]
	}
	return &s.Frames[i-1]
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
	if w.depth != nil {
		return err
	}
	r := read{addr: addr}
	if err == nil && len(p) <= 8 {
		r.value, r.size = w.Arch.Uint(p), len(p)
	}
	w.reads = append(w.reads, r)
	return err
}

// joins returns the number of the frame of before, from number j on, that may be the same as the last frame here: the stack pointers grow in both.
// It returns len(before.Frames) for none.
func (w *walk) joins(before *Stack, j int) int {
	sp, err := w.frames[len(w.frames)-1].Registers.Addr(w.Arch.SP)
	for ; err == nil && j < len(before.Frames); j++ {
		if old, err := before.Frames[j].Registers.Addr(w.Arch.SP); err == nil && old >= sp {
			return j
		}
	}
	return j
}

// continues reports whether the frames of before from number j on are still what they were, the
// last frame here being the first of them: the registers that it begins with, the code,
// and each word that was read. Otherwise it returns the first frame from which on they may be.
func (w *walk) continues(before *Stack, j int) (next int, same bool) {
	f, old := &w.frames[len(w.frames)-1], &before.Frames[j]
	if f.PC != old.PC || (f.Overwritten == nil) != (old.Overwritten == nil) || f.place() != old.place() || f.Return != old.Return || f.Rule != old.Rule || f.Skipped != old.Skipped || !f.Registers.Same(old.Registers) {
		return j, false
	}
	switch {
	case f.Index != old.Index && !(f.Registers.Whole() && before.movable(j)):
		return len(before.Frames), false
	case f.Index == old.Index && (f.Guess != old.Guess || !f.Registers.Whole() && !f.Registers.SameReasons(old.Registers)):
		return j + 1, false
	}
	for k := j; k < len(before.Frames); k++ {
		old := &before.Frames[k]
		if w.Finder.Code(old.lookup()) != old.code || k > j && !w.sameWriting(old, &before.Frames[k-1]) {
			return k + 1, false
		}
	}
	for k := before.first(j); k < len(before.reads); k++ {
		r := before.reads[k]
		b := w.word[:r.size]
		if r.size == 0 || w.Memory.ReadMemory(b, r.addr) != nil || w.Arch.Uint(b) != r.value {
			frame, _ := slices.BinarySearch(before.until, k+1)
			return frame + 1, false
		}
	}
	return j, true
}

// sameWriting reports whether a frame is in code that was written over exactly if it was before, and at the same place.
func (w *walk) sameWriting(f, callee *Frame) bool {
	if w.Overwritten == nil {
		return true
	}
	bare := *f
	bare.Overwritten = nil
	now := w.Overwritten(&bare, callee)
	if f.Overwritten == nil || len(now) == 0 {
		return f.Overwritten == nil && len(now) == 0
	}
	return len(now) == 1 && now[0].At == f.Overwritten.At && now[0].From == f.Overwritten.From
}

// first is the first read for frame j.
func (s *Stack) first(j int) int {
	if j == 0 {
		return 0
	}
	return s.until[j-1]
}

// movable reports whether the frames from number j on can be renumbered: their texts contain no frame number, apart from those of [walk.lost].
func (s *Stack) movable(j int) bool {
	for k := j; k < len(s.Frames); k++ {
		f := &s.Frames[k]
		if k > j && f.Guess != "" || f.NoCFA != "" || !f.Registers.Plain() {
			return false
		}
	}
	return s.End.Complete
}

// resume takes over the frames of before from number j on, the first of which is the last frame here. If their numbers change, so do the numbers in
// their texts.
func (w *walk) resume(before *Stack, j int) *Stack {
	first := before.first(j)
	shift := len(w.reads) - first
	for _, n := range before.until[j:] {
		w.until = append(w.until, n+shift)
	}
	w.reads = append(w.reads, before.reads[first:]...)
	i := len(w.frames) - 1
	joined := w.frames[i]
	if i == j {
		w.frames = append(w.frames[:i], before.Frames[i:]...)
		return w.stack(before.End, i)
	}
	w.frames = append(w.frames[:i], before.Frames[j:]...)
	w.frames[i].Registers, w.frames[i].Guess = joined.Registers, joined.Guess
	for k := i; k < len(w.frames); k++ {
		f := &w.frames[k]
		if f.Index = k; k > i {
			callee := &w.frames[k-1]
			f.Registers = f.Registers.But(w.lost(callee, callee.left))
		}
	}
	last := len(before.Frames) - 1
	end := before.End
	if why, ok := strings.CutPrefix(end.Reason, outermost("frame #%d", last).Reason); ok {
		end.Reason = outermost("frame #%d", last+i-j).Reason + why
	}
	return w.stack(end, i)
}
