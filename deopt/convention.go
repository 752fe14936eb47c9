package deopt

import (
	"slices"

	"reframe/deopt/ir"
	"reframe/deopt/machine"
	"reframe/deopt/unwind"
)

// convention is a calling convention in what it keeps otherwise than C's does.
type convention struct {
	keeps   []machine.DWARFReg // general registers
	vectors []machine.DWARFReg // vector registers, their first 16 bytes
	loses   []machine.DWARFReg
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
	dwRIP
	dwXMM0
)

// vectorRegisters are those from one to another, with it.
func vectorRegisters(first, last machine.DWARFReg) (list []machine.DWARFReg) {
	for n := first; n <= last; n++ {
		list = append(list, dwXMM0+n)
	}
	return list
}

// conventions are those of x86-64 by what LLVM calls them: its lists of callee-saved registers (CSR_64 and so on in X86CallingConv.td, which
// of them is whose in X86RegisterInfo::getCalleeSavedRegs), which are the same in LLVM 14 to 22. What a function returns a value in it does not keep.
//
// With AVX preserve_all, anyreg and intel_ocl_bi list ymm registers, but their functions end in a vzeroupper (X86VZeroUpper.cpp), so that of those
// they keep what is xmm. A function of intel_ocl_bi keeps other registers with AVX-512, and which features it was compiled for is not known. One of
// cxx_fast_tls that does not unwind keeps registers in other ones, of which its CFI says nothing (supportSplitCSR, X86ISelLowering.h).
var conventions = func() map[string]convention {
	most := []machine.DWARFReg{dwRAX, dwRDX, dwRCX, dwRSI, dwRDI, dwR8, dwR9, dwR10}
	all := []machine.DWARFReg{dwRBX, dwRBP, dwR12, dwR13, dwR14, dwR15}
	without := func(list []machine.DWARFReg, reg machine.DWARFReg) []machine.DWARFReg {
		return slices.DeleteFunc(slices.Clone(list), func(r machine.DWARFReg) bool { return r == reg })
	}
	named := map[string]convention{
		"preserve_mostcc": {keeps: most},
		"preserve_allcc":  {keeps: most, vectors: vectorRegisters(0, 15)},
		"coldcc":          {keeps: append([]machine.DWARFReg{dwR11}, most[1:]...), vectors: vectorRegisters(0, 15)},
		"anyregcc":        {keeps: append([]machine.DWARFReg{dwR11}, most...), vectors: vectorRegisters(0, 15)},
		"x86_regcallcc":   {vectors: vectorRegisters(8, 15)},
		"win64cc":         {keeps: []machine.DWARFReg{dwRSI, dwRDI}, vectors: vectorRegisters(6, 15)},
		"swifttailcc":     {loses: []machine.DWARFReg{dwR13, dwR14}},
		"ghccc":           {loses: all},
		"hhvmcc":          {loses: without(all, dwR12)},
		"cxx_fast_tlscc":  {loses: without(all, dwRBP)},
		"intel_ocl_bicc":  {loses: []machine.DWARFReg{dwRBP, dwR12, dwR13}},
		"preserve_nonecc": {loses: without(all, dwRBP)},
	}
	for number, name := range map[string]string{"cc 9": "coldcc", "cc 10": "ghccc", "cc 11": "ghccc", "cc 13": "anyregcc", "cc 14": "preserve_mostcc", "cc 15": "preserve_allcc",
		"cc 17": "cxx_fast_tlscc", "cc 20": "swifttailcc", "cc 21": "preserve_nonecc", "cc 77": "intel_ocl_bicc", "cc 79": "win64cc", "cc 81": "hhvmcc", "cc 92": "x86_regcallcc"} {
		named[number] = named[name]
	}
	return named
}()

// returnedIn are the registers of which a function that returns a value may have any for it.
var returnedIn = append([]machine.DWARFReg{dwRAX, dwRDX, dwRCX, dwR8}, vectorRegisters(0, 3)...)

// of makes of a convention what the unwinder has to know of a function: nil where that is as in C.
func (c convention) of(cc string, f *callable) *unwind.Convention {
	out := &unwind.Convention{Name: cc, Keeps: slices.Clone(c.keeps), Vectors: slices.Clone(c.vectors), Loses: c.loses}
	if f.result > 0 {
		returned := func(r machine.DWARFReg) bool { return slices.Contains(returnedIn, r) }
		out.Keeps, out.Vectors = slices.DeleteFunc(out.Keeps, returned), slices.DeleteFunc(out.Vectors, returned)
	}
	if cc == "x86_regcallcc" || cc == "cc 92" { // what arguments and results come in is not kept (shouldDisableArgRegFromCSR)
		if f.parameters > scratchOfRegCall || f.result > scratchOfRegCall {
			out.Keeps, out.Vectors, out.Loses = nil, nil, []machine.DWARFReg{dwR12, dwR13, dwR14, dwR15}
		}
	}
	if f.swiftError {
		out.Loses = append(slices.Clone(out.Loses), dwR12)
	}
	if len(out.Keeps)+len(out.Vectors)+len(out.Loses) == 0 {
		return nil
	}
	return out
}

// scratchOfRegCall is how many words of arguments take no register that regcall's functions keep: rax, rcx, rdx, rdi, rsi, r8 and r9, or
// xmm0 to xmm7.
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
	direct := start != 0 && v.callLeadsTo(f.PC, start)
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
		out.Keeps, out.Vectors = nil, nil
	}
	return out
}

// callLeadsTo says whether the call that returns to pc is of the function that starts at an address: it names that, or takes it from a word
// beside the code, as calls of functions of regcall do in code that may lie anywhere (X86Subtarget::classifyGlobalFunctionReference).
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
