package unwind

import (
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// maxEntrances is the maximum number of branches that a search collects.
const maxEntrances = 64

// arm64Entrances holds the branches by which a frame may have come to its function.
type arm64Entrances struct {
	list       []arm64Entrance
	all        bool  // no branch outside of list may have led to the function
	unsearched error // error of a search that was not completed because its budget was used, or nil
}

// others returns the end of a guess: why other calls may have led to the function.
func (in *arm64Entrances) others() string {
	if in.unsearched != nil {
		return "other calls may agree with the stack, too: " + in.unsearched.Error()
	}
	return "other calls agree with the stack, too: through registers, or in code that is not read"
}

// An arm64Entrance is a branch by which a frame may have come to its function.
type arm64Entrance struct {
	pc    machine.Addr // the address after the branch
	named bool         // the code shows that the branch leads to the function
}

// likely returns the address after the only entrance that is known to lead to the function. The result is certain if no other entrance is
// possible.
func (in *arm64Entrances) likely() (pc machine.Addr, certain bool) {
	for _, e := range in.list {
		switch {
		case !e.named:
		case pc != 0:
			return 0, false
		default:
			pc = e.pc
		}
	}
	if pc == 0 && in.all && len(in.list) == 1 {
		pc = in.list[0].pc
	}
	return pc, pc != 0 && in.all && len(in.list) == 1
}

// An entrancesSearch looks for the branches that led a frame to its function.
type entrancesSearch struct {
	trial
	reach *arm64Reach
	f     *Frame
	floor machine.Addr // the CFAs of callers are above it
	sp    machine.Addr // stack pointer at the entry of the function
	regs  *machine.Registers
	out   arm64Entrances
}

// arm64Entered searches the code of the whole target for the branches that may have entered the function of f, which begins at start. s is the step
// from f to the state at start. A branch is an entrance if it may lead to the function and the stack does not contradict the frame at the branch. The
// stack pointer at the entry of the function must be at least floor.
func (t trial) arm64Entered(f *Frame, s *step, start, floor machine.Addr) arm64Entrances {
	reach := t.arm64.reach(start)
	if reach == nil {
		return arm64Entrances{}
	}
	sp, err := t.cfa(f.Registers, s.row.CFA)
	if err != nil || sp < floor {
		return arm64Entrances{}
	}
	at := *f
	at.Overwritten, at.code, at.CFA, at.NoCFA = nil, t.Finder.Code(f.PC-1), sp, ""
	regs := t.caller(&at, s, start).regs
	regs.Forget(arm64Link, frame.Because(frame.LinkLost, t.Arch.RegisterName(arm64Link)))
	e := &entrancesSearch{t, reach, &at, floor, sp, regs, arm64Entrances{all: reach.missing == nil}}
	if reasonCode(reach.missing) == frame.SearchBudget {
		e.out.unsearched = reach.missing
	}
	for _, pc := range reach.branches {
		if len(e.out.list) == maxEntrances {
			return arm64Entrances{}
		}
		e.try(pc)
		if err := t.arm64.spend(1); err != nil { // check also after the last branch, whose examination may have exceeded the budget
			e.out.all, e.out.unsearched = false, err
			break
		}
	}
	return e.out
}

// try adds the branch that ends at an address, if it may be an entrance.
func (e *entrancesSearch) try(pc machine.Addr) {
	var code [arm64.Size]byte
	if e.Memory.ReadMemory(code[:], pc-arm64.Size) != nil {
		e.out.all = false
		return
	}
	from := Frame{Index: e.f.Index + 1, PC: pc, Return: arm64.IsCall(code[:]), Registers: e.regs, code: e.Finder.Code(pc - 1)}
	if !from.Return {
		from.PC = pc - arm64.Size
	}
	by, how := e.fits(&from)
	if how == excluded {
		return
	}
	leads := e.leads(code[:], &from, by)
	if leads > excluded && how > doubtful {
		how = e.agrees(&from, by)
	}
	if how == excluded || leads == excluded {
		return
	}
	to, known := e.target(&from, by)
	switch {
	case known && e.reach.from(to) == excluded:
	case how == doubtful || leads == doubtful:
		e.out.all = false
	default:
		e.out.list = append(e.out.list, arm64Entrance{pc, known && e.arm64.leads(to, e.reach.callee)})
	}
}

// target returns where a branch leads, if its code shows that. by is nil if the function is unknown.
func (e *entrancesSearch) target(f *Frame, by *step) (to machine.Addr, known bool) {
	at := f.lookup() &^ (arm64.Size - 1)
	if to = e.arm64.target(at + arm64.Size); to != 0 {
		return to, true
	}
	var code [arm64.Size]byte
	if e.Memory.ReadMemory(code[:], at) != nil {
		return 0, false
	}
	if to, known = arm64.Jump(code[:], at); known || by == nil {
		return to, known
	}
	to = e.arm64.number(e.arm64.read(by.Start), at)
	return to, to != 0
}

// leads grades whether a branch of a function may lead to the callee. by is nil if the function is unknown.
func (e *entrancesSearch) leads(code []byte, f *Frame, by *step) evidence {
	at := f.PC
	to, direct := arm64.Jump(code, at)
	if f.Return {
		at -= arm64.Size
		to = e.arm64.target(f.PC)
	}
	switch {
	case to != 0:
		return e.reach.from(to)
	case !f.Return && !direct && (by != nil || e.inThunk(at)): // a jump in a table; or a thunk, whose callers are examined
		return excluded
	}
	return plausible
}

// inThunk reports whether the jump at an address ends a thunk.
func (e *entrancesSearch) inThunk(at machine.Addr) bool {
	for n := range machine.Addr(maxThunk) {
		if _, is := e.arm64Thunk(at - n*arm64.Size); is {
			return true
		}
	}
	return false
}

// fits grades whether the frame of f at its branch fits the stack, and returns the step from f to its caller. The grade is doubtful if that step
// is unknown.
func (e *entrancesSearch) fits(f *Frame) (by *step, how evidence) {
	by, err := f.code.cfi(f.lookup())
	if err == nil && by == nil {
		by = e.byInstructions(f)
	}
	switch {
	case err != nil || by == nil:
		return nil, doubtful
	case by.signal:
		return by, excluded
	case f.Return && e.written(f):
		return by, plausible
	}
	cfa, err := e.cfa(e.regs, by.row.CFA)
	switch {
	case err != nil:
		return by, doubtful
	case cfa <= e.sp: // f has no frame, so the branch that entered it is examined instead
		return by, excluded
	}
	at := *f
	at.CFA = cfa
	if to, err := e.returnAddress(&at, by.row); err != nil {
		return by, doubtful
	} else if _, err := e.called(to, false); err != nil {
		return by, excluded
	}
	return by, plausible
}

// written reports whether the call of f is in code that a runtime has written over a function.
func (e *entrancesSearch) written(f *Frame) bool {
	return e.Overwritten != nil && slices.ContainsFunc(e.Overwritten(f, nil), func(o Overwritten) bool { return o.Sure })
}

// agrees grades how well the stack agrees with the frame at a branch and with its callers.
func (e *entrancesSearch) agrees(f *Frame, by *step) (how evidence) {
	if !f.Return || !e.written(f) {
		return min(e.arm64Above(*f, by), plausible)
	}
	places := e.Overwritten(f, nil)
	for n := range places {
		o := &places[n]
		if !o.Sure {
			continue
		}
		d := e.arm64PatchedFrame(f, o, e.floor)
		if d.regs == nil {
			return doubtful
		}
		at := Frame{Index: f.Index, PC: o.At, Registers: d.regs, code: e.Finder.Code(o.At)}
		s, err := at.code.cfi(o.At)
		if err != nil || s == nil {
			return doubtful
		}
		how = max(how, min(e.arm64Above(at, s), plausible))
	}
	return how
}

// byInstructions returns the step from a frame in code without CFI, or nil.
func (e *entrancesSearch) byInstructions(f *Frame) *step {
	if f.code.Functions == nil {
		return nil
	}
	start, _ := f.code.Functions.Function(f.lookup())
	if start == 0 {
		return nil
	}
	m := e.arm64.read(start).at(f)
	if m == nil {
		return nil
	}
	row, err := m.row(f.PC, f.Return)
	if err != nil {
		return nil
	}
	s := e.fromRow(f, row)
	s.Start = start
	return s
}
