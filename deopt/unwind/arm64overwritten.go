package unwind

import (
	"encoding/binary"
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// arm64Overwritten finds the place where f left its function, if a runtime has overwritten the code there. If several places are possible, it leaves
// f unchanged.
func (w *walk) arm64Overwritten(f *Frame) {
	var callee *Frame
	if f.Index > 0 {
		callee = &w.frames[f.Index-1-w.dropped]
	}
	all := w.Overwritten(f, callee)
	if len(all) > maxOverwritten {
		f.undecided = errUndecided
		return
	}
	var found, best *patchedFrame
	var count [proven + 1]int
	for n := range all {
		if err := w.arm64.spend(1); err != nil && !all[n].Sure {
			f.undecided = err
			return
		}
		d := w.arm64PatchedFrame(f, &all[n], w.floor)
		if count[d.evidence]++; d.evidence == proven {
			found = d
		}
		if best == nil || d.evidence > best.evidence {
			best = d
		}
	}
	if best != nil && !best.place.Sure {
		if s, start := w.linkStep(f, all[0].From); s != nil {
			w.arm64Left(f, all, best, count, w.arm64Entered(f, s, start, w.floor))
			return
		}
	}
	switch err := w.arm64.spend(0); {
	case err != nil && best != nil && best.evidence != excluded && !best.place.Sure: // the code of callers was not examined completely
		f.undecided = err
	case count[proven] > 1 || found == nil && (count[doubtful] > 0 || count[plausible] > 1):
		f.undecided = errUndecided
	case found == nil || count[plausible] > 0:
		f.ambiguous = count[plausible]+count[proven] > 0
	default:
		f.Overwritten, f.Registers, f.code = found.place, found.regs, w.Finder.Code(found.place.At)
	}
}

// arm64Left decides where f, which has lost the link register, has left its function. in holds the branches that agree with the stack, best is
// the place with the best grade, and count has the number of places of each grade.
func (w *walk) arm64Left(f *Frame, places []Overwritten, best *patchedFrame, count [proven + 1]int, in arm64Entrances) {
	var regions []machine.Range
	for n := range places {
		regions = append(regions, machine.Range{Start: places[n].At, End: places[n].End})
	}
	others, named := !in.all, false
	for _, b := range in.list {
		if !within(regions, b.pc) {
			others, named = true, named || b.named
		}
	}
	agree := count[doubtful] + count[plausible] + count[proven]
	switch {
	case count[unread] > 0 || agree > 1:
		f.undecided = errUndecided
	case agree == 0:
	case named:
		f.ambiguous = true
	default:
		if others && f.Guess == "" {
			f.Guess, f.GuessKind = guessedJump+in.others(), guessedJump
		}
		f.Overwritten, f.Registers, f.code = best.place, best.regs, w.Finder.Code(best.place.At)
	}
}

// guessedJump is the beginning of the guess of a function that left its code by a jump while calls agree with the stack, too.
const guessedJump = "a jump that was written into the code of this function leads to the code here, and "

var errUndecided = errors.New(undecidedPlaces)

const undecidedPlaces = "jumps that were written into the code of several functions lead to the code here, and the stack does not show which of them it came from"

// arm64PatchedFrame computes the registers of f at a place, and rates how well the stack agrees. The CFA must be above floor.
func (t trial) arm64PatchedFrame(f *Frame, o *Overwritten, floor machine.Addr) *patchedFrame {
	d := &patchedFrame{place: o, evidence: unread}
	s, err := t.Finder.Code(o.At).cfi(o.At)
	if err != nil || s == nil || s.signal {
		return d
	}
	m := t.arm64.readWritten(machine.Range{Start: o.At, End: o.End}, s.Range).at(f)
	if m == nil {
		return d
	}
	if f.Return {
		m = m.clone()
		m.put(arm64Link, arm64Value{}) // the call has put its return address into the link register
	}
	sp, ok := t.arm64SPAt(f, m)
	if !ok {
		return d
	}
	d.regs, d.evidence = t.arm64Registers(f, m, sp), proven
	if !o.Sure {
		d.evidence = t.arm64Agrees(f, o, s, d.regs, m, floor)
	}
	return d
}

// arm64SPAt returns the stack pointer at the start of the course.
func (t trial) arm64SPAt(f *Frame, m *ARM64Moment) (sp uint64, ok bool) {
	for n := len(m.regs) - 1; n >= 19; n-- {
		if by, of := m.regs[n].fromSP(); of {
			if v, err := f.Registers.Uint(machine.DWARFReg(n)); err == nil {
				return v - uint64(by), true
			}
		}
	}
	return 0, false
}

// arm64Registers returns the registers of f at the start of the course. The pc stays unchanged.
func (t trial) arm64Registers(f *Frame, m *ARM64Moment, sp uint64) *machine.Registers {
	regs := f.Registers.Clone()
	for n := range uint8(arm64SP) {
		reg := machine.DWARFReg(n)
		if m.regs[n] == (arm64Value{arm64Initial, n, 0}) {
			continue
		}
		regs.Forget(reg, frame.Because(frame.PatchChanged, t.Arch.RegisterName(reg)))
		in, by, slot, kept, inSlot := m.kept(n)
		if !kept {
			continue
		}
		v, err := uint64(0), error(nil)
		if inSlot {
			var at machine.Addr
			at, err = machine.ReadAddr(t.memory, t.Arch, machine.Addr(sp+uint64(slot)))
			v = uint64(at)
		} else {
			v, err = f.Registers.Uint(machine.DWARFReg(in))
		}
		if err == nil {
			regs.SetUint(reg, v-uint64(by))
		}
	}
	regs.SetUint(arm64SP, sp)
	const firstVector, vectors = 64, 32 // register numbers of "DWARF for the Arm 64-bit Architecture"
	for reg := machine.DWARFReg(firstVector); m.vectors && reg < firstVector+vectors; reg++ {
		regs.Forget(reg, frame.Because(frame.PatchVectors, t.Arch.RegisterName(reg)))
	}
	return regs
}

// arm64Agrees rates how well the stack shows that f reached the code by a jump from the place o. Its function must have a frame of the size in the
// stack map, and must have been called. A jump leaves no return address, so the code may also have been called by a function with a similar frame.
// Therefore one of two conditions must hold. Either a call names the function of o, and that function does not call the code itself. Or the saved
// link register shows that the code was not called.
func (t trial) arm64Agrees(f *Frame, o *Overwritten, s *step, regs *machine.Registers, m *ARM64Moment, floor machine.Addr) evidence {
	at := Frame{Index: f.Index, PC: o.At, Registers: regs, code: t.Finder.Code(o.At)}
	cfa, err := t.cfa(regs, s.row.CFA)
	sp, errSP := regs.Addr(t.Arch.SP)
	if err != nil || errSP != nil || cfa <= floor || at.code.Functions == nil {
		return excluded
	}
	size, sized := at.code.Functions.FrameSize(o.At)
	if !sized {
		return unread
	}
	if size > maxFrame || sp+machine.Addr(size) != cfa {
		return excluded
	}
	at.CFA = cfa
	pc, err := t.returnAddress(&at, s.row)
	if err != nil || pc == 0 {
		return excluded
	}
	if _, err := t.called(pc, false); err != nil {
		return excluded
	}
	to := t.arm64.callee(pc, s.Start)
	if to == callsAnother {
		return excluded
	}
	if called, ok := t.arm64Called(sp, m, o); called || !ok {
		if called && ok {
			return proven
		}
		return excluded
	}
	above := t.arm64Above(at, s)
	link, err := regs.Addr(arm64Link)
	switch {
	case err != nil || above == excluded:
		return above
	case s.Contains(link): // link is the return address of the function's last call
		switch t.arm64.callee(link, o.From) {
		case callsIt:
			return excluded
		case callsUnknown:
			return doubtful
		}
		return proven
	case link == pc && t.arm64CallFree(s.Start, o.At): // the function has made no call
		return proven
	}
	return excluded
}

// arm64CallFree reports whether some path leads from one address to another without a call. It follows at most as many instructions as a course has.
func (u *codeReader) arm64CallFree(from, to machine.Addr) bool {
	seen := map[machine.Addr]bool{from: true}
	for queue := []machine.Addr{from}; len(queue) > 0 && len(seen) <= maxCourse; queue = queue[1:] {
		at := queue[0]
		if at == to {
			return true
		}
		var code [arm64.Size]byte
		if u.Memory.ReadMemory(code[:], at) != nil || arm64.IsCall(code[:]) {
			continue
		}
		next, jumps := arm64.Jump(code[:], at)
		word := binary.LittleEndian.Uint32(code[:])
		if jumps && !seen[next] {
			seen[next], queue = true, append(queue, next)
		}
		ends := word&0xfc000000 == 0x14000000 || word&0xfe000000 == 0xd6000000 // b; branches to registers
		if following := at + arm64.Size; !ends && !seen[following] {
			seen[following], queue = true, append(queue, following)
		}
	}
	return len(seen) > maxCourse
}

// arm64Called reports whether the code was called from the place, that is, it has saved the link register. ok is false if the stack contradicts that.
func (t trial) arm64Called(sp machine.Addr, m *ARM64Moment, o *Overwritten) (called, ok bool) {
	for slot, v := range m.slots {
		pc := machine.Addr(v.n)
		if v.kind != arm64Number || pc <= o.At || pc > o.End {
			continue
		}
		saved, err := machine.ReadAddr(t.memory, t.Arch, sp+machine.Addr(slot))
		return true, err == nil && saved == pc
	}
	return false, true
}
