package unwind

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/isa/arm64"
)

// maxThunk bounds the instructions of a thunk: adrp, ldr, add and br in an entry of a procedure linkage table, after a bti.
const maxThunk = 6

// A thunk is code that only jumps. Such code may change x16 and x17, as the code of linkers does (AAPCS64, "Use of IP0 and IP1 by the linker").
type thunk struct {
	to      machine.Addr
	pointer bool // the target was read from memory, which may have held another one before
}

// arm64Thunk reads a thunk at an address. It returns false for other code.
func (u *Unwinder) arm64Thunk(addr machine.Addr) (t thunk, is bool) {
	c := &ARM64Course{At: map[machine.Addr]*ARM64Moment{}, Returns: map[machine.Addr]*ARM64Moment{}, unwinder: u}
	begin := firstMoment()
	m := begin.clone()
	for at := range maxThunk {
		at := addr + machine.Addr(at*arm64.Size)
		next, _ := c.step(m, at)
		if len(next) != 1 || len(c.Returns) > 0 {
			return thunk{}, false
		}
		for n := range m.regs {
			if n != 16 && n != 17 && m.regs[n] != begin.regs[n] {
				return thunk{}, false
			}
		}
		if next[0] != at+arm64.Size {
			through, _ := u.jumpsThrough(m, at)
			return thunk{next[0], through.reg == arm64Loaded}, next[0] != 0
		}
	}
	return thunk{}, false
}

// jumpsThrough returns the value of the register that the branch at an address goes to. It returns false for a direct jump.
func (u *Unwinder) jumpsThrough(m *ARM64Moment, at machine.Addr) (v arm64Value, is bool) {
	var b [arm64.Size]byte
	if u.Memory.ReadMemory(b[:], at) != nil {
		return v, false
	}
	if _, direct := arm64.Jump(b[:], at); direct {
		return v, false
	}
	return m.get(binary.LittleEndian.Uint32(b[:]) >> 5 & 31), true
}

// afterThunks follows thunks from an address to code that is not a thunk. certain is false if a thunk reads its target from memory, which may have
// held another target before. The pointers of procedure linkage tables are certain: the dynamic linker led to the same function before.
func (u *Unwinder) afterThunks(at machine.Addr) (to machine.Addr, certain bool) {
	certain = true
	for range maxStubs {
		t, is := u.arm64Thunk(at)
		if !is {
			break
		}
		certain = certain && (!t.pointer || u.isLinkage(at))
		at = t.to
	}
	return at, certain
}

// isLinkage reports whether an address is in a procedure linkage table.
func (u *Unwinder) isLinkage(at machine.Addr) bool {
	code := u.Finder.Code(at)
	return code.Functions != nil && code.Functions.Linkage(at)
}

// callee reports whether the call that returns to pc leads to the function at start, directly, through thunks, or through a function that
// tail-calls it.
func (c *arm64Code) callee(pc, start machine.Addr) calls {
	target, direct := isa.Of(c.Arch).CallTarget(c.Memory, c.unsigned(pc))
	if !direct {
		return callsUnknown
	}
	if c.leads(target, start) {
		return callsIt
	}
	if r := c.reach(start); r != nil && r.from(target) > excluded { // the target may jump to start
		return callsUnknown
	}
	return callsAnother
}

// leads reports whether code at one address leads to another address by jumps.
func (c *arm64Code) leads(from, to machine.Addr) bool {
	for at, n := from, 0; at != 0 && n <= maxStubs; n++ {
		if at == to {
			return true
		}
		t, _ := c.arm64Thunk(at)
		at = t.to
	}
	return c.read(from).At[to] != nil
}

// arm64MayHaveCalled reports whether the call that returns to pc may have led to the function of f.
func (u *codeReader) arm64MayHaveCalled(pc machine.Addr, f *Frame) bool {
	target, direct := isa.Of(u.Arch).CallTarget(u.Memory, u.unsigned(pc))
	if !direct {
		return true
	}
	if start, _ := f.code.Functions.Function(f.lookup()); start == target || u.arm64.leads(target, start) {
		return true
	}
	return u.arm64Function(target).at(f) != nil
}

// target returns the target of the direct call that returns to pc, and 0 for another call.
func (c *arm64Code) target(pc machine.Addr) machine.Addr {
	var b [arm64.Size]byte
	if c.Memory.ReadMemory(b[:], pc-arm64.Size) != nil {
		return 0
	}
	code := binary.LittleEndian.Uint32(b[:])
	if code&0xfc000000 != 0x94000000 {
		return 0
	}
	return arm64BL(code, pc-arm64.Size)
}

// number returns the target of a branch through a register if the course gives it, and 0 otherwise. A number that was loaded from memory does not
// count, because memory may have held another number before.
func (c *arm64Code) number(course *ARM64Course, at machine.Addr) machine.Addr {
	m := course.At[at]
	if m == nil {
		return 0
	}
	v, is := c.jumpsThrough(m, at)
	if !is || v.kind != arm64Number || v.reg == arm64Loaded {
		return 0
	}
	return machine.Addr(v.n)
}
