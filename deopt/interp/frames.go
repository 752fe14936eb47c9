package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// frame is one activation.
type frame struct {
	in       *Interp
	fn       *function
	w        []word
	ret      []word  // where the result goes, in the caller's frame
	pc       int     // of the next inst; of a frame that waits, its call is the one before
	next     *edge   // what a terminator's step chose
	mark     int     // allocations of the stack that are not this frame's
	variadic []Value // the arguments after the named ones, nil in a resumed frame
	held     uint64  // charged for them
	va       *vaArea // where va_start put them, nil before the first

	owes *debt // what the result is to be

	jumps   []*jump    // of setjmp calls in it, nil of most
	resumed *activated // nil of a frame that a call made

	chunk, top int // of the word stack before this frame
}

// chunkWords are the words that the word stack grows by.
const chunkWords = 1 << 14

// frames are the activations, outermost first. Frames and their words are used
// again: a call costs a copy of the template.
type frames struct {
	list       []*frame
	n          int // how many of list are active
	chunks     [][]word
	chunk, top int // where the next frame's words go
}

// top is the running frame.
func (in *Interp) top() *frame { return in.frames.list[in.frames.n-1] }

// push makes a frame of fn the running one. Allocations of the stack from mark on
// go when it goes.
func (in *Interp) push(fn *function, ret []word, mark int) (*frame, error) {
	s := &in.frames
	if s.n >= in.opt.MaxDepth {
		return nil, troublef(KindDepth, "calls are nested deeper than %d", in.opt.MaxDepth)
	}
	if fn.cost > freeFrame {
		if err := in.work(fn.cost); err != nil {
			return nil, err
		}
	}
	if err := in.view.charge(fn.cost); err != nil {
		return nil, err
	}
	if s.n == len(s.list) {
		s.list = append(s.list, &frame{in: in})
	}
	fr := s.list[s.n]
	s.n++
	fr.fn, fr.ret, fr.pc, fr.next, fr.mark = fn, ret, fn.blocks[0].start, nil, mark
	fr.variadic, fr.held, fr.va, fr.owes, fr.jumps, fr.resumed = nil, 0, nil, nil, nil, nil
	fr.chunk, fr.top = s.chunk, s.top
	fr.w = s.words(len(fn.template))
	copy(fr.w, fn.template)
	return fr, nil
}

// words takes n words from the stack of words.
func (s *frames) words(n int) []word {
	if len(s.chunks) == 0 {
		s.chunks = append(s.chunks, make([]word, max(chunkWords, n)))
	}
	if s.top+n > len(s.chunks[s.chunk]) {
		s.chunk, s.top = s.chunk+1, 0
		switch {
		case s.chunk == len(s.chunks):
			s.chunks = append(s.chunks, make([]word, max(chunkWords, n)))
		case n > len(s.chunks[s.chunk]):
			// The chunks after it are free, and may be as large where frames were before.
			clear(s.chunks[s.chunk+1:])
			s.chunks = append(s.chunks[:s.chunk], make([]word, n))
		}
	}
	w := s.chunks[s.chunk][s.top : s.top+n : s.top+n]
	s.top += n
	return w
}

// pop ends the running frame.
func (in *Interp) pop() {
	s := &in.frames
	s.n--
	fr := s.list[s.n]
	s.chunk, s.top = fr.chunk, fr.top
	in.view.release(fr.fn.cost + fr.held)
	if fr.owes != nil {
		fr.owes.settle(fr.ret)
		in.taken(fr.owes.given)
	}
	if fr.jumps != nil {
		in.forget(fr)
	}
	if len(in.stack.live) > fr.mark {
		in.stack.unwind(fr.mark)
	}
}

// freeFrame is the size up to which a frame counts as one step of its call.
const freeFrame = 1 << 16

// frameCost returns the bytes charged for a frame of this many words.
func frameCost(words int) uint64 { return 16*uint64(words) + 256 }

// at returns the instruction that a frame is at: in the running frame the one that it is about to run, in one that waits its call.
func (fr *frame) at(waits bool) *ir.Instr {
	pc := fr.pc
	if waits {
		pc--
	}
	if pc < 0 || pc >= len(fr.fn.src) {
		return nil
	}
	return fr.fn.src[pc]
}
