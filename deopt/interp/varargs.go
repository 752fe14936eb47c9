package interp

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// A va_list of x86-64 (System V psABI, AMD64, §3.5.7) holds the positions of the next arguments of each kind, and the addresses of two areas:
//
//	0   gp_offset          i32  of the next general register in the save area; 48 after the last
//	4   fp_offset          i32  of the next vector register in it; 176: none is left
//	8   overflow_arg_area  ptr  to the next argument that was passed in memory
//	16  reg_save_area      ptr  to 6 general registers of 8 bytes, 8 vector registers of 16
const (
	vaSize     = 24
	vaGeneral  = 48  // end of the general registers
	vaVector   = 176 // end of the vector registers
	vaOverflow = 8
	vaSaved    = 16
)

// vaArea holds the initial va_list of one frame. va_start copies it.
type vaArea struct{ list [vaSize]byte }

// vaIntrinsics holds the intrinsics of <stdarg.h> (LangRef, "Variable Argument Handling Intrinsics").
var vaIntrinsics = map[string]intrinsicDecoder{"va_start": vaStart, "va_copy": vaCopy, "va_end": vaEnd}

// On 32-bit x86 a va_list is a pointer to the next argument. All arguments are in memory, one after the other, each in a whole number of words
// (System V psABI, i386, §2.2.3; Microsoft's compilers do the same).
const vaWord = 4

// listSize returns the size of the target's va_list.
func (in *Interp) listSize() uint64 {
	if in.opt.Arch.Pointer == vaWord {
		return vaWord
	}
	return vaSize
}

// knowsLists reports whether the interpreter supports the target's layout of va_lists.
func (in *Interp) knowsLists() bool {
	return in.opt.Arch.Name == machine.AMD64.Name || in.opt.Arch.Name == machine.I386.Name
}

// sysV returns an error if the target's layout of va_lists is not supported.
func (d *decoder) sysV(what string) error {
	if !d.in.knowsLists() {
		return unsupported("run a caller that is not variadic", "%s for %s, whose va_list has another layout,", what, d.in.opt.Arch.Title)
	}
	return nil
}

func vaStart(d *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if err := d.sysV("llvm.va_start"); err != nil {
		return nil, err
	}
	fn := d.fn.ir
	if !fn.Sig.Variadic {
		return nil, troublef(KindModule, "llvm.va_start in @%s, which is not variadic", fn.Name)
	}
	return atPointer(i, args, 1, func(fr *frame, to machine.Addr) (err error) {
		if fr.variadic == nil {
			return unsupported("resume its caller", "llvm.va_start in a resumed frame, whose variadic arguments are unknown,")
		}
		if fr.va == nil {
			if fr.va, err = fr.spill(); err != nil {
				return err
			}
		}
		return fr.in.view.write(to, fr.va.list[:fr.in.listSize()], nil)
	})
}

func vaCopy(d *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if !scalars(args, 2) {
		return nil, wrongUse(i)
	}
	if err := d.sysV("llvm.va_copy"); err != nil {
		return nil, err
	}
	return func(fr *frame) error {
		to, from, err := pointers(fr, args[0], args[1])
		if err != nil {
			return err
		}
		return fr.in.move(to, from, fr.in.listSize())
	}, nil
}

// vaEnd makes the list's content undefined, so that a read after va_end fails.
func vaEnd(d *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if err := d.sysV("llvm.va_end"); err != nil {
		return nil, err
	}
	return atPointer(i, args, 1, func(fr *frame, to machine.Addr) error {
		return fr.in.set(to, word{u: 0xff}, fr.in.listSize())
	})
}

// passing holds the number of general and of vector registers that the arguments so far use.
type passing struct{ general, vector uint64 }

