package interp

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// load reads a value of shape s from memory into w.
func (in *Interp) load(addr machine.Addr, s *shape, w []word) error {
	if in.loadLanes(addr, s, w) {
		return nil
	}
	var small [2][16]byte
	for _, l := range s.leaf {
		data, shadow := l.buffers(&small)
		if err := in.view.read(data, shadow, addr+machine.Addr(l.off)); err != nil {
			return err
		}
		l.decode(w, data, shadow, in.layout.BigEndian)
	}
	return nil
}

// store writes a value of shape s to memory. Padding bytes keep their content.
func (in *Interp) store(addr machine.Addr, s *shape, w []word) error {
	if in.storeLanes(addr, s, w) {
		return nil
	}
	var small [2][16]byte
	for _, l := range s.leaf {
		data, shadow := l.buffers(&small)
		l.encode(data, shadow, w, in.layout.BigEndian)
		if err := in.view.write(addr+machine.Addr(l.off), data, shadow); err != nil {
			return err
		}
	}
	return nil
}

// lanes returns the size in bytes of one element of a vector and of the whole vector. It returns 0, 0 where the vector crosses a page boundary, or
// plain does not support its elements.
func (in *Interp) lanes(addr machine.Addr, s *shape) (size, all int) {
	if s.typ.Kind != ir.VectorKind {
		return 0, 0
	}
	size = in.plain(s.elem)
	if all = size * s.n; all > pageSize-int(addr%pageSize) {
		return 0, 0
	}
	return size, all
}

// loadLanes loads a whole vector at once. It returns false where load must do it lane by lane, for example because some bytes cannot be read.
func (in *Interp) loadLanes(addr machine.Addr, s *shape, w []word) bool {
	size, all := in.lanes(addr, s)
	if size == 0 {
		return false
	}
	p, err := in.view.touch(addr, all, false)
	if err != nil {
		return false
	}
	m := maskAt(8*size, 0)
	for k, off := 0, int(addr%pageSize); k < s.n; k, off = k+1, off+size {
		w[k] = loaded(word{little(p.data[off : off+size]), little(p.shadow[off : off+size])}, m)
	}
	return true
}

// storeLanes stores a whole vector at once. It returns false outside of the interpreter's own memory, because the view counts stores there.
func (in *Interp) storeLanes(addr machine.Addr, s *shape, w []word) bool {
	size, all := in.lanes(addr, s)
	if size == 0 {
		return false
	}
	p, err := in.view.touch(addr, all, true)
	if err != nil || p.kind != ownPage {
		return false
	}
	for k, off := 0, int(addr%pageSize); k < s.n; k, off = k+1, off+size {
		putLittle(p.data[off:off+size], w[k].v)
		putLittle(p.shadow[off:off+size], w[k].u)
	}
	return true
}

// plain returns the size in bytes of a shape that is one integer, float or pointer of 1, 2, 4 or 8 bytes. It returns 0 for any other shape, and
// for a big-endian layout.
func (in *Interp) plain(s *shape) int {
	switch {
	case in.layout.BigEndian:
		return 0
	case s.bits == 8, s.bits == 16, s.bits == 32, s.bits == 64:
		return s.bits / 8
	}
	return 0
}

// loadPlain is load for the shapes for which plain returns a size.
func (in *Interp) loadPlain(addr machine.Addr, s *shape, size int) (word, error) {
	off := int(addr % pageSize)
	if off+size > pageSize {
		var w [1]word
		err := in.load(addr, s, w[:])
		return w[0], err
	}
	p, err := in.view.touch(addr, size, false)
	if err != nil {
		return word{}, err
	}
	return loaded(word{little(p.data[off : off+size]), little(p.shadow[off : off+size])}, maskAt(8*size, 0)), nil
}

// storePlain is store for the shapes for which plain returns a size.
func (in *Interp) storePlain(addr machine.Addr, s *shape, size int, w word) error {
	off := int(addr % pageSize)
	if off+size > pageSize {
		return in.store(addr, s, []word{w})
	}
	p, err := in.view.touch(addr, size, true)
	if err != nil {
		return err
	}
	if p.kind == targetPage {
		in.view.writes++
		p.note(off, size)
	}
	putLittle(p.data[off:off+size], w.v)
	putLittle(p.shadow[off:off+size], w.u)
	return nil
}

