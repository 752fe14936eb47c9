package patched

import (
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// instr is a current instruction of a region.
type instr struct {
	at, next machine.Addr
	inst     x86asm.Inst
	known    bool
	to       machine.Addr // target; 0 if unknown
}

// inside reports whether an address is in the region.
func (s *Code) inside(at machine.Addr) bool { return at >= s.Start && at < s.End() }

// course lists the instructions of a region that are reached from its start along jumps. Bytes between them may be data.
func (s *Code) course(p *Finder) (list []instr) {
	now, seen := writtenCode{s.Original}, map[machine.Addr]bool{}
	for queue := []machine.Addr{s.Start}; len(queue) > 0; queue = queue[1:] {
		loaded, pushed := map[x86asm.Arg]machine.Addr{}, machine.Addr(0)
		for at := queue[0]; s.inside(at) && !seen[at]; {
			inst, known, err := amd64.Read(now, at)
			if err != nil || inst.Len == 0 || at+machine.Addr(inst.Len) > s.End() {
				break
			}
			seen[at] = true
			i := instr{at: at, next: at + machine.Addr(inst.Len), inst: inst, known: known}
			_, direct := inst.Args[0].(x86asm.Rel)
			switch {
			case inst.Op == x86asm.RET:
				i.to = pushed
			case direct || inst.Op == x86asm.JMP || amd64.IsCall(inst):
				if i.to = p.branchTarget(inst, i.next); i.to == 0 {
					i.to = loaded[inst.Args[0]]
				}
			}
			if direct && s.inside(i.to) && !amd64.IsCall(inst) {
				queue = append(queue, i.to)
			}
			list = append(list, i)
			pushed = p.note(i, loaded)
			if at = i.next; ends(inst) || !known {
				break
			}
		}
	}
	return list
}

// ends reports whether inst never continues at the next instruction.
func ends(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.JMP, x86asm.RET, x86asm.UD0, x86asm.UD1, x86asm.UD2, x86asm.HLT:
		return true
	}
	return isTrap(inst)
}

// isTrap reports whether an instruction is int3, which stops the thread after it.
func isTrap(inst x86asm.Inst) bool {
	return inst.Op == x86asm.INT && inst.Args[0] == x86asm.Arg(x86asm.Imm(3))
}

// note updates loaded, which holds the known numbers in registers, by the effect of an instruction. If the instruction pushes a number as a return
// address, note returns it.
func (p *Finder) note(i instr, loaded map[x86asm.Arg]machine.Addr) (pushed machine.Addr) {
	number, isNumber := i.inst.Args[1].(x86asm.Imm)
	memory, isMemory := i.inst.Args[1].(x86asm.Mem)
	switch {
	case i.inst.Op == x86asm.PUSH:
		n, _ := i.inst.Args[0].(x86asm.Imm)
		pushed = machine.Addr(n)
	case i.inst.Op == x86asm.MOV && isNumber:
		loaded[i.inst.Args[0]] = machine.Addr(number)
	case i.inst.Op == x86asm.LEA && isMemory && memory.Base == x86asm.RIP && memory.Index == 0:
		loaded[i.inst.Args[0]] = i.next + machine.Addr(memory.Disp)
	case i.inst.Op == x86asm.MOV && isMemory && memory.Base == x86asm.RIP && memory.Index == 0:
		to, err := machine.ReadAddr(p.Space.Target, p.Space.Target.Arch(), i.next+machine.Addr(memory.Disp))
		if err != nil {
			to = 0
		}
		loaded[i.inst.Args[0]] = to
	case !amd64.IsFiller(i.inst):
		for arg := range loaded {
			if r, ok := arg.(x86asm.Reg); ok {
				if reg, _, general := amd64.Register(r); general && amd64.Writes(i.inst).Has(reg) {
					delete(loaded, arg)
				}
			}
		}
	}
	return pushed
}

// leave finds the first written instruction of a course, and records the effects of the instructions before it. It returns false if there is none, or
// if a jump precedes it.
func (s *Code) leave(course []instr) bool {
	s.Left, s.Changed, s.Stored, s.prefix = 0, 0, false, 0
	for n, i := range course {
		if s.Differing(i.at, i.next) > 0 {
			s.Left, s.prefix = i.at, n
			return true
		}
		_, direct := i.inst.Args[0].(x86asm.Rel)
		if ends(i.inst) || direct && !amd64.IsCall(i.inst) || s.Bytes == 0 && !amd64.IsFiller(i.inst) {
			return false // without a module, the shadow may end at the first instruction of the function's own code
		}
		s.ran(i.inst, i.known)
	}
	return false
}