// spill stores the variadic arguments of a frame in memory, and returns a va_list that refers to them.
func (fr *frame) spill() (*vaArea, error) {
	if fr.in.opt.Arch.Pointer != vaWord {
		return fr.in.spill(fr.fn.ir, fr.variadic)
	}
	if n := len(fr.fn.params); n > 0 && fr.fn.ir.Params[n-1].Attrs.InAlloca != nil && len(fr.variadic) == 0 {
		return fr.inAllocaList(n - 1)
	}
	return fr.in.spillWords(fr.variadic)
}

// inAllocaList returns a va_list for a variadic function with an inalloca parameter n. The caller passes all arguments in one struct; the variadic
// ones follow the part that the callee declares.
func (fr *frame) inAllocaList(n int) (*vaArea, error) {
	a, err := pointer(fr, fr.fn.params[n])
	if err != nil {
		return nil, err
	}
	size := fr.in.layout.Size(fr.fn.ir.Params[n].Attrs.InAlloca)
	area := &vaArea{}
	fr.in.opt.Arch.Order.PutUint32(area.list[:], uint32(a)+uint32((size+vaWord-1)&^(vaWord-1)))
	return area, nil
}

// spillWords stores variadic arguments in memory in the layout of 32-bit x86.
func (in *Interp) spillWords(args []Value) (*vaArea, error) {
	over := overflow{word: vaWord}
	for _, a := range args {
		if a.s.memory != nil {
			if err := in.passCopy(&over, a); err != nil {
				return nil, err
			}
			continue
		}
		for _, part := range pieces(a.s, 0) {
			data, shadow := in.image(part.s, a.w[part.at:part.at+part.s.words])
			size := roundUpTo(in.layout.StoreSize(part.s.typ), vaWord)
			over.add(data[:size], shadow[:size], part.wordAlign())
		}
	}
	memory, err := in.stack.allocKept(uint64(len(over.data)), 16)
	if err != nil {
		return nil, err
	}
	area := &vaArea{}
	in.opt.Arch.Order.PutUint32(area.list[:], uint32(memory))
	return area, in.view.write(memory, over.data, over.shadow)
}

// wordAlign returns the alignment of a piece on 32-bit x86: 16 for vectors of 16 bytes or more, else 4.
func (p piece) wordAlign() int {
	if p.s.typ.Kind == ir.VectorKind && vectorBytes(p.s) >= 16 {
		return 16
	}
	return vaWord
}

// spill stores variadic arguments in memory: a save area for those passed in registers, and an overflow area for the others (psABI §3.2.3). The named
// arguments of fn use registers first.
func (in *Interp) spill(fn *ir.Func, args []Value) (*vaArea, error) {
	var p passing
	for _, n := range fn.Params {
		s, err := in.shapes.of(n.Typ)
		if err != nil {
			return nil, err
		}
		if !n.Attrs.InMemory() {
			for _, part := range pieces(s, 0) {
				p.take(part.s)
			}
		}
	}
	start := p
	regs := make([]byte, vaVector)
	regsShadow := make([]byte, vaVector)
	over := overflow{word: 8}
	for k := range regsShadow {
		regsShadow[k] = 0xff // a register without an argument is undefined
	}
	for _, a := range args {
		if a.s.memory != nil {
			if err := in.passCopy(&over, a); err != nil {
				return nil, err
			}
			continue
		}
		for _, part := range pieces(a.s, 0) {
			data, shadow := in.image(part.s, a.w[part.at:part.at+part.s.words])
			if at, ok := p.take(part.s); ok {
				copy(regs[at:], data)
				copy(regsShadow[at:], shadow)
			} else {
				over.add(data, shadow, part.align(in))
			}
		}
	}
	saved, err := in.stack.allocKept(vaVector, 16)
	if err != nil {
		return nil, err
	}
	if err := in.view.write(saved, regs, regsShadow); err != nil {
		return nil, err
	}
	memory, err := in.stack.allocKept(uint64(len(over.data)), over.align)
	if err != nil {
		return nil, err
	}
	if err := in.view.write(memory, over.data, over.shadow); err != nil {
		return nil, err
	}
	area := &vaArea{}
	order := in.opt.Arch.Order
	order.PutUint32(area.list[0:], uint32(8*start.general))
	order.PutUint32(area.list[4:], uint32(vaGeneral+16*start.vector))
	order.PutUint64(area.list[vaOverflow:], uint64(memory))
	order.PutUint64(area.list[vaSaved:], uint64(saved))
	return area, nil
}

