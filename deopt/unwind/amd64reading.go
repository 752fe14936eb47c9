package unwind

import (
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// origin describes the source of the 64 bits in a register or in memory, in terms of the registers and memory at the start of the reading. The zero
// value means unknown.
type origin struct {
	kind originKind
	reg  uint8 // fromRegister, fromMemory: the DWARF number of a general register
	// fromMemory: offset of the eight bytes from reg. fromAligned: index of the instruction.
	at  int32
	add int32 // added to the source
}

type originKind uint8

// Kinds of [origin].
const (
	unknownOrigin originKind = iota
	fromRegister             // the initial value of reg
	fromMemory               // eight bytes of initial memory
	fromAligned              // the stack pointer after an instruction rounded it down
	fromNumber               // a constant in the code, upper half in at, lower half in add
)

// initially returns the initial value of a register.
func initially(reg machine.DWARFReg) origin { return origin{kind: fromRegister, reg: uint8(reg)} }

// constant returns the origin of a number in the code.
func constant(n uint64) origin {
	low := int32(n)
	return origin{kind: fromNumber, at: int32((n - uint64(int64(low))) >> 32), add: low}
}

// number returns the value of a constant origin.
func (o origin) number() (n uint64, ok bool) {
	return uint64(int64(o.at)<<32 + int64(o.add)), o.kind == fromNumber
}

// plus returns o with n added.
func (o origin) plus(n int64) origin {
	sum := int64(o.add) + n
	if o.kind == unknownOrigin || sum != int64(int32(sum)) || n != int64(int32(n)) {
		return origin{}
	}
	o.add = int32(sum)
	return o
}

// from returns the distance in bytes from p to o, if both have the same source register or memory.
func (o origin) from(p origin) (n int64, ok bool) {
	n = int64(o.add) - int64(p.add)
	o.add, p.add = 0, 0
	return n, o == p && o.kind != unknownOrigin
}

// word returns the initial eight bytes of memory at o.
func (o origin) word() origin {
	if o.kind != fromRegister {
		return origin{}
	}
	return origin{kind: fromMemory, reg: o.reg, at: o.add}
}

// slot is a memory range that was written since the reading began.
type slot struct {
	addr  origin
	size  int32
	value origin // known only for eight bytes
}

// overlaps reports whether a slot overlaps the size bytes at addr. Addresses with different sources are assumed not to overlap: where a function
// saves registers, it writes nothing else.
func (s *slot) overlaps(addr origin, size int32) bool {
	n, ok := addr.from(s.addr)
	return ok && n < int64(s.size) && -n < int64(size)
}

// covers reports whether a slot contains all of the size bytes at addr.
func (s *slot) covers(addr origin, size int32) bool {
	n, ok := addr.from(s.addr)
	return ok && n >= 0 && n+int64(size) <= int64(s.size)
}

// moment is the symbolic state of registers and stack slots before an instruction.
type moment struct {
	reached bool
	// forgot means that memory outside the slots is unknown. Then all slots have known values.
	forgot bool
	// called is the stack pointer at an earlier call, if all paths agree on it. impossible means that two calls of one frame cannot both be aligned.
	called     origin
	impossible bool
	// inner is used in departures: the address of the return address of a call that has not returned, if all paths agree on it.
	inner origin
	regs  [16]origin
	// stored lists the registers whose initial values were written to memory. Its index is the base register of the address.
	stored [16]amd64.Set
	// Slots in the order of the writes. Moments share slots, so they are never changed in place.
	slots []slot
}

// maxSlots bounds the slots of one moment. Functions save six registers; other slots are local variables.
const maxSlots = 32

// atStart returns the moment at the start of a reading: every register has its initial value.
func atStart() moment {
	m := moment{reached: true}
	for reg := range m.regs {
		m.regs[reg] = initially(machine.DWARFReg(reg))
	}
	return m
}

// load returns the origin of the eight bytes at addr.
func (m *moment) load(addr origin) origin {
	for i := len(m.slots) - 1; i >= 0; i-- {
		s := &m.slots[i]
		if s.addr == addr && s.size == 8 {
			return s.value
		}
		if s.overlaps(addr, 8) {
			return origin{}
		}
	}
	if m.forgot {
		return origin{}
	}
	return addr.word()
}

// holds reports whether memory has the value of a slot.
func (m *moment) holds(s slot) bool {
	if m.forgot { // then no two slots overlap
		return slices.Contains(m.slots, s)
	}
	return m.load(s.addr) == s.value
}

// store writes size bytes at addr. If the address is unknown, no slot changes: code reaches its saved registers through the stack pointer or a frame
// pointer.
func (m *moment) store(addr origin, size int32, value origin) {
	switch {
	case addr.kind == unknownOrigin:
		return
	case addr.kind == fromNumber && !m.keepsAt(value):
		m.drop(func(s slot) bool { return s.overlaps(addr, size) })
		return
	case value.kind == fromRegister && value.add == 0:
		m.stored[addr.reg] |= amd64.Of(machine.DWARFReg(value.reg))
	}
	written := slot{addr, size, value}
	switch {
	case m.forgot:
		m.drop(func(s slot) bool { return s.overlaps(addr, size) })
	default:
		m.drop(func(s slot) bool { return written.covers(s.addr, s.size) })
	}
	if value.kind == unknownOrigin && m.forgot {
		return
	}
	if len(m.slots) == maxSlots && !m.forgot {
		m.forget()
		m.drop(func(s slot) bool { return s.overlaps(addr, size) })
	}
	if value.kind != unknownOrigin && len(m.slots) < maxSlots || !m.forgot {
		m.slots = append(m.slots[:len(m.slots):len(m.slots)], written)
	}
}

// keepsAt reports whether to keep a value that is stored at a constant address. The address may be on a constant stack, or the value may be the stack
// pointer of the stack that the code leaves.
func (m *moment) keepsAt(value origin) bool {
	_, ofStack := value.from(initially(machine.AMD64.SP))
	return ofStack || m.switched()
}

// switched reports whether the stack pointer is a constant: the code has switched to another stack.
func (m *moment) switched() bool { return m.regs[machine.AMD64.SP].kind == fromNumber }

// forget drops the slots with unknown values and the slots that were partly overwritten.
func (m *moment) forget() {
	var kept []slot
	for _, s := range m.slots {
		if s.value.kind != unknownOrigin && m.load(s.addr) == s.value {
			kept = append(kept, s)
		}
	}
	m.slots, m.forgot = kept, true
}

// drop removes slots.
func (m *moment) drop(remove func(slot) bool) {
	if slices.ContainsFunc(m.slots, remove) {
		m.slots = slices.DeleteFunc(slices.Clone(m.slots), remove)
	}
}

// redZone is the number of bytes below the stack pointer that signal handlers do not change (System V ABI, AMD64 supplement, §3.2.2).
const redZone = 128

// loseBelow forgets memory more than some bytes below the stack pointer, where callees and signal handlers write, and memory at constant addresses on
// other stacks.
func (m *moment) loseBelow(bytes int64) {
	sp := m.regs[machine.AMD64.SP]
	below := func(s slot) bool {
		above, ok := s.addr.from(sp)
		return (ok && above < -bytes || !ok && s.addr.kind == fromNumber) && s.value.kind != unknownOrigin
	}
	if m.forgot {
		m.drop(below)
	} else if slices.ContainsFunc(m.slots, below) {
		m.slots = slices.Clone(m.slots)
		for i := range m.slots {
			if below(m.slots[i]) {
				m.slots[i].value = origin{}
			}
		}
	}
}

// meet merges the state of another path to the same place into m: values that differ become unknown. It reports whether m changed.
func (m *moment) meet(other *moment) bool {
	if !m.reached {
		*m = *other
		return true
	}
	changed := false
	for i := range m.regs {
		if m.regs[i] != other.regs[i] && m.regs[i].kind != unknownOrigin {
			m.regs[i], changed = origin{}, true
		}
	}
	for i := range m.stored {
		if both := m.stored[i] | other.stored[i]; both != m.stored[i] {
			m.stored[i], changed = both, true
		}
	}
	if m.called != other.called && m.called.kind != unknownOrigin {
		m.called, changed = origin{}, true
	}
	if m.inner != other.inner && m.inner.kind != unknownOrigin {
		m.inner, changed = origin{}, true
	}
	if other.forgot && !m.forgot {
		m.forget()
		changed = true
	}
	return m.meetSlots(other) || changed
}

// meetSlots does the same as meet for memory.
func (m *moment) meetSlots(other *moment) bool {
	if slices.Equal(m.slots, other.slots) {
		return false
	}
	changed := false
	kept := slices.Clone(m.slots)
	for i, s := range kept {
		if s.value.kind != unknownOrigin && !other.holds(s) {
			kept[i].value, changed = origin{}, true
		}
	}
	m.slots = kept
	if m.forgot {
		m.drop(func(s slot) bool { return s.value.kind == unknownOrigin })
		return changed
	}
	for _, t := range other.slots {
		if t.value.kind != unknownOrigin && m.load(t.addr) == t.value ||
			slices.ContainsFunc(m.slots, func(s slot) bool { return s.value.kind == unknownOrigin && s.covers(t.addr, t.size) }) {
			continue
		}
		// m assumes that this memory is unchanged, but the other path wrote it.
		m.store(t.addr, t.size, origin{})
		changed = true
	}
	return changed
}