// reaches reports whether the written code, followed along its jumps, leads to a call that ends at pc.
func (s *Code) reaches(p *Finder, pc machine.Addr) (ends, written bool) {
	course := s.course(p)
	if !s.leave(course) {
		return false, false
	}
	for _, i := range course[s.prefix:] {
		if i.next == pc && i.known && amd64.IsCall(i.inst) {
			s.last, s.past = i.at, i.next
			return true, true
		}
	}
	return false, false
}

// moved lists the regions of patchpoints and statepoints in which f waits for a written call, if the code before the call moves the stack pointer or
// jumps. If it does neither, only the call matters for the frame.
func (p *Finder) moved(f *unwind.Frame) (found []*Code) {
	p.near(f.PC, func(s *Code) bool {
		if s.Differing(s.Start, s.End()) == 0 {
			return true
		}
		if s.Noun() != "region" || s.endsOriginal(f.PC) {
			return true
		}
		if ends, _ := s.reaches(p, f.PC); !ends || s.straight(p, f.PC) {
			return true
		}
		if len(found) > 0 && found[0].Start != s.Start {
			found = nil
			return false
		}
		found = append(found, s)
		return true
	})
	return found
}

// straight reports whether the instructions of a region run straight to a call that ends at pc, and do not change the stack pointer.
func (s *Code) straight(p *Finder, pc machine.Addr) bool {
	for _, i := range s.course(p) {
		_, direct := i.inst.Args[0].(x86asm.Rel)
		switch {
		case i.next == pc:
			return true
		case !i.known || direct || ends(i.inst) || amd64.Writes(i.inst).Has(machine.AMD64.SP):
			return false
		}
	}
	return false
}

// Patchable reports whether a call that a runtime wrote over the code of a record may have ended at an address, regardless of the current code.
func (p *Finder) Patchable(pc machine.Addr) (is bool) {
	p.near(pc, func(*Code) bool { is = true; return false })
	return is
}

// near calls do with the code of each record that contains an address or ends there, until do returns false.
func (p *Finder) near(pc machine.Addr, do func(s *Code) bool) {
	if p.Space.Target.Arch() != machine.AMD64 {
		return
	}
	c := p.Space.At(pc - 1)
	if c == nil || c.Records == nil {
		return
	}
	owner := c.SymbolAt(pc - 1).Owner
	near := c.Records.Range(pc-min(pc, sites.MaxPatch), pc+sites.MaxPatch)
	for n := range near.Len() {
		e := sites.RecordEntry{Entry: near.Entry(n)}
		if e.Function.Addr != owner {
			continue
		}
		e.Record = e.Entry.Record()
		start, length, s := p.regionOf(c, e)
		if s == nil || pc <= start || pc > start+machine.Addr(length) {
			continue
		}
		o, err := p.Space.Original(start, int(length))
		if err != nil {
			continue
		}
		if s.Original = o; !do(s) {
			return
		}
	}
}

// traps lists the place of a frame that made no call and is in the overwritten code of a record, after its start. The frame is at an instruction, for
// example one that raised a signal, or right after an int3.
func (p *Finder) traps(f *unwind.Frame) (list []unwind.Overwritten) {
	var found []*Code
	p.near(f.PC, func(s *Code) bool {
		if s.Differing(s.Start, s.End()) == 0 {
			return true
		}
		course := s.course(p)
		if !s.leave(course) || s.Left > f.PC {
			return true
		}
		for _, i := range course[s.prefix:] {
			afterTrap := i.next == f.PC && isTrap(i.inst) && s.Differing(i.at, i.next) > 0
			if !afterTrap && i.at != f.PC {
				continue
			}
			if len(found) > 0 && found[0].Left != s.Left {
				found = nil
				return false
			}
			s.last, s.past, s.Trapped = i.at, i.next, true
			found = append(found, s)
			return true
		}
		return true
	})
	if c := p.Space.At(f.PC); len(found) == 0 || c != nil && c.SymbolAt(f.PC).Start == f.PC {
		return nil // the frame is at the start of a function, which may have been called
	}
	return []unwind.Overwritten{{At: found[0].Left, From: found[0].Left, End: found[0].End(), Sure: true, Trap: true, By: found}}
}