// piece is a part of an argument that is passed separately, because LLVM splits structs and arrays.
type piece struct {
	s  *shape
	at int // first word
}

func pieces(s *shape, at int) []piece {
	if s.n == 0 || s.typ.Kind == ir.VectorKind {
		return []piece{{s, at}}
	}
	var list []piece
	for i := range s.n {
		part, first, _ := s.part(i)
		list = append(list, pieces(part, at+first)...)
	}
	return list
}

// take allocates registers for a piece, and returns their offset in the save area. It returns false if too few are left. It also returns false for
// x86_fp80 and for vectors of more than 16 bytes, which are never passed in registers.
func (p *passing) take(s *shape) (uint64, bool) {
	switch k := s.typ.Kind; {
	case s.words == 0:
	case k == ir.X86FP80Kind, k == ir.VectorKind && len(s.leaf) > 0 && vectorBytes(s) > 16:
	case k == ir.VectorKind, s.typ.Float():
		if p.vector < 8 {
			p.vector++
			return vaGeneral + 16*(p.vector-1), true
		}
	case p.general+uint64(s.words) <= 6:
		p.general += uint64(s.words)
		return 8 * (p.general - uint64(s.words)), true
	}
	return 0, false
}

func vectorBytes(s *shape) uint64 {
	last := s.leaf[len(s.leaf)-1]
	return last.off + uint64(last.bytes())
}

// align returns the alignment of a piece in the overflow area: that of its type, or 16 for an integer of more than 64 bits, as for C's __int128.
func (p piece) align(in *Interp) int {
	if p.s.typ.Kind == ir.IntKind && p.s.bits > 64 {
		return 16
	}
	return in.layout.Align(p.s.typ)
}

// image returns the bytes of a value in memory, extended to 8 bytes. The bits above the value are undefined.
func (in *Interp) image(s *shape, w []word) (data, shadow []byte) {
	size := roundUp8(in.layout.StoreSize(s.typ))
	data, shadow = make([]byte, size), make([]byte, size)
	for k := range shadow {
		shadow[k] = 0xff
	}
	for _, l := range s.leaf {
		l.encode(data[l.off:], shadow[l.off:], w, in.layout.BigEndian)
	}
	return data, shadow
}

func roundUp8(n uint64) uint64 { return roundUpTo(n, 8) }

func roundUpTo(n, word uint64) uint64 { return (n + word - 1) &^ (word - 1) }

// overflow collects the arguments that are passed in memory. Each starts at a multiple of word bytes.
type overflow struct {
	data, shadow []byte
	align        int
	word         int
}

// add appends an argument whose size is a multiple of word.
func (o *overflow) add(data, shadow []byte, align int) {
	o.align = max(o.align, align, 16)
	for len(o.data)%max(align, o.word) != 0 {
		o.data, o.shadow = append(o.data, 0), append(o.shadow, 0xff)
	}
	o.data, o.shadow = append(o.data, data...), append(o.shadow, shadow...)
}

// passCopy appends a copy of the memory of a byval argument.
func (in *Interp) passCopy(o *overflow, a Value) error {
	from, ok := a.Uint()
	size := roundUpTo(a.s.memory.size, uint64(o.word))
	if !ok {
		return undefined("the address of a byval argument")
	}
	if size > in.view.limit {
		return troublef(KindMemory, "a byval argument of %d bytes is more than the %d bytes of memory allowed", size, in.view.limit)
	}
	data, shadow := make([]byte, size), make([]byte, size)
	for k := a.s.memory.size; k < size; k++ {
		shadow[k] = 0xff
	}
	if err := in.view.read(data[:a.s.memory.size], shadow[:a.s.memory.size], machine.Addr(from)); err != nil {
		return err
	}
	o.add(data, shadow, a.s.memory.align)
	return nil
}

