package unwind

import (
	"slices"

	"example.com/reframe/internal/machine"
)

// Stack is the result of a walk: the frames of a thread, innermost first, and the reason why it ended.
type Stack struct {
	Frames []Frame
	End    End
	// Found is the number of innermost frames that the walk found itself. The frames further out are reused from an earlier walk.
	Found int
	// Total is the number of frames of the stack. Omitted describes those that a deep walk did not keep.
	Total   int
	Omitted []Omitted

	callees map[int]*Frame // callees of the frames that follow an omitted part
	reads   []read         // memory that the walk read, in order
	until   []int          // number of reads made when each frame was left
}

// Callee returns the frame that the frame at index i called, or nil for the innermost frame or if unknown.
func (s *Stack) Callee(i int) *Frame {
	if i == 0 {
		return nil
	}
	if s.Frames[i-1].Index+1 != s.Frames[i].Index {
		return s.callees[s.Frames[i].Index]
	}
	return &s.Frames[i-1]
}

// read is a word of memory that a walk has read. With size 0, it only notes that the walk has read memory that cannot be compared.
type read struct {
	addr  machine.Addr
	value uint64
	size  int // bytes; 0 if the value is not recorded and cannot be compared
}

// reuse looks for frames of an earlier walk that are still the same.
type reuse struct {
	*walk
	before *Stack // nil for no earlier walk
	next   int    // index in before.Frames from which to look for the walk's last frame
}

// stack completes the walk with frames of before. It returns nil unless the last frame of the walk is a frame of before, and that frame and all
// frames further out are unchanged.
func (w *reuse) stack() *Stack {
	if w.before == nil {
		return nil
	}
	if w.next = w.joins(w.next); w.next == len(w.before.Frames) {
		return nil
	}
	next, same := w.continues(w.next)
	if w.next = next; !same {
		return nil
	}
	return w.resume(next)
}

// joins returns the index, at or after j, of the frame of before that may equal the last frame of the walk. Without such a frame it returns
// len(before.Frames). It compares stack pointers, which increase in both walks.
func (w *reuse) joins(j int) int {
	before := w.before
	sp, err := w.frames[len(w.frames)-1].Registers.Addr(w.Arch.SP)
	for ; err == nil && j < len(before.Frames); j++ {
		if old, err := before.Frames[j].Registers.Addr(w.Arch.SP); err == nil && old >= sp {
			return j
		}
	}
	return j
}

// continues reports whether the frames of before from index j are still the same, where frame j is the last frame of the walk. It compares the
// registers of that frame, the code, and each word that was read. If they differ, next is the first frame from which the frames may be the same.
func (w *reuse) continues(j int) (next int, same bool) {
	before := w.before
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

// sameWriting reports whether a frame of an earlier walk still has the same place in overwritten code, or still has none.
func (w *reuse) sameWriting(f, callee *Frame) bool {
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

// first returns the index of the first read for frame j.
func (s *Stack) first(j int) int {
	if j == 0 {
		return 0
	}
	return s.until[j-1]
}

// movable reports whether the frames from index j can be renumbered. They can if their texts contain no frame number, apart from those that
// [rules.lost] wrote.
func (s *Stack) movable(j int) bool {
	for k := j; k < len(s.Frames); k++ {
		f := &s.Frames[k]
		if k > j && f.Guess != "" || f.NoCFA != "" || !f.Registers.Plain() {
			return false
		}
	}
	return s.End.Complete
}

// resume replaces the last frame of the walk, which is before.Frames[j], by before.Frames[j:]. If frame numbers change, they also change in the
// frames' texts.
func (w *reuse) resume(j int) *Stack {
	before := w.before
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
		return w.walk.stack(before.End, i)
	}
	w.frames = append(w.frames[:i], before.Frames[j:]...)
	w.frames[i].Registers, w.frames[i].Guess, w.frames[i].GuessKind, w.frames[i].guess = joined.Registers, joined.Guess, joined.GuessKind, joined.guess
	for k := i; k < len(w.frames); k++ {
		f := &w.frames[k]
		if f.Index = k; k > i {
			callee := &w.frames[k-1]
			f.Registers = f.Registers.But(w.lost(callee, callee.left))
		}
	}
	return w.walk.stack(before.End.at(len(w.frames)-1), i)
}
