package unwind

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// apply changes m to the state after an instruction. number identifies the instruction in its reading.
func (m *moment) apply(i *instr, number int) {
	sp, fp := machine.AMD64.SP, machine.AMD64.FP
	switch i.op {
	case opMove:
		m.regs[i.dst] = m.regs[i.src]
	case opExchange:
		m.regs[i.dst], m.regs[i.src] = m.regs[i.src], m.regs[i.dst]
	case opAddress:
		m.regs[i.dst] = m.address(i.memory)
	case opNumber:
		m.regs[i.dst] = constant(uint64(i.number))
	case opLoad:
		m.regs[i.dst] = m.load(m.address(i.memory))
	case opStore:
		m.store(m.address(i.memory), 8, m.regs[i.src])
	case opAlign:
		m.align(i, number)
	case opPush:
		m.push(m.pushed(i))
	case opPop:
		value := m.load(m.regs[sp])
		m.regs[sp] = m.regs[sp].plus(8)
		if i.dst != noRegister {
			m.regs[i.dst] = value
		} else {
			m.store(m.address(i.memory), 8, value) // the operand uses the incremented stack pointer
		}
	case opEnter:
		m.push(m.regs[fp])
		m.regs[fp] = m.regs[sp]
		m.regs[sp] = m.regs[sp].plus(-i.number)
	case opLeave:
		m.regs[sp] = m.regs[fp]
		m.regs[fp] = m.load(m.regs[sp])
		m.regs[sp] = m.regs[sp].plus(8)
	case opReturnTo:
		m.regs[sp] = m.regs[sp].plus(8)
	case opCall:
		m.call()
		m.loseBelow(0)
		m.clobber(amd64.NotKept)
	case opOther, opBranch, opSystem:
		if i.bytes > 0 {
			m.store(m.address(i.memory), int32(i.bytes), origin{})
		}
		m.clobber(i.writes)
	}
	if m.inner.kind != unknownOrigin {
		if above, ok := m.regs[sp].from(m.inner); ok && above > 0 {
			m.inner = origin{} // the return address was popped
		}
	}
}

// callAlignment is the alignment in bytes of the CFA and of the stack pointer at each call (System V ABI, AMD64 supplement, §3.2.2).
const callAlignment = 16

// call records the stack pointer at the first call. At a later call it checks that the stack can be aligned at both calls.
func (m *moment) call() {
	sp := m.regs[machine.AMD64.SP]
	if m.called.kind == unknownOrigin {
		m.called = sp
	} else if distance, ok := sp.from(m.called); ok && distance%callAlignment != 0 {
		m.impossible = true
	}
}

func (m *moment) clobber(regs amd64.Set) {
	for reg := range machine.DWARFReg(16) {
		if regs.Has(reg) {
			m.regs[reg] = origin{}
		}
	}
}

// address returns the address of an operand.
func (m *moment) address(o operand) origin {
	switch o.base {
	case noRegister:
		return origin{}
	case noBase:
		return constant(uint64(o.offset))
	}
	return m.regs[o.base].plus(o.offset)
}

// pushed returns the value that an instruction pushes.
func (m *moment) pushed(i *instr) origin {
	switch {
	case i.constant:
		return constant(uint64(i.number))
	case i.src != noRegister:
		return m.regs[i.src]
	}
	return m.load(m.address(i.memory))
}

func (m *moment) push(value origin) {
	sp := machine.AMD64.SP
	m.regs[sp] = m.regs[sp].plus(-8)
	m.store(m.regs[sp], 8, value)
}

// align rounds the stack pointer down by an unknown distance. From then on, addresses are relative to the rounded stack pointer. Values relative to
// an earlier execution of the same instruction become unknown.
func (m *moment) align(i *instr, number int) {
	if at, ok := m.regs[machine.AMD64.SP].number(); ok {
		m.regs[machine.AMD64.SP] = constant(at & uint64(i.number))
		return
	}
	m.loseBelow(0) // the distance of this memory from the new stack pointer is unknown, so it may be overwritten
	aligned := origin{kind: fromAligned, at: int32(number)}
	stale := func(o origin) bool { _, same := o.from(aligned); return same }
	for reg := range m.regs {
		if stale(m.regs[reg]) {
			m.regs[reg] = origin{}
		}
	}
	m.drop(func(s slot) bool { return stale(s.addr) || stale(s.value) })
	m.regs[machine.AMD64.SP] = aligned
}

// equal changes m to the state after a comparison that found two registers equal, and reports whether they can be equal.
func (m *moment) equal(i *instr) bool {
	a, b := &m.regs[i.dst], &m.regs[i.src]
	if n, ok := a.from(*b); ok && n != 0 {
		return false
	}
	if a.kind == unknownOrigin {
		*a = *b
	} else if b.kind == unknownOrigin {
		*b = *a
	}
	return true
}
