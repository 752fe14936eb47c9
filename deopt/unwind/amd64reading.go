package unwind

import (
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// origin describes how the 64 bits in a register or in memory were computed from the registers and the memory at the start of the reading. The zero
// value means unknown.
type origin struct {
	kind originKind
	reg  uint8 // fromRegister, fromMemory: the DWARF number of a general register
	// fromMemory: where the eight bytes lay, from the value of reg. fromAligned: the
	// number of the instruction.
	at  int32
	add int32 // to be added to it all
}

type originKind uint8

// The sources that the bits were computed from.
const (
	untold       originKind = iota
	fromRegister            // the value that reg had
	fromMemory              // eight bytes of memory
	fromAligned             // the stack pointer as an instruction had rounded it down
	fromNumber              // nothing: the code has the number, its upper half in at and its lower in add
)

// initially returns the value that a register had at the start of the reading.
func initially(reg machine.DWARFReg) origin { return origin{kind: fromRegister, reg: uint8(reg)} }

// constant is a number that the code has.
func constant(n uint64) origin {
	low := int32(n)
	return origin{kind: fromNumber, at: int32((n - uint64(int64(low))) >> 32), add: low}
}

// number returns the value of an origin that is a constant.
func (o origin) number() (n uint64, ok bool) {
	return uint64(int64(o.at)<<32 + int64(o.add)), o.kind == fromNumber
}

// plus is o with n added.
func (o origin) plus(n int64) origin {
	sum := int64(o.add) + n
	if o.kind == untold || sum != int64(int32(sum)) || n != int64(int32(n)) {
		return origin{}
	}
	o.add = int32(sum)
	return o
}

// from returns how far o lies above p, in bytes, where both were made from the same.
func (o origin) from(p origin) (n int64, ok bool) {
	n = int64(o.add) - int64(p.add)
	o.add, p.add = 0, 0
	return n, o == p && o.kind != untold
}

// word returns the eight bytes of memory at o, as they were at the start of the reading.
func (o origin) word() origin {
	if o.kind != fromRegister {
		return origin{}
	}
	return origin{kind: fromMemory, reg: o.reg, at: o.add}
}

// slot is a run of memory that was written since the reading began.
type slot struct {
	addr  origin
	size  int32
	value origin // known only of eight bytes
}

// overlaps reports whether a slot has some of the size bytes at addr. Addresses that were made
// from different values are taken to be apart: where a function saves registers, it
// writes nothing else.
func (s *slot) overlaps(addr origin, size int32) bool {
	n, ok := addr.from(s.addr)
	return ok && n < int64(s.size) && -n < int64(size)
}

// covers reports whether a slot has all of the size bytes at addr.
func (s *slot) covers(addr origin, size int32) bool {
	n, ok := addr.from(s.addr)
	return ok && n >= 0 && n+int64(size) <= int64(s.size)
}

// moment holds what is known before an instruction.
type moment struct {
	reached bool
	// forgot means that memory without a slot holds nothing known. Then all slots have known values.
	forgot bool
	// called is the stack pointer at an earlier call, where all paths agree on it. impossible means that two calls of one frame cannot both be
	// aligned.
	called     origin
	impossible bool
	// inner is the address of the return address of a call that has not returned, in a way out of a function, where all paths agree.
	inner origin
	regs  [16]origin
	// stored are the registers whose values as they were when the reading began were written
	// to memory, by the register that the address was made from.
	stored [16]amd64.Set
	// In the order of the writes. Moments share slots: they are never changed in place.
	slots []slot
}

// maxSlots bounds the slots of one moment. Functions save six registers; the others are
// what they keep on the stack for themselves.
const maxSlots = 32

// atStart returns the moment where a reading begins: every register holds its initial value.
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
	if m.forgot { // no two slots overlap then
		return slices.Contains(m.slots, s)
	}
	return m.load(s.addr) == s.value
}

