package deopt

import (
	"golang.org/x/arch/x86/x86asm"

	"reframe/deopt/ir"
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
			if at, known := f.symbol(s.Func)(callee.Name); known && at != to {
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

// calledBefore returns the function that the call before pc calls: call rel32, or, in the
// large code model, movabs $target,%reg and call *%reg. It is false where no function
// starts there: a stub may lead anywhere.
func (v *View) calledBefore(pc machine.Addr) (machine.Addr, bool) {
	const direct, movabs = 5, 10
	for _, n := range []machine.Addr{direct, movabs + 2, movabs + 3} {
		b := make([]byte, n)
		if pc < n || v.target.ReadMemory(b, pc-n) != nil {
			continue
		}
		inst, err := x86asm.Decode(b, 64)
		if err != nil {
			continue
		}
		to := machine.Addr(0)
		switch by, relative := inst.Args[0].(x86asm.Rel); {
		case relative && inst.Op == x86asm.CALL && inst.Len == direct && n == direct:
			to = pc + machine.Addr(int64(by))
		case inst.Op == x86asm.MOV && inst.Len == movabs && n > movabs:
			call, err := x86asm.Decode(b[movabs:], 64)
			if err != nil || call.Op != x86asm.CALL || call.Len != int(n)-movabs || call.Args[0] != inst.Args[0] {
				continue
			}
			imm, _ := inst.Args[1].(x86asm.Imm)
			to = machine.Addr(imm)
		default:
			continue
		}
		if _, ok := v.symbolAt(to); ok {
			return to, true
		}
	}
	return 0, false
}
