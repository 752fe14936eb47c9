package unwind

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/reframe/internal/machine"
)

// Depth selects the frames of a deep stack to keep. A walk finds all frames and drops those in the middle. The zero value keeps the 512 innermost
// frames and stops there.
type Depth struct {
	Inner, Outer int // number of frames from each end
	Around       int // number of a frame to keep as well, with its callee and Inner of its callers; 0 for none
}

// MaxDepth bounds the frames that a walk of a deep stack finds. An overflowed stack of 8 MiB has half as many frames if each has the minimum size of
// 16 bytes.
const MaxDepth = 1 << 20

// Omitted is a part of a stack that was walked but not kept.
type Omitted struct {
	From, Count int
	PCs         []PCCount // most frequent first, at most maxPCs
	guess       string    // reason of the first uncertain frame among them, or ""
	scanned     int       // first of them that was found by a scan, or -1
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
	w := walk{Unwinder: u, arm64: newARM64Code(u), depth: &d}
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
func (w *walk) compact() {
	if w.depth == nil {
		return
	}
	for w.head < len(w.frames) && w.depth.inner(w.frames[w.head].Index) {
		w.head++
	}
	if len(w.frames)-w.head >= 2*w.depth.Outer+1024 {
		w.omit(w.depth.Outer + 1) // and the callee of the first of them
	}
}

// inner reports whether a frame is kept regardless of the depth of the stack.
func (d *Depth) inner(index int) bool {
	return index < d.Inner || d.Around > 0 && index >= d.Around-1 && index <= d.Around+d.Inner
}

// omit drops the frames in the middle except the last outer ones.
func (w *walk) omit(outer int) {
	end := max(w.head, len(w.frames)-outer)
	kept, gone := w.head, 0
	for k := w.head; k < end; k++ {
		f := &w.frames[k]
		if !w.depth.inner(f.Index) {
			w.tally(f)
			gone++
			continue
		}
		if gone > 0 && !w.depth.inner(w.frames[k-1].Index) {
			w.follow(f, &w.frames[k-1])
		}
		w.frames[kept] = w.frames[k]
		kept++
	}
	if gone == 0 {
		w.head = end
		return
	}
	if end < len(w.frames) && !w.depth.inner(w.frames[end-1].Index) {
		w.follow(&w.frames[end], &w.frames[end-1])
	}
	w.frames = append(w.frames[:kept], w.frames[end:]...)
	clear(w.frames[len(w.frames):cap(w.frames)])
	w.head, w.dropped = kept, w.dropped+gone
}

// follow records what the first frame after a dropped part needs from its dropped callee.
func (w *walk) follow(f, callee *Frame) {
	if w.callees == nil {
		w.callees = map[int]*Frame{}
	}
	for k := range w.callees { // left from an earlier end of the same part
		if k <= f.Index && k > w.omitted[len(w.omitted)-1].From {
			delete(w.callees, k)
		}
	}
	c := *callee
	w.callees[f.Index] = &c
	f.Registers.Detach()
	c.Registers.Detach()
	if guess := w.omitted[len(w.omitted)-1].guess; f.Guess == "" && guess != "" {
		f.Guess = guess
	}
}

// tally counts a dropped frame.
func (w *walk) tally(f *Frame) {
	if n := len(w.omitted); n == 0 || w.omitted[n-1].From+w.omitted[n-1].Count != f.Index {
		w.omitted = append(w.omitted, Omitted{From: f.Index, scanned: -1})
	}
	o := &w.omitted[len(w.omitted)-1]
	o.Count++
	if f.Guess != "" && o.guess == "" {
		o.guess = fmt.Sprintf("it lies beyond frame #%d, which is not kept and was found by a guess: %s", f.Index, f.Guess)
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
