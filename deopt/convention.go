package deopt

import (
	"slices"

	"reframe/deopt/ir"
	"reframe/deopt/machine"
	"reframe/deopt/unwind"
)

// convention is a calling convention in what it keeps otherwise than C's does.
type convention struct {
	keeps []machine.DWARFReg // general registers
	loses []machine.DWARFReg
}

// The numbers of x86-64's registers in DWARF.
const (
	dwRAX machine.DWARFReg = iota
	dwRDX
	dwRCX
	dwRBX
	dwRSI
	dwRDI
	dwRBP
	dwRSP
	dwR8
	dwR9
	dwR10
	dwR11
	dwR12
	dwR13
	dwR14
	dwR15
)

// conventions are those of x86-64 by what LLVM calls them: its lists of callee-saved registers (CSR_64_ and so on in X86CallingConv.td), which
// are the same in LLVM 14 to 22. Vector registers, which some of them keep too, are not read. What a function returns a value in it does not keep.
var conventions = func() map[string]convention {
	most := []machine.DWARFReg{dwRAX, dwRDX, dwRCX, dwRSI, dwRDI, dwR8, dwR9, dwR10}
	all := []machine.DWARFReg{dwRBX, dwRBP, dwR12, dwR13, dwR14, dwR15}
	named := map[string]convention{
		"preserve_mostcc": {keeps: most},
		"preserve_allcc":  {keeps: most},
		"coldcc":          {keeps: append([]machine.DWARFReg{dwR11}, most[1:]...)},
		"anyregcc":        {keeps: append([]machine.DWARFReg{dwR11}, most...)},
		"x86_regcallcc":   {},
		"win64cc":         {keeps: []machine.DWARFReg{dwRSI, dwRDI}},
		"swifttailcc":     {loses: []machine.DWARFReg{dwR13, dwR14}},
		"ghccc":           {loses: all},
		"preserve_nonecc": {loses: slices.DeleteFunc(slices.Clone(all), func(r machine.DWARFReg) bool { return r == dwRBP })},
	}
	for number, name := range map[string]string{"cc 9": "coldcc", "cc 10": "ghccc", "cc 11": "ghccc", "cc 13": "anyregcc", "cc 14": "preserve_mostcc", "cc 15": "preserve_allcc",
		"cc 20": "swifttailcc", "cc 21": "preserve_nonecc", "cc 79": "win64cc", "cc 92": "x86_regcallcc"} {
		named[number] = named[name]
	}
	return named
}()

// returnedIn are the registers of which a function that returns a value may have any for it.
var returnedIn = []machine.DWARFReg{dwRAX, dwRDX, dwRCX, dwR8}

// of makes of a convention what the unwinder has to know of a function: nil where that is as in C.
func (c convention) of(cc string, f *callable) *unwind.Convention {
	out := &unwind.Convention{Name: cc, Keeps: slices.Clone(c.keeps), Loses: c.loses}
	if f.result > 0 {
		out.Keeps = slices.DeleteFunc(out.Keeps, func(r machine.DWARFReg) bool { return slices.Contains(returnedIn, r) })
	}
	if cc == "x86_regcallcc" || cc == "cc 92" { // what arguments and results come in is not kept (shouldDisableArgRegFromCSR)
		if f.parameters > scratchOfRegCall || f.result > scratchOfRegCall {
			out.Keeps, out.Loses = nil, []machine.DWARFReg{dwR12, dwR13, dwR14, dwR15}
		}
	}
	if f.swiftError {
		out.Loses = append(slices.Clone(out.Loses), dwR12)
	}
	if len(out.Keeps) == 0 && len(out.Loses) == 0 {
		return nil
	}
	return out
}

// scratchOfRegCall is how many words of arguments take no register that regcall's functions keep: rax, rcx, rdx, rdi, rsi, r8 and r9.
const scratchOfRegCall = 7

// callable is what decides beside its convention which registers a function keeps.
type callable struct {
	cc                 string
	parameters, result uint64 // words of 8 bytes, at least one for each
	swiftError         bool
}

// callableOf is what is known of a function by its type.
func callableOf(m *ir.Module, cc string, sig *ir.Type) callable {
	words := func(t *ir.Type) uint64 {
		if t.Kind == ir.VoidKind {
			return 0
		}
		return max(1, (m.Layout.Size(t)+7)/8)
	}
	c := callable{cc: cc, result: words(sig.Elem)}
	for _, t := range sig.Fields {
		c.parameters += words(t)
	}
	return c
}

