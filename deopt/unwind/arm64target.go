package unwind

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/isa/arm64"
)

// maxThunk bounds the instructions of a thunk: adrp, ldr, add and br in an entry of a procedure linkage table, after a bti.
const maxThunk = 6

// arm64Thunk returns the target of code that only jumps, or 0 for other code. Such code may change x16 and x17, as the code of linkers does (AAPCS64,
// "Use of IP0 and IP1 by the linker").
func (u *Unwinder) arm64Thunk(addr machine.Addr) machine.Addr {
	c := &ARM64Course{At: map[machine.Addr]*ARM64Moment{}, Returns: map[machine.Addr]*ARM64Moment{}, unwinder: u}
	begin := firstMoment()
	m := begin.clone()
	for at := range maxThunk {
		at := addr + machine.Addr(at*arm64.Size)
		next, _ := c.step(m, at)
		if len(next) != 1 || len(c.Returns) > 0 {
			return 0
		}
		for n := range m.regs {
			if n != 16 && n != 17 && m.regs[n] != begin.regs[n] {
				return 0
			}
		}
		if next[0] != at+arm64.Size {
			return next[0]
		}
	}
	return 0
}

// ThunkTo returns the final target of arm64 code that only jumps, following further thunks. For other code it returns the address itself.
func (u *Unwinder) ThunkTo(at machine.Addr) machine.Addr {
	for range maxStubs {
		to := u.arm64Thunk(at)
		if to == 0 {
			break
		}
		at = to
	}
	return at
}

// arm64Callee reports whether the call that returns to pc leads to the function at start, also through thunks or by a tail call of another function.
func (w *walk) arm64Callee(pc, start machine.Addr) calls {
	target, direct := isa.Of(w.Arch).CallTarget(w.Memory, w.unsigned(pc))
	if !direct {
		return callsUnknown
	}
	if w.arm64Leads(target, start) {
		return callsIt
	}
	if r := w.reach(start); r != nil && r.from(target) > excluded { // it may jump there
		return callsUnknown
	}
	return callsAnother
}

// arm64Leads reports whether code at one address leads to another address by jumps.
func (w *walk) arm64Leads(from, to machine.Addr) bool {
	for at, n := from, 0; at != 0 && n <= maxStubs; n++ {
		if at == to {
			return true
		}
		at = w.arm64Thunk(at)
	}
	return w.arm64Read(from).At[to] != nil
}

// arm64MayHaveCalled reports whether the call that returns to pc may have led to the function of f.
func (w *walk) arm64MayHaveCalled(pc machine.Addr, f *Frame) bool {
	target, direct := isa.Of(w.Arch).CallTarget(w.Memory, w.unsigned(pc))
	if !direct {
		return true
	}
	if start, _ := f.code.Functions.Function(f.lookup()); start == target || w.arm64Leads(target, start) {
		return true
	}
	return w.arm64Function(target).at(f) != nil
}

// arm64Target returns where the direct call leads that returns to pc, through thunks, and 0 for another call.
func (w *walk) arm64Target(pc machine.Addr) machine.Addr {
	var b [arm64.Size]byte
	if w.Memory.ReadMemory(b[:], pc-arm64.Size) != nil {
		return 0
	}
	code := binary.LittleEndian.Uint32(b[:])
	if code&0xfc000000 != 0x94000000 {
		return 0
	}
	return w.ThunkTo(pc - arm64.Size + machine.Addr(int64(int32(code<<6)>>4)))
}

// arm64Number returns the number in the register that the branch at an address goes to, through thunks; 0 if it is unknown, or was loaded from memory, which
// may have held another number before.
func (w *walk) arm64Number(course *ARM64Course, at machine.Addr) machine.Addr {
	if v := w.arm64BranchTo(course, at); v.n != 0 && v.reg != arm64Loaded {
		return w.ThunkTo(machine.Addr(v.n))
	}
	return 0
}

// arm64BranchTo returns the number in the register that the branch at an address goes to; zero if it is unknown.
func (w *walk) arm64BranchTo(course *ARM64Course, at machine.Addr) (v arm64Value) {
	var b [arm64.Size]byte
	m := course.At[at]
	if m == nil || w.Memory.ReadMemory(b[:], at) != nil {
		return v
	}
	if v := m.get(binary.LittleEndian.Uint32(b[:]) >> 5 & 31); v.kind == arm64Number {
		return v
	}
	return v
}
