package unwind

import (
	"cmp"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Depth selects the frames of a deep stack to keep. A walk finds all frames and drops those in the middle. The zero value keeps the 512 innermost
// frames and stops there.
type Depth struct {
	Inner, Outer int // number of frames from each end
	Around       int // number of another frame to keep, with its callee and Inner callers; 0 for none
}

// MaxDepth bounds the frames that a walk of a deep stack finds. An overflowed stack of 8 MiB has half as many frames if each has the minimum size of
// 16 bytes.
const MaxDepth = 1 << 20

// Omitted is a part of a stack that was walked but not kept.
type Omitted struct {
	From, Count int
	PCs         []PCCount // most frequent first, at most maxPCs
	guess, kind string    // guess of the first uncertain frame among them, and its kind, or ""
	why         error     // guess as an error that holds its addresses
	scanned     int       // index of the first frame among them that was found by a scan, or -1
}

// PCCount counts the frames with one pc.
type PCCount struct {
	PC     machine.Addr
	Lookup machine.Addr // an address inside the call if PC is a return address
	Count  int
}

// maxPCs bounds the pcs that are recorded for omitted frames: recursion has few different ones.
const maxPCs = 8

// WalkDeep walks a stack like [Unwinder.Walk], up to [MaxDepth] frames, and keeps the frames that the depth selects. Another walk cannot reuse frames
// of the result.
func (u *Unwinder) WalkDeep(regs *machine.Registers, d Depth) *Stack {
	w := newWalk(u)
	w.depth, w.off = &d, true
	s := w.run(regs, nil, MaxDepth)
	w.omit(d.Outer)
	s.Frames, s.Omitted, s.Total = w.frames, w.omitted, len(w.frames)+w.dropped
	s.callees = w.callees
	for k := range s.Omitted {
		slices.SortStableFunc(s.Omitted[k].PCs, func(a, b PCCount) int { return cmp.Compare(b.Count, a.Count) })
	}
	return s
}

// compact drops frames in the middle once there are many.
func (s *foundFrames) compact() {
	if s.depth == nil {
		return
	}
	for s.head < len(s.frames) && s.depth.inner(s.frames[s.head].Index) {
		s.head++
	}
	if len(s.frames)-s.head >= 2*s.depth.Outer+1024 {
		s.omit(s.depth.Outer + 1) // the outer frames, and the callee of the first of them
	}
}

// inner reports whether a frame is kept regardless of the depth of the stack.
func (d *Depth) inner(index int) bool {
	return index < d.Inner || d.Around > 0 && index >= d.Around-1 && index <= d.Around+d.Inner
}

// omit drops the frames between the inner frames and the last outer frames.
func (s *foundFrames) omit(outer int) {
	end := max(s.head, len(s.frames)-outer)
	kept, removed := s.head, 0
	for k := s.head; k < end; k++ {
		f := &s.frames[k]
		if !s.depth.inner(f.Index) {
			s.tally(f)
			removed++
			continue
		}
		if removed > 0 && !s.depth.inner(s.frames[k-1].Index) {
			s.follow(f, &s.frames[k-1])
		}
		s.frames[kept] = s.frames[k]
		kept++
	}
	if removed == 0 {
		s.head = end
		return
	}
	if end < len(s.frames) && !s.depth.inner(s.frames[end-1].Index) {
		s.follow(&s.frames[end], &s.frames[end-1])
	}
	s.frames = append(s.frames[:kept], s.frames[end:]...)
	clear(s.frames[len(s.frames):cap(s.frames)])
	s.head, s.dropped = kept, s.dropped+removed
}

// follow records the data that the first frame after a dropped part needs from its dropped callee.
func (s *foundFrames) follow(f, callee *Frame) {
	if s.callees == nil {
		s.callees = map[int]*Frame{}
	}
	for k := range s.callees { // delete the callees of frames that were dropped after they were recorded
		if k <= f.Index && k > s.omitted[len(s.omitted)-1].From {
			delete(s.callees, k)
		}
	}
	c := *callee
	s.callees[f.Index] = &c
	f.Registers.Detach()
	c.Registers.Detach()
	if o := &s.omitted[len(s.omitted)-1]; f.Guess == "" && o.guess != "" {
		f.Guess, f.GuessKind, f.guess = o.guess, o.kind, o.why
	}
}

// tally counts a dropped frame.
func (s *foundFrames) tally(f *Frame) {
	if n := len(s.omitted); n == 0 || s.omitted[n-1].From+s.omitted[n-1].Count != f.Index {
		s.omitted = append(s.omitted, Omitted{From: f.Index, scanned: -1})
	}
	o := &s.omitted[len(s.omitted)-1]
	o.Count++
	if f.Guess != "" && o.guess == "" {
		o.why = frame.Errorf("it lies beyond frame #%d, which is not kept and was found by a guess: %w", f.Index, f.WhyGuess())
		o.guess = o.why.Error()
		o.kind = "beyond a guess: " + f.GuessKind
	}
	if f.Rule == FromScan && o.scanned < 0 {
		o.scanned = f.Index
	}
	i := slices.IndexFunc(o.PCs, func(p PCCount) bool { return p.PC == f.PC })
	switch {
	case i >= 0:
		o.PCs[i].Count++
	case len(o.PCs) < maxPCs:
		o.PCs = append(o.PCs, PCCount{f.PC, f.Lookup(), 1})
	}
}