// conventionOf finds the convention of the function of callee, which has returned to f or will: nil where it is C's, or is not known. What it
// loses is said by the function itself. What it keeps holds for f only where f called that very function, and no other that jumped to it: the
// call names it, or the site in f is one of the same convention.
func (v *View) conventionOf(callee, f *unwind.Frame) *unwind.Convention {
	if v.target.Arch() != machine.AMD64 || len(v.modules.all) == 0 {
		return nil
	}
	name, start := "", machine.Addr(0)
	if c := v.space.at(callee.Lookup()); c != nil {
		symbol, at, named := c.function(callee.Lookup())
		if named {
			start = at
		}
		// Of two functions of one name, or in an image that no module was compiled into, it may be another one.
		if named && c.records != nil && c.image != nil {
			if _, only := c.image.Only(symbol); only {
				name = symbol
			}
		}
	}
	to, called := v.calledBefore(f.PC)
	direct := called && start != 0 && to == start
	is, known := callable{}, false
	if name != "" {
		is, known = agreedConvention(v.modules.definitions(name))
	}
	site, sure := callable{}, false
	if !direct || !known {
		site, sure = v.siteConvention(f)
	}
	switch {
	case !known && (!direct || !sure):
		return nil
	case !known: // native code that the modules only declare
		is = site
	case !direct:
		direct = f.Skipped == 0 && sure && site.cc == is.cc
	}
	out := conventions[is.cc].of(is.cc, &is)
	if out != nil && !direct {
		out.Keeps = nil
	}
	return out
}

// agreedConvention is what is known of functions where they are of one convention: the most that any of them takes and returns.
func agreedConvention(functions []*ir.Func) (is callable, known bool) {
	for n, f := range functions {
		c := callableOf(f.Module, f.CC, f.Sig)
		for _, p := range f.Params {
			c.swiftError = c.swiftError || p.Attrs.SwiftError
		}
		if n > 0 && c.cc != is.cc {
			return callable{}, false
		}
		is = callable{c.cc, max(is.parameters, c.parameters), max(is.result, c.result), is.swiftError || c.swiftError}
	}
	return is, len(functions) > 0
}

// siteConvention is the same of the site whose call returns to the pc of a frame, as the modules say: of all that it may be.
func (v *View) siteConvention(f *unwind.Frame) (is callable, known bool) {
	c := v.space.at(f.PC - 1)
	if c == nil || c.records == nil || !f.Return {
		return is, false
	}
	owner := c.at(f.PC - 1).owner
	name, _, _ := c.function(owner)
	near := c.records.Range(f.PC-min(f.PC, maxPatch), f.PC+1)
	for n := max(0, near.Len()-maxNear); n < near.Len(); n++ {
		e := recordEntry{near.Entry(n), near.Entry(n).Record()}
		if e.Function.Addr != owner {
			continue
		}
		sites, err := v.modules.ofRecord(c, e, name)
		if err != nil {
			return callable{}, false
		}
		for _, s := range sites.sites {
			switch {
			case s.Kind == ir.StackMapSite:
				continue
			case s.Kind == ir.PatchPointSite && (e.Addr >= f.PC || uint64(f.PC-e.Addr) > s.PatchBytes):
				continue
			case s.Kind != ir.PatchPointSite && e.Addr != f.PC:
				continue
			case known && s.CC != is.cc:
				return callable{}, false
			}
			of := callableAt(s)
			known, is = true, callable{s.CC, max(is.parameters, of.parameters), max(is.result, of.result), false}
		}
	}
	return is, known
}

// callableAt is what a site says of what it calls.
func callableAt(s *ir.Site) callable {
	c := callable{cc: s.CC, parameters: uint64(len(s.Instr.Args)), result: 1}
	sig := s.Instr.Call.Sig
	if s.Instr.Typ.Kind == ir.TokenKind { // a gc.statepoint returns a token
		if sig = nil; len(s.Instr.Call.ElemTypes) > 2 {
			sig = s.Instr.Call.ElemTypes[2]
		}
	}
	if sig != nil && sig.Kind == ir.FuncKind && sig.Elem.Kind == ir.VoidKind {
		c.result = 0
	}
	return c
}
