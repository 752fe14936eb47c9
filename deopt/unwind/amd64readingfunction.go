package unwind

import (
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// Bounds of the reading of a whole function.
const (
	maxFunctionBytes  = 64 << 10
	maxFunctionInstrs = 10_000
)

// codeRows holds the rows of one x86-64 function, read from its instructions.
type codeRows struct {
	r *reading
}

// readFunction reads the function at [start, end) from its first instruction. There the stack pointer is 8 below the CFA, and every callee-saved
// register has the caller's value (System V ABI, AMD64 supplement, §3.2). start must be an entry that calls lead to: the cold part of a split
// function has a symbol too, but begins in the middle of a frame.
//
// readFunction assumes that callees restore the stack pointer and the ABI's callee-saved registers, and that no pointer leads to saved registers.
// The first assumption is wrong if the callee pops its arguments, as in LLVM's tailcc, and in fastcc with guaranteed tail calls. After such a
// call the rows give a CFA that is too high, unless the stack pointer at a return reveals the error.
func readFunction(m machine.Memory, start, end machine.Addr) (*codeRows, error) {
	if end <= start {
		return nil, errors.New("the function has no code")
	}
	c := &codeRows{newReading(m, start, start+min(end-start, maxFunctionBytes), maxFunctionInstrs)}
	for from := []machine.Addr{start}; len(from) > 0; {
		from = c.r.follow(from...)
	}
	c.r.called = true
	c.r.memory, c.r.text = nil, nil
	c.r.divide()
	begin := atStart()
	begin.forgot = true // the stack belongs to the caller
	for range maxCuts {
		if err := c.r.computeStates(begin); err != nil {
			return nil, err
		}
		if !c.cut() {
			return c, nil
		}
	}
	return nil, errors.New("its returns contradict each other")
}

// maxCuts bounds the rounds that search for calls that do not return. Each round finds all that can be recognized then.
const maxCuts = 16

// cut marks the calls that are known not to return, and reports whether it found any. There are two signs. All returns after the call would return to
// an address that is not the caller's. Or another path reaches the code after the call with a different stack pointer.
func (c *codeRows) cut() bool {
	good, bad := c.r.leadsTo(sound), c.r.leadsTo(unsound)
	found := false
	for n := range c.r.blocks {
		b := &c.r.blocks[n]
		if b.next < 0 || b.dead || !b.before.reached || !c.r.last(b).mayEnd() {
			continue
		}
		if bad[b.next] && !good[b.next] || c.differs(b) {
			b.dead, found = true, true
		}
	}
	return found
}

// differs reports whether the stack pointer after a call is known, but unknown at the next instruction or after a no-op because another path
// joins there. Go's compiler puts a call that does not return, and a no-op, before code that other paths lead to.
func (c *codeRows) differs(b *block) bool {
	sp := machine.AMD64.SP
	m, _ := c.r.after(b)
	if m.regs[sp].kind == unknownOrigin {
		return false
	}
	next := &c.r.blocks[b.next]
	if i := c.r.last(next); i.filler && next.first == next.last && next.next >= 0 {
		next = &c.r.blocks[next.next]
	}
	return next.before.regs[sp].kind == unknownOrigin
}

// sound reports whether a return leads to the caller.
func sound(m *moment) bool { return m.regs[machine.AMD64.SP] == initially(machine.AMD64.SP) }

// unsound reports whether a return does not lead to the caller, or changes callee-saved registers.
func unsound(m *moment) bool {
	if sp := m.regs[machine.AMD64.SP]; sp.kind != unknownOrigin && !sound(m) {
		return true
	}
	for _, reg := range keptRegisters {
		if o := m.regs[reg]; o.kind != unknownOrigin && o != initially(reg) {
			return true
		}
	}
	return false
}

// leadsTo returns, for each block, whether it leads to a return for which holds is true.
func (r *reading) leadsTo(holds func(*moment) bool) []bool {
	leads := make([]bool, len(r.blocks))
	from := make([][]int, len(r.blocks))
	var queue []int
	for n := range r.blocks {
		b := &r.blocks[n]
		if !b.before.reached {
			continue
		}
		if b.taken >= 0 {
			from[b.taken] = append(from[b.taken], n)
		}
		if b.next >= 0 && !b.dead {
			from[b.next] = append(from[b.next], n)
		}
		if r.last(b).op == opReturn {
			if m, _ := r.after(b); holds(m) {
				leads[n] = true
				queue = append(queue, n)
			}
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, f := range from[n] {
			if !leads[f] {
				leads[f] = true
				queue = append(queue, f)
			}
		}
	}
	return leads
}

// row returns the rules at pc. ret means that pc is the return address of a call in the function; the call may be its last instruction. A register
// without a rule is unknown. The error reports that pc was not reached, or what is unknown.
func (c *codeRows) row(pc machine.Addr, ret bool) (*cfi.Row, error) {
	m, at, end, err := c.moment(pc, ret)
	if err != nil {
		return nil, err
	}
	cfa, ok := m.cfa()
	if !ok {
		return nil, frame.Errorf("the CFA at %v is unknown from its code", pc)
	}
	return readRow(at, end, cfa, m.rule), nil
}

// switches reports whether the stack pointer at pc is on another stack than at the start of the function.
func (c *codeRows) switches(pc machine.Addr, ret bool) bool {
	m, _, _, err := c.moment(pc, ret)
	return err == nil && m.switched()
}

// moment returns the moment at pc and the addresses for which it is valid.
func (c *codeRows) moment(pc machine.Addr, ret bool) (m moment, at, end machine.Addr, err error) {
	if !ret {
		m, err = c.r.before(pc)
		if err == nil {
			end = c.r.instrs[c.r.number[pc]].next()
		}
		return m, pc, end, err
	}
	for n := machine.Addr(1); n <= amd64.Longest; n++ {
		number, ok := c.r.number[pc-n]
		if !ok {
			continue
		}
		i := c.r.instrs[number]
		if !i.calls() || i.next() != pc {
			continue
		}
		i.op = opCall // the call has returned, so its target was a function
		if m, err = c.r.before(i.at); err == nil {
			m.apply(&i, number)
			return m, pc, pc + 1, nil
		}
	}
	return moment{}, 0, 0, frame.Errorf("no call that was reached ends at %v", pc)
}

// cfa returns a rule for the CFA from registers and memory. It prefers the stack pointer and the frame pointer.
func (m *moment) cfa() (cfi.CFARule, bool) {
	entry := initially(machine.AMD64.SP)
	for _, reg := range searched {
		if n, ok := m.regs[reg].from(entry); ok {
			return cfi.CFARule{Kind: cfi.CFARegister, Register: reg, Offset: 8 - n}, true
		}
	}
	for _, s := range m.slots {
		n, ok := s.value.from(entry)
		if !ok {
			continue
		}
		if reg, offset, ok := m.reach(s.addr); ok {
			return cfi.CFARule{Kind: cfi.CFAExpression, Expression: cfi.RegisterPlus(reg, offset).Deref().Plus(8 - n)}, true
		}
	}
	return cfi.CFARule{}, false
}

// searched lists the general registers in the order in which to try them as the base of an address.
var searched = []machine.DWARFReg{7, 6, 3, 12, 13, 14, 15, 10, 11, 0, 1, 2, 4, 5, 8, 9}

// reach returns a register and the distance from it to an address.
func (m *moment) reach(addr origin) (reg machine.DWARFReg, offset int64, ok bool) {
	for _, reg := range searched {
		if offset, ok := addr.from(m.regs[reg]); ok {
			return reg, offset, true
		}
	}
	return 0, 0, false
}

// rule returns the rule for the caller's value of a register. It prefers a saved copy to the register itself: code after indirect jumps is not
// read, and may have changed the register.
func (m *moment) rule(reg machine.DWARFReg) cfi.RegisterRule {
	var below cfi.RegisterRule
	entry := initially(machine.AMD64.SP)
	for _, s := range m.slots {
		if s.value != initially(reg) {
			continue
		}
		var rule cfi.RegisterRule
		if n, ok := s.addr.from(entry); ok {
			rule = cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: n - 8}
		} else if base, offset, ok := m.reach(s.addr); ok && (s.addr.kind == fromAligned || s.addr.kind == fromNumber) { // excludes the buffers of setjmp and similar functions
			rule = cfi.RegisterRule{Kind: cfi.RuleExpression, Expression: cfi.RegisterPlus(base, offset)}
		} else {
			continue
		}
		if n, ok := s.addr.from(m.regs[machine.AMD64.SP]); !ok || n >= 0 {
			return rule
		}
		below = rule // popped, or in the red zone
	}
	if m.regs[reg] == initially(reg) {
		return cfi.RegisterRule{Kind: cfi.RuleSameValue}
	}
	if below.Kind != cfi.RuleNone {
		return below
	}
	for _, other := range searched {
		if m.regs[other] == initially(reg) {
			return cfi.RegisterRule{Kind: cfi.RuleRegister, Register: other}
		}
	}
	return cfi.RegisterRule{}
}
