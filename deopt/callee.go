package deopt

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// narrow returns the sites whose callee may be the function that the frame actually calls, or all sites if no callee may be. narrow takes that
// function from the call before the pc, or from the frame that runs in that call. It compares addresses, because one function may have several names.
func (f *Frame) narrow(all []*ir.Site) []*ir.Site {
	if len(all) < 2 {
		return all
	}
	to, called := f.view.calledBefore(f.physical.PC)
	running, runs := machine.Addr(0), false
	if !called {
		if running, runs = f.running(); !runs {
			return all
		}
	}
	var out []*ir.Site
	for _, s := range all {
		callee := calleeOf(s)
		if callee == "" {
			out = append(out, s)
			continue
		}
		at, known := f.Symbols(s.Func)(callee)
		switch {
		case known && called && at != to:
		case known && runs && at != running && f.view.neverTailCalls(at):
		default:
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// calleeOf returns the name of the function that a site calls. For a stackmap it is the function of the call right before it. calleeOf returns ""
// if the module does not name the function.
func calleeOf(s *ir.Site) string {
	if s.Kind == ir.StackMapSite {
		if call := sites.CallBefore(s); call != nil {
			return sites.CalledName(call)
		}
		return ""
	}
	if callee, direct := s.Callee.(*ir.Func); direct {
		return callee.Name
	}
	return ""
}

// mayCall reports whether the call that returns to ret may call the function that a module names.
func (f *Frame) mayCall(by *ir.Func, name string, ret machine.Addr) bool {
	to, ok := f.view.calledBefore(ret)
	if !ok || name == "" {
		return true
	}
	at, known := f.Symbols(by)(name)
	return !known || at == to
}

// calledBefore returns the function that the call before pc calls: directly, or through a register that was loaded with its address on every
// path. It returns false if no function starts at the target, which may then be a stub.
func (v *View) calledBefore(pc machine.Addr) (machine.Addr, bool) {
	set := isa.Of(v.target.Arch())
	if set == nil || set.CallTarget == nil {
		return 0, false
	}
	to, ok := set.CallTarget(v.target, pc)
	if !ok {
		to, ok = v.loadedBefore(set, pc)
	}
	if !ok {
		return 0, false
	}
	_, ok = v.space.StartingAt(to)
	return to, ok
}

// loadedBefore returns the target of the call *reg before pc, if the function always loads reg with a number first.
func (v *View) loadedBefore(set *isa.Set, pc machine.Addr) (machine.Addr, bool) {
	if set.LoadedTarget == nil {
		return 0, false
	}
	start, code := v.codeOf(pc - 1)
	const shortest, longest = 2, 3 // call *%rcx, call *%r11
	for n := shortest; n <= longest; n++ {
		at := int64(pc-start) - int64(n)
		if code == nil || at < 0 || set.Length(code[at:]) != n || !set.IsCall(code[at:]) {
			continue
		}
		if _, to, ok := set.LoadedTarget(code, start, int(at)); ok {
			return to, true
		}
	}
	return 0, false
}

// codeOf returns the code of the function that contains an address, read from the target. It returns nil if the size of the function is unknown.
func (v *View) codeOf(at machine.Addr) (start machine.Addr, code []byte) {
	c := v.space.At(at)
	if c == nil {
		return 0, nil
	}
	s := c.SymbolAt(at)
	if !s.Known || s.Size == 0 || s.Size > sites.MaxFunction || at-s.Start >= machine.Addr(s.Size) {
		return 0, nil
	}
	code = make([]byte, s.Size)
	if v.target.ReadMemory(code, s.Start) != nil {
		return 0, nil
	}
	return s.Start, code
}

// neverTailCalls reports whether the function that starts at an address has no jump that leaves it. If another function runs in a call of such a
// function, that function called the other one, and did not tail-call it.
func (v *View) neverTailCalls(function machine.Addr) bool {
	set := isa.Of(v.target.Arch())
	start, code := v.codeOf(function)
	if code == nil || start != function || set == nil || set.Step == nil {
		return false
	}
	end := start + machine.Addr(len(code))
	for at := 0; at < len(code); {
		s := set.Step(code[at:], start+machine.Addr(at))
		leaves := (s.How == isa.StepJump || s.How == isa.StepBranch) && (s.Target < start || s.Target >= end)
		if s.Size == 0 || s.How == isa.StepComputed || leaves {
			return false
		}
		at += s.Size
	}
	return true
}

// running returns the start of the function that runs in the frame's pending call, which is the function of the next inner frame. It returns false if
// that inner frame is a guess, or was not entered by the frame's own call.
func (f *Frame) running() (machine.Addr, bool) {
	if f.callee == nil || f.guess != nil || !f.physical.Return || f.callee.Signal || f.callee.Overwritten != nil {
		return 0, false
	}
	c := f.view.space.At(f.callee.Lookup())
	if c == nil || f.physical.Skipped != 0 {
		return 0, false
	}
	s := c.SymbolAt(f.callee.Lookup())
	return s.Start, s.Known && s.Size > 0
}
