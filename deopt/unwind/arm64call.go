package unwind

import (
	"encoding/binary"
	"slices"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// A function that never returns, such as a stub of a runtime, need not save the link register before it makes a call. Its return address is then
// lost. byCall finds it by the calls that lead to the function: the frame of the caller, and those above it, must agree with the stack.

// lostLink reports whether a row says that the return address of f is in the link register, although f has made a call that overwrote it.
func (w *walk) lostLink(f *Frame, row *cfi.Row) bool {
	kind := row.Rule(row.ReturnAddress).Kind
	return w.Arch == machine.ARM64 && f.Return && row.ReturnAddress == arm64Link && (kind == cfi.RuleNone || kind == cfi.RuleSameValue)
}

// linkStep returns the step from f to its caller and the start of its function, if f has lost the link register; otherwise nil. from is the start to
// assume if nothing else gives it.
func (w *walk) linkStep(f *Frame, from machine.Addr) (s *step, start machine.Addr) {
	if w.Arch != machine.ARM64 || !f.Return {
		return nil, 0
	}
	at := *f
	at.Overwritten, at.code = nil, w.Finder.Code(f.PC-1)
	switch s, err := at.code.cfi(at.lookup()); {
	case err != nil || s != nil && (s.signal || !w.lostLink(&at, s.row)):
		return nil, 0
	case s != nil:
		return s, s.Start
	}
	if at.code.Functions != nil {
		if known, _ := at.code.Functions.Function(at.lookup()); known != 0 {
			from = known
		}
	}
	if from == 0 {
		return nil, 0
	}
	m := w.arm64Read(from).at(&at)
	if m == nil {
		return nil, 0
	}
	row, err := m.row(f.PC, true)
	if err != nil || !w.lostLink(&at, row) {
		return nil, 0
	}
	return w.fromRow(&at, row), from
}

// byCall finds the caller of f, which has lost the link register, if exactly one call leads to its function and agrees with the stack.
func (w *walk) byCall(f *Frame) (caller, bool) {
	s, start := w.linkStep(f, 0)
	if s == nil || f.Overwritten != nil || f.ambiguous || f.undecided != "" {
		return caller{}, false
	}
	pc, only := w.arm64OnlyCall(f, s, start)
	if !only {
		return caller{}, false
	}
	by := *s
	by.rule = FromCode // CFI alone did not find the caller
	f.CFA, _ = w.cfa(f.Registers, s.row.CFA)
	f.NoCFA, w.floor = "", f.CFA
	return w.atCall(f, &by, pc), true
}

// atCall returns the registers of the caller of f at its call that returns to pc.
func (w *walk) atCall(f *Frame, s *step, pc machine.Addr) caller {
	c := w.caller(f, s, pc)
	c.regs.SetUint(arm64Link, uint64(pc))
	return c
}

// arm64OnlyCall returns the return address of the only call that leads to the function of f, which starts at start, and agrees with the stack. only
// is false if there is no such call, or another one may agree.
func (w *walk) arm64OnlyCall(f *Frame, s *step, start machine.Addr) (pc machine.Addr, only bool) {
	agree := 0
	w.arm64Calls(f, s, start, func(to machine.Addr, how evidence) {
		if agree++; how == proven {
			pc = to
		}
	})
	return pc, pc != 0 && agree == 1
}

// arm64AnyCall reports whether a call that leads to the function of f agrees with the stack. It ignores calls in the ranges without.
func (w *walk) arm64AnyCall(f *Frame, s *step, start machine.Addr, without []machine.Range) (found bool) {
	w.arm64Calls(f, s, start, func(to machine.Addr, _ evidence) {
		found = found || !within(without, to)
	})
	return found
}

// within reports whether an instruction that ends at an address is in one of the ranges.
func within(ranges []machine.Range, end machine.Addr) bool {
	return slices.ContainsFunc(ranges, func(r machine.Range) bool { return end > r.Start && end <= r.End })
}

// arm64Calls calls agree with the return address of each call that leads to the function of f and does not contradict the stack.
func (w *walk) arm64Calls(f *Frame, s *step, start machine.Addr, agree func(to machine.Addr, how evidence)) {
	cfa, err := w.cfa(f.Registers, s.row.CFA)
	if err != nil || cfa < w.floor {
		return
	}
	at := *f
	at.Overwritten, at.code, at.CFA, at.NoCFA = nil, w.Finder.Code(f.PC-1), cfa, ""
	tried := map[machine.Addr]bool{}
	var proved []machine.Addr // functions
	try := func(to machine.Addr) {
		if tried[to] {
			return
		}
		tried[to] = true
		call := Frame{Index: f.Index + 1, PC: to, Return: true, code: w.Finder.Code(to - 1)}
		by, err := call.code.cfi(to - 1)
		if err != nil || by == nil || by.signal {
			return
		}
		call.Registers = w.atCall(&at, s, to).regs
		how := w.arm64Above(call, by)
		if how >= plausible {
			agree(to, how)
		}
		if how == proven {
			proved = append(proved, by.Start)
		}
	}
	if w.Callers != nil {
		for _, to := range w.Callers(start) {
			try(to)
		}
	}
	w.callsOnStack(cfa, start, try)
	for _, function := range proved {
		others := w.arm64Others(function, start)
		for _, to := range others.calls {
			try(to)
		}
		for _, to := range others.jumps {
			agree(to, plausible)
		}
	}
}

// callsOnStack calls f with the return addresses of calls that may lead to the function at start. It looks in the functions that were called directly
// by the calls whose return addresses are on the stack.
func (w *walk) callsOnStack(sp, start machine.Addr, f func(pc machine.Addr)) {
	judged := 0
	_ = w.eachReturn(sp, func(slot, pc machine.Addr) bool {
		if to := w.arm64Target(pc); to != 0 {
			for _, call := range w.arm64Others(to, start).calls {
				f(call)
			}
		}
		judged++
		return judged < maxCallees
	})
}

// arm64Target returns the target of the direct call that returns to pc, through thunks, or 0 for another call.
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
