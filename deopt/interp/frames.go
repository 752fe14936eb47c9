package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// frame is one activation.
type frame struct {
	in       *Interp
	fn       *function
	w        []word
	ret      []word  // destination of the result, in the caller's frame
	pc       int     // index of the next inst; if the frame waits for a call, the call is at pc-1
	next     *edge   // the edge that a terminator's step chose
	mark     int     // number of stack allocations that outer frames have made
	variadic []Value // the variadic arguments, nil in a resumed frame
	held     uint64  // memory charged for the variadic arguments
	va       *vaArea // where va_start stored the variadic arguments, nil before the first va_start

	owes *debt // work to do on return

	jumps   []*jump    // valid jumps to setjmp calls of this frame, usually nil
	resumed *activated // nil for a frame that a call made

	chunk, top int // top of the word stack before this frame was pushed
}

// chunkWords is the number of words by which the word stack grows.
const chunkWords = 1 << 14

// frames is the stack of activations, outermost first. It reuses frames and their words, so that pushing a frame only copies the template.
type frames struct {
	list       []*frame
	n          int // number of active entries of list
	chunks     [][]word
	chunk, top int // position of the next frame's words
}

// top returns the running frame.
func (in *Interp) top() *frame { return in.frames.list[in.frames.n-1] }

// push adds a frame of fn, which becomes the running frame. When the frame is popped, the stack allocations from index mark on are released.
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

// words allocates n words on the word stack.
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
			// The later chunks are unused. Release them, because they may be large.
			clear(s.chunks[s.chunk+1:])
			s.chunks = append(s.chunks[:s.chunk], make([]word, n))
		}
	}
	w := s.chunks[s.chunk][s.top : s.top+n : s.top+n]
	s.top += n
	return w
}

// pop removes the running frame.
func (in *Interp) pop() {
	s := &in.frames
	s.n--
	fr := s.list[s.n]
	s.chunk, s.top = fr.chunk, fr.top
	in.view.release(fr.fn.cost + fr.held)
	if fr.owes != nil {
		fr.owes.enforce(fr.ret)
		in.taken(fr.owes.given)
	}
	if fr.jumps != nil {
		in.forget(fr)
	}
	if len(in.stack.live) > fr.mark {
		in.stack.unwind(fr.mark)
	}
}

// freeFrame is the maximum size in bytes of a frame whose push counts no additional steps.
const freeFrame = 1 << 16

// frameCost returns the bytes charged for a frame of this many words.
func frameCost(words int) uint64 { return 16*uint64(words) + 256 }

// at returns the current instruction of a frame: the next one to run, or the call if the frame waits for a callee.
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
