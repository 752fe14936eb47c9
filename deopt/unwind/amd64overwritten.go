package unwind

import (
	"cmp"
	"errors"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Overwritten is a place in a function where a runtime has overwritten the code and a frame has left the function. The pc of the frame is in the code
// that ran instead, or after a call in that code. Unwind information for the pc does not describe such a frame.
type Overwritten struct {
	At machine.Addr // first overwritten instruction, which would have run next
	// End is the end of the written code. From is the start of the code to which it jumped, or At if it did not jump.
	End, From machine.Addr
	// Called is set if From was called and pops the return address.
	Called bool
	// Sure is set if only this place leads to the call. Otherwise the stack must agree with the place.
	Sure bool
	// Trap is set if the frame made no call: its pc is in the written code, or right after a trap in it.
	Trap bool
	// Complete is false if unknown code may lead to the call too. Then the place is accepted only if the call that entered the function of the place
	// names that function.
	Complete bool
	By       any // data of the package that found the place

	// Stored lists the memory above the stack pointer of the place that the code has written since.
	Stored []machine.Range
}

// maxOverwritten bounds the places that are tried for one frame.
const maxOverwritten = 1 << 10

// evidence rates how well a stack agrees with a place.
type evidence int

const (
	excluded  evidence = iota // the stack contradicts the place
	unlike                    // the stack does not contain the numbers that the code has pushed
	unread                    // the code does not show the stack pointer at the place
	contested                 // everything agrees except the return address of a call that leads to the code
	doubtful                  // the code may have been called instead
	plausible                 // nothing contradicts the place
	proven                    // a call to the function left the return address, and the stack pointer agrees with the function's frame
)

// overwritten finds the place where f left its function, if a runtime has overwritten the code there. If several places are possible, it leaves f
// unchanged.
func (w *walk) overwritten(f *Frame) {
	if w.Overwritten != nil && w.Arch == machine.ARM64 {
		w.arm64Overwritten(f)
		return
	}
	if w.Overwritten == nil {
		return
	}
	var callee *Frame
	if f.Index > 0 {
		callee = &w.frames[f.Index-1-w.dropped]
	}
	all := w.Overwritten(f, callee)
	if len(all) > maxOverwritten {
		return
	}
	var best *patchedFrame
	var count [proven + 1]int
	for n := range all {
		d := &patchedFrame{trial: w.trial, f: f, place: &all[n], floor: w.floor, refuted: w.callRefuted}
		d.computeAtPatch()
		count[d.evidence]++
		if d.evidence != excluded && (best == nil || d.evidence > best.evidence) {
			best = d
		}
	}
	switch {
	case best == nil:
		return
	case best.evidence == proven && count[proven] == 1:
	case count[proven] > 0 || count[plausible] != 1 || count[doubtful]+count[contested]+count[unread] > 0 || !best.place.Complete:
		f.jumped, f.contested = f.Return, count[contested] > 0
		return
	}
	f.Overwritten, f.Registers, f.code, f.switched = best.place, best.regs, w.Finder.Code(best.place.At), best.switched
}

// patchedFrame is a frame that left its function at a place whose code a runtime has overwritten.
type patchedFrame struct {
	trial
	f       *Frame
	place   *Overwritten
	floor   machine.Addr        // lower bound of the CFA at the place
	refuted func(f *Frame) bool // see [walk.callRefuted]

	regs *machine.Registers // registers at the place, with the pc of the frame
	evidence
	switched bool // the code that ran from the place has switched stacks
}

// computeAtPatch computes the registers at the place from the code that ran from there to the pc, and rates how well the stack matches them.
func (d *patchedFrame) computeAtPatch() {
	f, o := d.f, d.place
	at := Frame{Index: f.Index, PC: o.At, code: d.Finder.Code(o.At)}
	s, err := at.code.cfi(o.At)
	if s != nil && s.signal {
		return
	}
	if !o.Sure {
		d.evidence = unread
	}
	if err != nil || s == nil && !o.Sure {
		return
	}
	own := machine.Range{}
	if s != nil {
		own = s.Range
	}
	r, m, err := d.leave(o, f.PC, own)
	if err != nil {
		return
	}
	sp, err := d.spAt(&m)
	known := err == nil
	if !known {
		if o.Sure || s == nil {
			return
		}
		if sp, err = d.spBySize(s, &m); err != nil {
			return
		}
	}
	if !o.Sure && r.calledInside(&m, d.Arch.SP) {
		d.evidence = excluded // an ordinary frame of a callee of the code
		return
	}
	d.switched = m.switched()
	d.regs = d.registersAt(&m, sp)
	d.place.Stored = r.storedAbove(sp)
	if o.Sure {
		d.evidence = proven
		return
	}
	at.Registers = d.regs
	d.evidence = d.agrees(&at, s, r, known)
	if d.evidence > unlike && !d.holdsNumbers(&m, sp) {
		d.evidence = unlike
	}
}

// holdsNumbers reports whether the stack contains the numbers that the code has pushed since the stack pointer was sp.
func (d *patchedFrame) holdsNumbers(m *moment, sp uint64) bool {
	for _, s := range m.slots {
		n, ok := s.value.number()
		if !ok || s.size != 8 {
			continue
		}
		at, err := d.reached(m, s.addr)
		if above, onStack := s.addr.from(initially(d.Arch.SP)); onStack {
			at, err = machine.Addr(sp+uint64(above)), nil
		}
		if err != nil {
			continue
		}
		if v, err := machine.ReadAddr(d.memory, d.Arch, at); err == nil && uint64(v) != n {
			return false
		}
	}
	return true
}

// errMoved reports that a stack pointer is unknown.
var errMoved = errors.New("how far the stack pointer has moved is not known")

// spAt returns the stack pointer at the start of the code that led to m, from a register at a known distance or from a saved copy.
func (d *patchedFrame) spAt(m *moment) (uint64, error) {
	entry := initially(d.Arch.SP)
	for _, reg := range searched {
		if n, ok := m.regs[reg].from(entry); ok {
			if v, err := d.f.Registers.Uint(reg); err == nil {
				return v - uint64(n), nil
			}
		}
	}
	for _, s := range m.slots {
		n, ok := s.value.from(entry)
		if !ok {
			continue
		}
		at, err := d.reached(m, s.addr)
		if err != nil {
			continue
		}
		if v, err := machine.ReadAddr(d.memory, d.Arch, at); err == nil {
			return uint64(v) - uint64(n), nil
		}
	}
	return 0, errMoved
}

// reached returns the value of addr, which is relative to the state at the start of the code. At m, some register of the frame must be at a known
// distance from it.
func (d *patchedFrame) reached(m *moment, addr origin) (machine.Addr, error) {
	for _, reg := range searched {
		if n, ok := addr.from(m.regs[reg]); ok {
			if v, err := d.f.Registers.Addr(reg); err == nil {
				return v + machine.Addr(n), nil
			}
		}
	}
	return 0, errMoved
}

// spBySize returns the stack pointer by the frame size in the stack map. The CFA must be based on a register that the code has preserved.
func (d *patchedFrame) spBySize(s *step, m *moment) (uint64, error) {
	size, ok := d.sizeAt(s.Start)
	base := s.row.CFA.Register
	if !ok || s.row.CFA.Kind != cfi.CFARegister || base == d.Arch.SP || base >= 16 || m.regs[base] != initially(base) {
		return 0, errMoved
	}
	cfa, err := d.cfa(d.f.Registers, s.row.CFA)
	if err != nil {
		return 0, err
	}
	return uint64(cfa) - size - uint64(d.Arch.Pointer), nil
}

// sizeAt returns the frame size of the function at an address, from the stack pointer to the return address, by its stack map.
func (u *codeReader) sizeAt(addr machine.Addr) (size uint64, ok bool) {
	code := u.Finder.Code(addr)
	if code.Functions == nil {
		return 0, false
	}
	size, ok = code.Functions.FrameSize(addr)
	return size, ok && size <= maxFrame
}

// registersAt returns the registers of the frame at the start of the code that led to m, with the stack pointer sp and the pc of f.
func (d *patchedFrame) registersAt(m *moment, sp uint64) *machine.Registers {
	regs, at := d.f.Registers.Clone(), *d.f
	at.CFA = machine.Addr(sp) + machine.Addr(d.Arch.Pointer)
	regs.SetUint(d.Arch.SP, sp)
	for reg := machine.DWARFReg(0); reg < 16; reg++ {
		rule := m.rule(reg)
		if _, err := regs.Uint(reg); err == nil && m.regs[reg] == initially(reg) {
			continue // the register itself has the value, so no saved copy is needed
		}
		switch {
		case reg == d.Arch.SP || rule.Kind == cfi.RuleSameValue:
		case rule.Kind == cfi.RuleNone || rule.Kind == cfi.RuleRegister: // unknown, or in a register that the callee may have changed
			regs.Forget(reg, frame.Because(frame.PatchChanged, d.Arch.RegisterName(reg)))
		default:
			d.restore(&at, regs, reg, rule)
		}
	}
	return regs
}

// calledInside reports whether a call inside the code has not returned: its return address is still on the stack.
func (r *reading) calledInside(m *moment, sp machine.DWARFReg) bool {
	return m.inner.kind != unknownOrigin || slices.ContainsFunc(m.slots, func(s slot) bool {
		n, onStack := s.addr.from(m.regs[sp])
		pc, ok := s.value.number()
		return ok && onStack && n >= 0 && slices.ContainsFunc(r.instrs, func(i instr) bool { return r.enters(&i) && i.next() == machine.Addr(pc) })
	})
}

// storedAbove lists the memory above sp that the code writes. sp is the stack pointer at the start of the code.
func (r *reading) storedAbove(sp uint64) (list []machine.Range) {
	entry := initially(machine.AMD64.SP)
	for n := range r.blocks {
		b := &r.blocks[n]
		if !b.before.reached {
			continue
		}
		m := b.before
		for k := b.first; k <= b.last; k++ {
			i := &r.instrs[k]
			addr, size := origin{}, int64(8)
			switch {
			case i.op == opStore:
				addr = m.address(i.memory)
			case i.op == opOther && i.bytes > 0:
				addr, size = m.address(i.memory), int64(i.bytes)
			case i.op == opPush:
				addr = m.regs[machine.AMD64.SP].plus(-8)
			case i.op == opPop && i.dst == noRegister:
				addr = m.address(i.memory)
			}
			if at, ok := addr.from(entry); ok && at+size > 0 && at < maxFrame {
				list = append(list, machine.Range{Start: machine.Addr(sp + uint64(at)), End: machine.Addr(sp + uint64(at+size))})
			}
			m.apply(i, k)
		}
	}
	slices.SortFunc(list, func(a, b machine.Range) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

// agrees rates how well the stack matches at, the assumed frame at the place, and s, the CFI there. known is set if the code gives the stack
// pointer; otherwise spBySize has computed it from the frame size in the stack map.
func (d *patchedFrame) agrees(at *Frame, s *step, r *reading, known bool) evidence {
	word := machine.Addr(d.Arch.Pointer)
	sp, _ := at.Registers.Addr(d.Arch.SP)
	now, err := d.f.Registers.Addr(d.Arch.SP)
	if err != nil || now > sp && d.sameStack(now, sp) && !known {
		return excluded
	}
	cfa, err := d.cfa(at.Registers, s.row.CFA)
	switch {
	case err != nil:
		return unread
	case cfa <= d.floor && d.sameStack(cfa, d.floor) && !d.switched || cfa <= sp:
		return excluded
	}
	size, sized := d.sizeAt(s.Start)
	if sized && sp+machine.Addr(size)+word != cfa || !sized && sp%callAlignment != 0 {
		return excluded
	}
	at.CFA = cfa
	pc, err := d.returnAddress(at, s.row)
	if err != nil || pc == 0 {
		return excluded
	}
	if _, err := d.called(pc, false); err != nil {
		return excluded
	}
	to := d.callee(pc, s.Start)
	entered := plausible
	if !d.place.Called {
		entered = d.entered(sp, r, known, now)
	}
	if entered > excluded && d.calledAlong(now, cfa-word) {
		entered = excluded
	}
	if entered == excluded && to != callsAnother && known {
		// The word may be left over from a call that has returned.
		if entered = contested; d.refuted(d.f) {
			entered = plausible
		}
	}
	switch {
	case to == callsAnother:
		return excluded
	case to == callsIt && known && sized && s.row.CFA.Register != d.Arch.SP:
		return proven // the stack pointer and the frame pointer agree
	case entered < plausible:
		return entered
	case to == callsIt:
		return proven
	case known:
		return plausible
	}
	return excluded
}

// sameStack reports whether two addresses may be on one stack. A stub may have switched stacks.
func (u *codeReader) sameStack(a, b machine.Addr) bool {
	const near = 1 << 20
	return a-b < near || b-a < near
}

// calls reports whether a call leads to a function.
type calls int

const (
	callsUnknown calls = iota // through a register or memory
	callsIt
	callsAnother
)

// callee reports whether the call that returns to pc leads to the function at start.
func (u *codeReader) callee(pc, start machine.Addr) calls {
	target := u.directTarget(pc)
	for n := 0; n < maxStubs && target != 0; n++ {
		switch {
		case target == start:
			return callsIt
		case u.starts(target):
			return callsAnother
		}
		target = u.Stub(target)
	}
	return callsUnknown
}

// entered rates the assumption that a jump entered the code. If a call had entered it, its return address would be on the stack. A return address
// of a call that leads to the code excludes the jump, and one of a call through a register or memory makes it doubtful. If the stack pointer at
// the entry is unknown, any word up to sp may be that return address.
func (d *patchedFrame) entered(sp machine.Addr, r *reading, known bool, now machine.Addr) evidence {
	depths := r.depths()
	// before rates a jump to code by the word at slot, the stack pointer at the jump's target.
	before := func(slot machine.Addr) evidence {
		pc, err := machine.ReadAddr(d.memory, d.Arch, slot)
		if err != nil || pc == 0 || !d.Executable(pc-1) {
			return plausible
		}
		if called, err := d.callEndsAt(pc); err != nil || !called || r.hasCalled(pc, slot, sp, depths) {
			return plausible
		}
		target := d.directTarget(pc)
		if target == 0 {
			return doubtful
		}
		for n := 0; n <= maxStubs && target != 0; n++ {
			if depth, read := depths[target]; target == d.place.From || read && (!known || sp+machine.Addr(depth) == slot) {
				return excluded
			}
			target = d.Stub(target)
		}
		return plausible
	}
	if !known {
		worst := before(sp)
		for slot := now; slot < sp && worst > excluded; slot += machine.Addr(d.Arch.Pointer) {
			if worst = min(worst, before(slot)); slot-now >= scanned {
				return excluded
			}
		}
		return worst
	}
	from := depths[d.place.From] // 0 if the distance of the stack pointer is unknown
	worst := before(sp + machine.Addr(from))
	seen := map[int64]bool{from: true}
	for _, depth := range depths {
		if slot := sp + machine.Addr(depth); !seen[depth] && slot >= now && slot <= sp && before(slot) == excluded {
			return excluded
		}
		seen[depth] = true
	}
	return worst
}

// hasCalled reports whether the return address pc in a slot comes from a call in the code whose target was read as well. sp is the stack pointer
// at the start of the code.
func (r *reading) hasCalled(pc, slot, sp machine.Addr, depths map[machine.Addr]int64) bool {
	const word = 8
	return slices.ContainsFunc(r.instrs, func(i instr) bool {
		depth, known := depths[i.at]
		return i.next() == pc && r.enters(&i) && known && sp+machine.Addr(depth)-word == slot
	})
}

// depths returns, for each instruction, the distance of the stack pointer from that at the start of the code, if it is known.
func (r *reading) depths() map[machine.Addr]int64 {
	entry := initially(machine.AMD64.SP)
	depths := map[machine.Addr]int64{}
	for n := range r.blocks {
		b := &r.blocks[n]
		if !b.before.reached {
			continue
		}
		m := b.before
		for k := b.first; k <= b.last; k++ {
			if depth, ok := m.regs[machine.AMD64.SP].from(entry); ok {
				depths[r.instrs[k].at] = depth
			}
			m.apply(&r.instrs[k], k)
		}
	}
	return depths
}
