package abi

import (
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// Convention describes the registers that a calling convention preserves and the C convention does not, and the reverse.
type Convention struct {
	keeps   []machine.DWARFReg // general registers that are additionally preserved
	vectors []machine.DWARFReg // vector registers whose first 16 bytes are additionally preserved
	loses   []machine.DWARFReg
}

// These are DWARF numbers of x86-64 registers.
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

// vectorRegisters returns the vector registers from first to last, inclusive.
func vectorRegisters(first, last machine.DWARFReg) (list []machine.DWARFReg) {
	for n := first; n <= last; n++ {
		list = append(list, dwXMM0+n)
	}
	return list
}

// Conventions holds the conventions of x86-64 by their names in IR. The lists are those of LLVM (CSR_64 and so on in X86CallingConv.td, assigned in
// X86RegisterInfo::getCalleeSavedRegs) and are the same in LLVM 14 to 22. A function does not preserve the registers of its result.
//
// With AVX, preserve_all, anyreg and intel_ocl_bi list ymm registers. But their functions end in a vzeroupper (X86VZeroUpper.cpp), so they preserve only
// the xmm part. intel_ocl_bi preserves other registers with AVX-512; the features that the code was compiled for are unknown. A cxx_fast_tls function that
// does not unwind saves registers in other registers, which its CFI does not describe (supportSplitCSR, X86ISelLowering.h).
var Conventions = func() map[string]Convention {
	most := []machine.DWARFReg{dwRAX, dwRDX, dwRCX, dwRSI, dwRDI, dwR8, dwR9, dwR10}
	all := []machine.DWARFReg{dwRBX, dwRBP, dwR12, dwR13, dwR14, dwR15}
	without := func(list []machine.DWARFReg, reg machine.DWARFReg) []machine.DWARFReg {
		return slices.DeleteFunc(slices.Clone(list), func(r machine.DWARFReg) bool { return r == reg })
	}
	named := map[string]Convention{
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
	for number, is := range numbered {
		if like, ok := named[is.name]; ok {
			named["cc "+strconv.Itoa(int(number))] = like
		}
	}
	return named
}()

// numbered holds conventions by their numbers in LLVM's CallingConv.h, which the IR may contain. Only target-independent ones have a title (LLVM's language
// reference, "Calling Conventions"). HiPE's has no name in the IR, and preserves the same registers as GHC's.
var numbered = map[uint64]struct{ name, title string }{
	0: {"ccc", "C"}, 8: {"fastcc", "fast"}, 9: {"coldcc", "cold"}, 10: {"ghccc", "GHC"}, 11: {"ghccc", "HiPE"}, 13: {"anyregcc", "anyreg"},
	14: {"preserve_mostcc", "preserve_most"}, 15: {"preserve_allcc", "preserve_all"}, 16: {"swiftcc", "swift"}, 17: {"cxx_fast_tlscc", "cxx_fast_tls"},
	18: {"tailcc", "tail"}, 19: {"cfguard_checkcc", "cfguard_check"}, 20: {"swifttailcc", "swift_tail"}, 21: {"preserve_nonecc", "preserve_none"},
	77: {"intel_ocl_bicc", ""}, 79: {"win64cc", ""}, 81: {"hhvmcc", ""}, 92: {"x86_regcallcc", ""},
}

// ConventionTitle returns the name of a target-independent convention, or "".
func ConventionTitle(number uint64) string { return numbered[number].title }

// spelled returns the name of a convention that the IR writes as a number, such as "cc 13".
func spelled(cc string) string {
	if digits, ok := strings.CutPrefix(cc, "cc "); ok {
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil && numbered[n].name != "" {
			return numbered[n].name
		}
	}
	return cc
}

// InAnyRegisters reports whether the compiler may place the arguments and the result of a patchpoint with this convention anywhere. The record then holds
// their places ("Stack maps and patch points", llvm.experimental.patchpoint).
func InAnyRegisters(cc string) bool { return spelled(cc) == "anyregcc" }

// Taker is the side that removes stack arguments.
type Taker int

const (
	NotKnown    Taker = iota
	CallerTakes       // the caller; the function leaves them on the stack
	FlagSays          // the function if llc ran with -tailcallopt, which the module does not record; otherwise the caller
)

// WhoTakesArguments returns the side that removes the stack arguments of functions with a convention, which is written as in the IR.
func WhoTakesArguments(cc string) Taker {
	switch cc {
	case "", "ccc", "coldcc":
		return CallerTakes
	case "fastcc":
		return FlagSays
	}
	return NotKnown
}

// returnedIn lists the registers that may hold a function's result.
var returnedIn = append([]machine.DWARFReg{dwRAX, dwRDX, dwRCX, dwR8}, vectorRegisters(0, 3)...)

// Of returns the convention as the unwinder takes it, or nil if it preserves the same registers as the C convention.
func (c Convention) Of(cc string, f *Callable) *unwind.Convention {
	out := &unwind.Convention{Name: cc, Keeps: slices.Clone(c.keeps), Vectors: slices.Clone(c.vectors), Loses: c.loses}
	if f.Result > 0 {
		returned := func(r machine.DWARFReg) bool { return slices.Contains(returnedIn, r) }
		out.Keeps, out.Vectors = slices.DeleteFunc(out.Keeps, returned), slices.DeleteFunc(out.Vectors, returned)
	}
	if spelled(cc) == "x86_regcallcc" { // the registers of arguments and results are not preserved (shouldDisableArgRegFromCSR)
		if f.Parameters > scratchOfRegCall || f.Result > scratchOfRegCall {
			out.Keeps, out.Vectors, out.Loses = nil, nil, []machine.DWARFReg{dwR12, dwR13, dwR14, dwR15}
		}
	}
	if f.SwiftError {
		out.Loses = append(slices.Clone(out.Loses), dwR12)
	}
	if len(out.Keeps)+len(out.Vectors)+len(out.Loses) == 0 {
		return nil
	}
	return out
}

// scratchOfRegCall is the number of argument words that fit in registers that regcall does not preserve anyway: rax, rcx, rdx, rdi, rsi, r8 and r9, or
// xmm0 to xmm7.
const scratchOfRegCall = 7

// Callable holds the properties of a function, besides its convention, that decide which registers it preserves.
type Callable struct {
	CC                 string
	Parameters, Result uint64 // number of 8-byte words; each value counts at least one
	SwiftError         bool
}

// callableOf returns the Callable for the type of a function.
func callableOf(m *ir.Module, cc string, sig *ir.Type) Callable {
	words := func(t *ir.Type) uint64 {
		if t.Kind == ir.VoidKind {
			return 0
		}
		return max(1, (m.Layout.Size(t)+7)/8)
	}
	c := Callable{CC: cc, Result: words(sig.Elem)}
	for _, t := range sig.Fields {
		c.Parameters += words(t)
	}
	return c
}

// AgreedConvention returns one Callable for several functions with the same convention. It has the greatest numbers of parameter and result words
// among them. known is false if their conventions differ.
func AgreedConvention(functions []*ir.Func) (is Callable, known bool) {
	for n, f := range functions {
		c := callableOf(f.Module, f.CC, f.Sig)
		for _, p := range f.Params {
			c.SwiftError = c.SwiftError || p.Attrs.SwiftError
		}
		if n > 0 && c.CC != is.CC {
			return Callable{}, false
		}
		is = Callable{c.CC, max(is.Parameters, c.Parameters), max(is.Result, c.Result), is.SwiftError || c.SwiftError}
	}
	return is, len(functions) > 0
}

// CallableAt returns the Callable for the callee of a site.
func CallableAt(s *ir.Site) Callable {
	c := Callable{CC: s.CC, Parameters: uint64(len(s.Instr.Args)), Result: 1}
	sig := s.Instr.Call.Sig
	if s.Instr.Typ.Kind == ir.TokenKind { // a gc.statepoint returns a token
		if sig = nil; len(s.Instr.Call.ElemTypes) > 2 {
			sig = s.Instr.Call.ElemTypes[2]
		}
	}
	if sig != nil && sig.Kind == ir.FuncKind && sig.Elem.Kind == ir.VoidKind {
		c.Result = 0
	}
	return c
}