// store writes size bytes at addr. Where the address is not known, no slot is written:
// code reaches what it saved through the stack pointer or a frame pointer.
func (m *moment) store(addr origin, size int32, value origin) {
	switch {
	case addr.kind == untold:
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
	if value.kind == untold && m.forgot {
		return
	}
	if len(m.slots) == maxSlots && !m.forgot {
		m.forget()
		m.drop(func(s slot) bool { return s.overlaps(addr, size) })
	}
	if value.kind != untold && len(m.slots) < maxSlots || !m.forgot {
		m.slots = append(m.slots[:len(m.slots):len(m.slots)], written)
	}
}

// keepsAt reports whether a value is kept that is stored at an address which the code has: on a stack that lies there, or the stack pointer of
// the stack that the code leaves for another one.
func (m *moment) keepsAt(value origin) bool {
	_, ofStack := value.from(initially(machine.AMD64.SP))
	return ofStack || m.switched()
}

// switched reports whether the stack pointer leads to another stack, whose address the code has.
func (m *moment) switched() bool { return m.regs[machine.AMD64.SP].kind == fromNumber }

// forget drops the slots that only record that memory was changed, and the slots that were partly overwritten.
func (m *moment) forget() {
	var kept []slot
	for _, s := range m.slots {
		if s.value.kind != untold && m.load(s.addr) == s.value {
			kept = append(kept, s)
		}
	}
	m.slots, m.forgot = kept, true
}

// drop removes slots.
func (m *moment) drop(gone func(slot) bool) {
	if slices.ContainsFunc(m.slots, gone) {
		m.slots = slices.DeleteFunc(slices.Clone(m.slots), gone)
	}
}

// redZone is the number of bytes below the stack pointer a signal handler leaves alone (System V ABI, AMD64 supplement, §3.2.2).
const redZone = 128

// loseBelow forgets what lies further below the stack pointer than some bytes, where callees and signal handlers write, and what lies
// elsewhere at an address that the code has.
func (m *moment) loseBelow(bytes int64) {
	sp := m.regs[machine.AMD64.SP]
	below := func(s slot) bool {
		above, ok := s.addr.from(sp)
		return (ok && above < -bytes || !ok && s.addr.kind == fromNumber) && s.value.kind != untold
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

// meet keeps in m what also holds in other, on another path to the same place, and reports whether that is less than before.
func (m *moment) meet(other *moment) bool {
	if !m.reached {
		*m = *other
		return true
	}
	changed := false
	for i := range m.regs {
		if m.regs[i] != other.regs[i] && m.regs[i].kind != untold {
			m.regs[i], changed = origin{}, true
		}
	}
	for i := range m.stored {
		if both := m.stored[i] | other.stored[i]; both != m.stored[i] {
			m.stored[i], changed = both, true
		}
	}
	if m.called != other.called && m.called.kind != untold {
		m.called, changed = origin{}, true
	}
	if m.inner != other.inner && m.inner.kind != untold {
		m.inner, changed = origin{}, true
	}
	if other.forgot && !m.forgot {
		m.forget()
		changed = true
	}
	return m.meetSlots(other) || changed
}

// meetSlots is meet for memory.
func (m *moment) meetSlots(other *moment) bool {
	if slices.Equal(m.slots, other.slots) {
		return false
	}
	changed := false
	kept := slices.Clone(m.slots)
	for i, s := range kept {
		if s.value.kind != untold && !other.holds(s) {
			kept[i].value, changed = origin{}, true
		}
	}
	m.slots = kept
	if m.forgot {
		m.drop(func(s slot) bool { return s.value.kind == untold })
		return changed
	}
	for _, t := range other.slots {
		if t.value.kind != untold && m.load(t.addr) == t.value ||
			slices.ContainsFunc(m.slots, func(s slot) bool { return s.value.kind == untold && s.covers(t.addr, t.size) }) {
			continue
		}
		// Memory that m takes as unchanged was written on the other path.
		m.store(t.addr, t.size, origin{})
		changed = true
	}
	return changed
}
