package deopt

import (
	"reframe/deopt/ir"
	"reframe/deopt/isa"
	"reframe/deopt/machine"
)

// narrow keeps the sites whose callee may be what the frame really calls, so far as the
// call before its pc tells. Addresses are compared, for one function may have several
// names.
func (f *Frame) narrow(sites []*ir.Site) []*ir.Site {
	if len(sites) < 2 {
		return sites
	}
	to, ok := f.view.calledBefore(f.physical.PC)
	if !ok {
		return sites
	}
	var out []*ir.Site
	for _, s := range sites {
		callee, direct := s.Callee.(*ir.Func)
		if direct {
			if at, known := f.Symbols(s.Func)(callee.Name); known && at != to {
				continue
			}
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return sites
	}
	return out
}

// mayCall says whether the call that returns to an address may be that of a function of a module by its name.
func (f *Frame) mayCall(by *ir.Func, name string, ret machine.Addr) bool {
	to, ok := f.view.calledBefore(ret)
	if !ok || name == "" {
		return true
	}
	at, known := f.Symbols(by)(name)
	return !known || at == to
}

// calledBefore returns the function that the call before pc calls directly. It is false
// where no function starts there: a stub may lead anywhere. A call through a register
// tells nothing, even behind the instruction that loads it: LLVM merges the ends of
// blocks, so that other code, which loads another address, jumps to the call.
func (v *View) calledBefore(pc machine.Addr) (machine.Addr, bool) {
	set := isa.Of(v.target.Arch())
	if set == nil || set.CallTarget == nil {
		return 0, false
	}
	to, ok := set.CallTarget(v.target, pc)
	if !ok {
		return 0, false
	}
	_, ok = v.space.StartingAt(to)
	return to, ok
}
