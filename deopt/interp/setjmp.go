package interp

import (
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// jumpFuncs holds setjmp and longjmp (C17 7.13) by their names in glibc. setjmp stores a number in the first word of the buffer, by which longjmp
// finds the saved state.
var jumpFuncs = map[string]Builtin{
	"setjmp": setJump, "_setjmp": setJump, "sigsetjmp": setJump, "__sigsetjmp": setJump,
	"longjmp": longJump, "_longjmp": longJump, "siglongjmp": longJump, "__longjmp_chk": longJump,
}

// jump is the state that setjmp saved for longjmp.
type jump struct {
	fr     *frame
	pc     int // index of the inst after the setjmp call
	out    slot
	buffer machine.Addr
	number uint64 // the number in the buffer
	words  []word // words of the frame at the time of setjmp
	live   int    // number of stack allocations at the time of setjmp
}

// jumpMark marks the numbers in buffers, so that other data is rarely taken for a number: no address of a process has the mark. The mark is in the
// upper 16 bits, or with 32-bit pointers in the upper 8.
const (
	jumpMark       = 0xa5e7 << 48
	narrowJumpMark = 0xa5 << 24
	maxNarrowJumps = 1 << 24
)

// setJump implements setjmp: it saves the state of the calling frame, and returns 0.
func setJump(c *Invocation) (Value, error) {
	a, err := c.Addr(0)
	if err != nil {
		return Value{}, err
	}
	if c.site == nil {
		return Value{}, unsupported("call it directly in the function that longjmp returns to", "a call of @%s by the C library", c.Name)
	}
	if err := c.in.setJump(a, c.site.out); err != nil {
		return Value{}, err
	}
	return c.Return(0)
}

func longJump(i *Invocation) (Value, error) {
	c := &ccall{Invocation: i}
	a, v := c.addr(0), c.uint(1)&0xffffffff
	if c.err != nil {
		return Value{}, c.err
	}
	j, err := c.in.jumpAt(a)
	if err != nil {
		return Value{}, err
	}
	if v == 0 {
		v = 1
	}
	return Value{}, &jumping{j, v}
}

// setJump saves the state of the running frame for a longjmp, and stores its number in buffer. out is the slot for the result of the setjmp call.
func (in *Interp) setJump(buffer machine.Addr, out slot) error {
	fr := in.top()
	if err := in.work(8 * uint64(len(fr.w))); err != nil {
		return err
	}
	var j *jump
	for _, other := range fr.jumps {
		if other.pc == fr.pc && other.buffer == buffer {
			j = other
		}
	}
	if j == nil {
		if err := in.view.charge(frameCost(len(fr.w))); err != nil {
			return err
		}
		j = &jump{fr: fr, pc: fr.pc, out: out, buffer: buffer, number: in.clib.jumps}
		in.clib.jumps++
		if in.run.jumps == nil {
			in.run.jumps = map[uint64]*jump{}
		}
		in.run.jumps[j.number] = j
		fr.jumps = append(fr.jumps, j)
	}
	j.words, j.live = append(j.words[:0], fr.w...), len(in.stack.live)
	size := in.layout.PointerBytes(0)
	p := make([]byte, size)
	if size == 4 {
		if j.number >= maxNarrowJumps {
			return troublef(KindMemory, "setjmp is called more than %d times", maxNarrowJumps)
		}
		in.opt.Arch.PutUint(p, narrowJumpMark|j.number)
	} else {
		in.opt.Arch.PutUint(p, jumpMark|j.number)
	}
	return in.view.write(buffer, p, nil)
}

// jumpAt returns the state whose number is in a buffer.
func (in *Interp) jumpAt(buffer machine.Addr) (*jump, error) {
	size := in.layout.PointerBytes(0)
	p := make([]byte, size)
	if err := in.view.read(p, nil, buffer); err != nil {
		return nil, err
	}
	v := in.opt.Arch.Uint(p)
	number, mark := v&(maxNarrowJumps-1), v&^(maxNarrowJumps-1) == narrowJumpMark
	if size == 8 {
		number, mark = v&(1<<48-1), v&^(1<<48-1) == jumpMark
	}
	j := in.run.jumps[number]
	switch {
	case mark && j != nil:
		return j, nil
	case mark && number < in.clib.jumps:
		return nil, troublef(KindFault, "longjmp to a setjmp whose function has returned")
	case !in.view.ranges.own(buffer) && in.view.target != nil:
		return nil, unsupported("resume a frame that does not jump", "longjmp to a setjmp that native code called")
	}
	return nil, troublef(KindFault, "longjmp to %v, which no setjmp has filled", buffer)
}

// forget invalidates the jumps to a frame that is removed.
func (in *Interp) forget(fr *frame) {
	for _, j := range fr.jumps {
		in.view.release(frameCost(len(j.words)))
		delete(in.run.jumps, j.number)
	}
	fr.jumps = nil
}

// jumping is a pending longjmp.
type jumping struct {
	to    *jump
	value uint64
}

func (*jumping) Error() string { return "longjmp" }

func (f *jumping) perform(in *Interp, base int) error {
	j := f.to
	for in.frames.n > base && in.top() != j.fr {
		in.leave()
	}
	if in.frames.n == base {
		return f
	}
	fr := j.fr
	if err := in.work(8 * uint64(len(fr.w))); err != nil {
		return err
	}
	fr.abandon(true)
	fr.uncertain(j.words)
	if len(in.stack.live) > j.live {
		in.stack.unwind(j.live)
	}
	fr.pc, fr.next = j.pc, nil
	for k := range j.out.s.words {
		fr.w[j.out.at+k] = word{v: f.value >> min(64*k, 63) & maskAt(j.out.s.bits, k)}
		f.value = 0
	}
	fr.unfinished(true, func(b *block, n int64) { b.short -= n }) // the rest of the block runs again, so its instructions count again
	return nil
}

// uncertain makes the frame's values that changed since setjmp undefined: compiled code restores the old value if it is in a register, but not if it
// is in a stack slot (C17 7.13.2.1, paragraph 3). Memory, including allocas, keeps its content.
func (fr *frame) uncertain(then []word) {
	if slices.Equal(fr.w, then) {
		return
	}
	for _, s := range fr.fn.slots {
		if s.s.words > 0 && !slices.Equal(s.in(fr), then[s.at:s.at+s.s.words]) {
			s.s.fillUndefined(s.in(fr))
		}
	}
}

// jumpIntrinsics holds the intrinsics of clang's __builtin_setjmp and __builtin_longjmp. Their buffer has three words: the frame address, the address
// to continue at and the stack address. The program sets the first and the third (LLVM's "Exception Handling", llvm.eh.sjlj.setjmp).
var jumpIntrinsics = map[string]intrinsicDecoder{"eh.sjlj.setjmp": sjljSetJump, "eh.sjlj.longjmp": sjljLongJump}

func sjljSetJump(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if out.s.bits != 32 {
		return nil, wrongUse(i)
	}
	second := machine.Addr(d.in.layout.PointerBytes(0))
	return atPointer(i, args, 1, func(fr *frame, a machine.Addr) error {
		if err := fr.in.setJump(a+second, out); err != nil {
			return err
		}
		fr.w[out.at] = word{}
		return nil
	})
}

func sjljLongJump(d *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	second := machine.Addr(d.in.layout.PointerBytes(0))
	return atPointer(i, args, 1, func(fr *frame, a machine.Addr) error {
		j, err := fr.in.jumpAt(a + second)
		if err != nil {
			return err
		}
		return &jumping{j, 1}
	})
}
