package deopt

import (
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
)

// conventionOf returns the calling convention of callee's function, which was called from f. It returns nil if the convention is C's, or unknown. The
// result always has the registers that the convention clobbers. It has those that the convention preserves only if f certainly called callee's
// function, and not a function that tail-called it. That is certain if the call names the function, or if the site in f has the same convention.
func (v *View) conventionOf(callee, f *unwind.Frame) *unwind.Convention {
	if v.target.Arch() != machine.AMD64 || len(v.modules.All) == 0 {
		return nil
	}
	name, start := "", machine.Addr(0)
	if c := v.space.At(callee.Lookup()); c != nil {
		symbol, at, named := c.NameAt(callee.Lookup())
		if named {
			start = at
		}
		// The name is ambiguous if two functions share it, or if no module was compiled into the image.
		if named && c.Records != nil && c.Image != nil {
			if _, only := c.Image.Only(symbol); only {
				name = symbol
			}
		}
	}
	direct := start != 0 && v.callLeadsTo(f.PC, start)
	is, known := abi.Callable{}, false
	if name != "" {
		is, known = abi.AgreedConvention(v.modules.Definitions(name))
	}
	site, sure := abi.Callable{}, false
	if !direct || !known {
		site, sure = v.siteConvention(f)
	}
	switch {
	case !known && (!direct || !sure):
		return nil
	case !known: // the modules only declare the function, so its convention is that of the site
		is = site
	case !direct:
		direct = f.Skipped == 0 && sure && site.CC == is.CC
	}
	out := abi.Conventions[is.CC].Of(is.CC, &is)
	if out != nil && !direct {
		out.Keeps, out.Vectors = nil, nil
	}
	return out
}

// siteConvention returns the convention of the site whose call returns to the pc of a frame. If several sites are possible, they must have the same
// convention.
func (v *View) siteConvention(f *unwind.Frame) (is abi.Callable, known bool) {
	c := v.space.At(f.PC - 1)
	if c == nil || c.Records == nil || !f.Return {
		return is, false
	}
	owner := c.SymbolAt(f.PC - 1).Owner
	name, _, _ := c.NameAt(owner)
	near := c.Records.Range(f.PC-min(f.PC, sites.MaxPatch), f.PC+1)
	for n := max(0, near.Len()-sites.MaxNear); n < near.Len(); n++ {
		e := sites.RecordEntry{Entry: near.Entry(n), Record: near.Entry(n).Record()}
		if e.Function.Addr != owner {
			continue
		}
		sites, err := v.modules.OfRecord(c, e, name)
		if err != nil {
			return abi.Callable{}, false
		}
		for _, s := range sites.Sites {
			switch {
			case s.Kind == ir.StackMapSite:
				continue
			case s.Kind == ir.PatchPointSite && (e.Addr >= f.PC || uint64(f.PC-e.Addr) > s.PatchBytes):
				continue
			case s.Kind != ir.PatchPointSite && e.Addr != f.PC:
				continue
			case known && s.CC != is.CC:
				return abi.Callable{}, false
			}
			of := abi.CallableAt(s)
			known, is = true, abi.Callable{CC: s.CC, Parameters: max(is.Parameters, of.Parameters), Result: max(is.Result, of.Result), SwiftError: false}
		}
	}
	return is, known
}

// callLeadsTo reports whether the call that returns to pc calls the function that starts at an address. The call names that address, or loads it from
// a word beside the code. LLVM does the latter for regcall functions in position-independent code (X86Subtarget::classifyGlobalFunctionReference).
func (v *View) callLeadsTo(pc, start machine.Addr) bool {
	if to, called := v.calledBefore(pc); called {
		return to == start
	}
	const callMemory = 6 // call *distance(%rip)
	var b [callMemory]byte
	if pc < callMemory || v.target.ReadMemory(b[:], pc-callMemory) != nil || b[0] != 0xff || b[1] != 0x15 {
		return false
	}
	arch := v.target.Arch()
	to, err := machine.ReadAddr(v.target, arch, pc+machine.Addr(int64(int32(arch.Order.Uint32(b[2:])))))
	return err == nil && to == start
}