// vaArg decodes va_arg. clang does not emit va_arg for x86-64, but code that reads the list.
func (d *decoder) vaArg(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	if args[0].s.typ.Kind != ir.PointerKind {
		return nil, troublef(KindModule, "va_arg of %v", args[0].s.typ)
	}
	if err := d.sysV("va_arg"); err != nil {
		return nil, err
	}
	if out.s.bits == 0 || out.s.bits > 128 {
		return nil, unsupported("read the parts of the value one by one", "va_arg of type %v", out.s.typ)
	}
	return func(fr *frame) error {
		list, err := pointer(fr, args[0])
		if err != nil {
			return err
		}
		a, err := fr.in.vaNext(list, out.s)
		if err != nil {
			return err
		}
		return fr.in.load(a, out.s, out.in(fr))
	}, nil
}

// vaNext returns the address of the next argument of a va_list, whose shape is s, and advances the list (psABI §3.5.7, "The va_arg Macro").
func (in *Interp) vaNext(list machine.Addr, s *shape) (machine.Addr, error) {
	if in.opt.Arch.Pointer == vaWord {
		return in.vaNextWord(list, s)
	}
	var raw [vaSize]byte
	if err := in.view.read(raw[:], nil, list); err != nil {
		return 0, err
	}
	order := in.opt.Arch.Order
	used := passing{uint64(order.Uint32(raw[0:])), uint64(order.Uint32(raw[4:]))}
	// Convert the offsets to numbers of used registers. Clamp them first, because a corrupt list may have any offset.
	now := passing{min(used.general, vaGeneral) / 8, (min(max(used.vector, vaGeneral), vaVector) - vaGeneral) / 16}
	if at, ok := now.take(s); ok {
		order.PutUint32(raw[0:], uint32(8*now.general))
		order.PutUint32(raw[4:], uint32(vaGeneral+16*now.vector))
		return machine.Addr(order.Uint64(raw[vaSaved:]) + at), in.view.write(list, raw[:8], nil)
	}
	a := alignUp(machine.Addr(order.Uint64(raw[vaOverflow:])), max(piece{s: s}.align(in), 8))
	order.PutUint64(raw[vaOverflow:], uint64(a)+roundUp8(in.layout.StoreSize(s.typ)))
	return a, in.view.write(list+vaOverflow, raw[vaOverflow:vaSaved], nil)
}

// allocKept is alloc for memory that is released when the frame is popped, and not by a stackrestore.
func (s *stack) allocKept(size uint64, align int) (machine.Addr, error) {
	a, err := s.alloc(size, align)
	if err == nil {
		s.live[len(s.live)-1].kept = true
	}
	return a, err
}

// vaNextWord is vaNext for 32-bit x86.
func (in *Interp) vaNextWord(list machine.Addr, s *shape) (machine.Addr, error) {
	var raw [vaWord]byte
	if err := in.view.read(raw[:], nil, list); err != nil {
		return 0, err
	}
	order := in.opt.Arch.Order
	a, next := in.vaWords(machine.Addr(order.Uint32(raw[:])), s)
	order.PutUint32(raw[:], uint32(next))
	return a, in.view.write(list, raw[:], nil)
}

// vaWords returns the address of an argument of shape s, and the address of the next one.
func (in *Interp) vaWords(at machine.Addr, s *shape) (a, next machine.Addr) {
	a = alignUp(at, piece{s: s}.wordAlign())
	return a, a + machine.Addr(roundUpTo(in.layout.StoreSize(s.typ), vaWord))
}