func little(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func putLittle(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func little16(b *[pageSize]byte, off uint64) uint16 {
	return binary.LittleEndian.Uint16(b[off : off+2])
}

func little32(b *[pageSize]byte, off uint64) uint32 {
	return binary.LittleEndian.Uint32(b[off : off+4])
}

func little64(b *[pageSize]byte, off uint64) uint64 {
	return binary.LittleEndian.Uint64(b[off : off+8])
}

func putLittle16(b *[pageSize]byte, off uint64, v uint16) {
	binary.LittleEndian.PutUint16(b[off:off+2], v)
}

func putLittle32(b *[pageSize]byte, off uint64, v uint32) {
	binary.LittleEndian.PutUint32(b[off:off+4], v)
}

func putLittle64(b *[pageSize]byte, off uint64, v uint64) {
	binary.LittleEndian.PutUint64(b[off:off+8], v)
}

// pointer reads an address from a slot of the frame. It returns an error if a bit of the address is undefined.
func pointer(fr *frame, at slot) (machine.Addr, error) {
	w := fr.w[at.at]
	if w.u != 0 {
		return 0, notKnown([]word{w}, "the address")
	}
	return machine.Addr(w.v), nil
}

// pointers reads two addresses, with the errors of pointer.
func pointers(fr *frame, a, b slot) (p, q machine.Addr, err error) {
	if p, err = pointer(fr, a); err == nil {
		q, err = pointer(fr, b)
	}
	return p, q, err
}

// segments are the address spaces in which x86 adds a segment register to an address (LLVM's "X86 address spaces supported").
var segments = map[int]string{256: "gs", 257: "fs", 258: "ss"}

func ofX86(triple string) bool { return strings.HasPrefix(triple, "x86_64") || ir.I386(triple) }

// memory decodes alloca, load, store, fence and the atomic instructions.
func (d *decoder) memory(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	want := map[ir.Op]int{ir.OpLoad: 1, ir.OpStore: 2, ir.OpCmpXchg: 3, ir.OpAtomicRMW: 2}
	if n, ok := want[i.Op]; ok && len(args) != n {
		return nil, troublef(KindModule, "%v with %d operands", i.Op, len(args))
	}
	// The address is the first operand; only a store has it as the second.
	if at := i.Op == ir.OpStore; i.Op != ir.OpAlloca && i.Op != ir.OpFence {
		p := args[0]
		if at {
			p = args[1]
		}
		if p.s.typ.Kind != ir.PointerKind || p.s.words != 1 {
			return nil, troublef(KindModule, "%v through an operand of type %v; expected a pointer", i.Op, p.s.typ)
		}
		if name := segments[p.s.typ.AddrSpace]; name != "" && ofX86(i.Block.Func.Module.Triple) {
			return nil, unsupported("", "memory at the segment register %s", name)
		}
	}
	switch i.Op {
	case ir.OpAlloca:
		return d.alloca(i, args, out)
	case ir.OpLoad:
		return d.load(i, args[0], out)
	case ir.OpStore:
		return d.store(i, args[0], args[1])
	case ir.OpCmpXchg:
		return d.cmpxchg(args, out)
	case ir.OpAtomicRMW:
		return d.atomicRMW(i, args, out)
	}
	// The interpreter runs one thread, so a fence orders nothing.
	return func(*frame) error { return nil }, nil
}

func (d *decoder) alloca(i *ir.Instr, args []slot, out slot) (step, error) {
	if i.Elem == nil || out.s.words != 1 {
		return nil, troublef(KindModule, "alloca without a type")
	}
	size := d.in.layout.Size(i.Elem)
	align := max(i.Align, d.in.layout.Align(i.Elem))
	if size == ir.NoSize {
		return nil, troublef(KindModule, "alloca of %v, which has no size", i.Elem)
	}
	// Fixed-size allocas of the entry block are part of the frame. No call releases them; a call does release the memory of an inalloca argument.
	fixed := i.Block.Index == 0 && i.Flags&ir.InAlloca == 0
	if len(i.Args) > 0 && fixed {
		_, fixed = i.Args[0].(*ir.Const)
	}
	return func(fr *frame) error {
		total := size
		if len(args) > 0 {
			w := args[0].in(fr)
			if !defined(w) {
				return notKnown(w, "the number of elements")
			}
			n := toBig(w)
			if !n.IsUint64() || size > 0 && n.Uint64() > math.MaxUint64/size {
				return troublef(KindMemory, "alloca of %v elements of %d bytes", n, size)
			}
			total = n.Uint64() * size
		}
		a, err := fr.in.stack.alloc(total, align)
		if err != nil {
			return err
		}
		fr.in.stack.live[len(fr.in.stack.live)-1].fixed = fixed
		fr.w[out.at] = word{v: uint64(a)}
		return fr.in.work(total)
	}, nil
}

func (d *decoder) load(i *ir.Instr, from, out slot) (step, error) {
	if size := d.in.plain(out.s); size > 0 {
		return func(fr *frame) error {
			a, err := pointer(fr, from)
			if err != nil {
				return err
			}
			if err := fr.in.aligned(a, i, out.s); err != nil {
				return err
			}
			fr.w[out.at], err = fr.in.loadPlain(a, out.s, size)
			return err
		}, nil
	}
	return func(fr *frame) error {
		a, err := pointer(fr, from)
		if err != nil {
			return err
		}
		if err := fr.in.aligned(a, i, out.s); err != nil {
			return err
		}
		return fr.in.load(a, out.s, out.in(fr))
	}, nil
}

func (d *decoder) store(i *ir.Instr, v, to slot) (step, error) {
	if size := d.in.plain(v.s); size > 0 {
		return func(fr *frame) error {
			a, err := pointer(fr, to)
			if err != nil {
				return err
			}
			if err := fr.in.aligned(a, i, v.s); err != nil {
				return err
			}
			return fr.in.storePlain(a, v.s, size, fr.w[v.at])
		}, nil
	}
	return func(fr *frame) error {
		a, err := pointer(fr, to)
		if err != nil {
			return err
		}
		if err := fr.in.aligned(a, i, v.s); err != nil {
			return err
		}
		return fr.in.store(a, v.s, v.in(fr))
	}, nil
}

// aligned returns an error for a misaligned access if [Options].Strict is set. LLVM's semantics leave such an access undefined (LangRef, "load"),
// but most processors perform it.
func (in *Interp) aligned(a machine.Addr, i *ir.Instr, s *shape) error {
	if !in.opt.Strict {
		return nil
	}
	align := i.Align
	if align == 0 {
		align = in.layout.Align(s.typ)
	}
	if align > 1 && uint64(a)%uint64(align) != 0 {
		return &trouble{KindFault, &FaultError{Addr: a, Size: in.layout.StoreSize(s.typ), Write: i.Op == ir.OpStore,
			Why: fmt.Sprintf("the address is not a multiple of %d, as the instruction promises", align)}}
	}
	return nil
}

// cmpxchg decodes a cmpxchg. It yields the old value, and whether that equals the expected value.
func (d *decoder) cmpxchg(args []slot, out slot) (step, error) {
	at, want, fresh := args[0], args[1], args[2]
	if out.s.n != 2 || out.s.field == nil || !alike(out.s.field[0], want.s) || !alike(want.s, fresh.s) || want.s.bits == 0 {
		return nil, troublef(KindModule, "cmpxchg of %v", want.s.typ)
	}
	return func(fr *frame) error {
		a, err := pointer(fr, at)
		if err != nil {
			return err
		}
		old := make([]word, want.s.words)
		if err := fr.in.load(a, want.s, old); err != nil {
			return err
		}
		expected := want.in(fr)
		if !defined(old) || !defined(expected) {
			return notKnown(append(old, expected...), "what cmpxchg compares")
		}
		same := true
		for k := range old {
			same = same && old[k] == expected[k]
		}
		if same {
			if err := fr.in.store(a, fresh.s, fresh.in(fr)); err != nil {
				return err
			}
		}
		copy(fr.w[out.at:], old)
		fr.w[out.at+out.s.at[1]] = bit(same)
		return nil
	}, nil
}

func (d *decoder) atomicRMW(i *ir.Instr, args []slot, out slot) (step, error) {
	at, v := args[0], args[1]
	if !alike(v.s, out.s) {
		return nil, troublef(KindModule, "atomicrmw of %v", v.s.typ)
	}
	if lane, _ := v.s.lane(); i.Pred != "xchg" {
		if r := d.rulesOf(lane.typ.Kind); r != nil {
			return nil, r.unlike("atomicrmw " + i.Pred)
		}
	}
	f, err := rmw(i.Pred, v.s)
	if err != nil {
		return nil, err
	}
	return func(fr *frame) error {
		a, err := pointer(fr, at)
		if err != nil {
			return err
		}
		old, next := make([]word, v.s.words), make([]word, v.s.words)
		if err := fr.in.load(a, v.s, old); err != nil {
			return err
		}
		if err := f(next, old, v.in(fr)); err != nil {
			return err
		}
		copy(out.in(fr), old)
		return fr.in.store(a, v.s, next)
	}, nil
}
