package abi

import (
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// argumentRules holds the rules by which arguments of the C convention are assigned to registers.
type argumentRules struct {
	integers, floats int    // number of registers of each kind
	vector           uint64 // least size of a vector in bytes: a smaller one is widened to it
	// even reports whether a two-word integer starts at an even register, and an array is in registers as a whole or not at all. After an argument that
	// does not fit, no further argument of its kind is in registers (AAPCS64, 6.8.2, rules C.10 to C.13; functionArgumentNeedsConsecutiveRegisters of
	// LLVM).
	even bool
	// whole reports whether a two-word integer is never split between registers and the stack. aligned reports whether it is aligned to two words on the
	// stack. halves reports whether a half is in an integer register.
	whole, aligned, halves bool
}

// argumentsOf holds the rules of the supported architectures, one for each group of LLVM releases that differ: System V ABI, AMD64 supplement, 3.2.3;
// AAPCS64, 6.8.2.
var argumentsOf = map[*machine.Arch][]argumentRules{
	machine.AMD64: {
		{integers: 6, floats: 8, vector: 16, halves: true},               // LLVM 14
		{integers: 6, floats: 8, vector: 16},                             // 15 to 17
		{integers: 6, floats: 8, vector: 16, aligned: true},              // 18 and 19
		{integers: 6, floats: 8, vector: 16, aligned: true, whole: true}, // 20 and later
	},
	machine.ARM64: {{integers: 8, floats: 8, vector: 8, even: true, whole: true, aligned: true}},
}

// ArgumentArea returns the size in bytes of the stack arguments of a function. They lie in the caller's stack, and the function may overwrite them. Where
// releases of LLVM differ, it returns the greatest size. It returns 0 if f is nil or the architecture has no rules here.
func ArgumentArea(f *ir.Func, arch *machine.Arch) (most uint64) {
	if f == nil {
		return 0
	}
	for _, rules := range argumentsOf[arch] {
		a := newArguments(rules, f.Module.Layout, arch)
		for _, p := range f.Params {
			a.give(p.Typ, *p.Attrs)
		}
		most = max(most, a.bytes)
	}
	return most
}

// OnStackInParts reports whether a parameter is an i128 for which fewer than two argument registers of x86-64 are left. LLVM records the address of
// such an argument on the stack (seen: llc 14 to 22). If one register is left, only LLVM 19 and later do this; older releases split the argument.
func OnStackInParts(f *ir.Func, p *ir.Param) bool {
	if p.Typ.Kind != ir.IntKind || p.Typ.Bits != 128 {
		return false
	}
	registers, used := argumentsOf[machine.AMD64][0].integers, 0
	for _, q := range f.Params[:p.Index] {
		switch {
		case q.Attrs.ByVal != nil:
		case q.Typ.Kind == ir.PointerKind:
			used++
		case q.Typ.Kind == ir.IntKind && used+(q.Typ.Bits+63)/64 <= registers:
			used += (q.Typ.Bits + 63) / 64
		}
	}
	return used+2 > registers
}

// InRegisters reports whether on arm64 all arguments of a function are in registers, each in one register. It returns false if it is uncertain.
func InRegisters(f *ir.Func) bool {
	return len(f.Params) <= argumentsOf[machine.ARM64][0].integers && !slices.ContainsFunc(f.Params, func(p *ir.Param) bool {
		switch p.Typ.Kind {
		case ir.IntKind:
			return p.Typ.Bits > 64
		case ir.PointerKind, ir.FloatKind, ir.DoubleKind:
			return false
		}
		return true
	})
}

const word = 8 // size in bytes of a general register, and of a stack slot for an argument

// maxElements limits the elements of an array that are examined; it exceeds the number of registers.
const maxElements = 64

// arguments assigns registers and stack to arguments. The embedded rules hold the numbers of registers that are left.
type arguments struct {
	argumentRules
	layout *ir.DataLayout
	arch   *machine.Arch
	all    argumentRules // the rules with all registers
	bytes  uint64
	words  []ArgumentWord // words of the current argument
}

func newArguments(rules argumentRules, layout *ir.DataLayout, arch *machine.Arch) *arguments {
	return &arguments{argumentRules: rules, all: rules, layout: layout, arch: arch}
}

// give assigns the words of one argument and stores them in a.words.
func (a *arguments) give(t *ir.Type, attrs ir.ParamAttrs) {
	a.words = nil
	in := argumentRegistersOf[a.arch]
	switch {
	case attrs.ByVal != nil:
		a.push(a.layout.Size(attrs.ByVal), uint64(a.layout.Align(attrs.ByVal)))
	case attrs.SRet != nil && in.result != nil:
		a.words = append(a.words, ArgumentWord{Register: *in.result})
	default:
		a.take(t)
	}
}

// push assigns a place on the stack, aligned and padded to whole words.
func (a *arguments) push(size, align uint64) {
	align = max(align, word)
	a.bytes = (a.bytes + align - 1) &^ (align - 1)
	a.words = append(a.words, ArgumentWord{OnStack: true, Offset: a.bytes})
	a.bytes += (max(size, 1) + word - 1) &^ (word - 1)
}

func (a *arguments) take(t *ir.Type) {
	switch {
	case t.Kind == ir.StructKind:
		for _, field := range t.Fields {
			a.take(field)
		}
	case t.Kind == ir.ArrayKind:
		a.array(t)
	case t.Kind == ir.IntKind, t.Kind == ir.PointerKind:
		a.integer(t)
	case t.Kind == ir.X86FP80Kind:
		a.push(16, 16)
	case t.Kind == ir.HalfKind && a.halves:
		a.inWords(1, 0)
	case t.Kind == ir.VectorKind: // one register for each 16 bytes, as in code without wider registers
		size := max(a.layout.Size(t), a.vector)
		a.float(int(min((size+15)/16, maxElements)), size)
	default:
		a.float(1, a.layout.Size(t))
	}
}

func (a *arguments) float(registers int, size uint64) {
	if a.floats >= registers {
		for n := range registers {
			a.words = append(a.words, ArgumentWord{Register: argumentRegistersOf[a.arch].floats[a.all.floats-a.floats+n]})
		}
		a.floats -= registers
		return
	}
	a.push(size, min(size, 64))
}

func (a *arguments) integer(t *ir.Type) {
	n := int(min((a.layout.StoreSize(t)+word-1)/word, maxElements))
	align := uint64(0)
	if n == 2 && a.aligned {
		align = 2 * word
	}
	if n == 2 && a.even {
		a.integers &^= 1
	}
	if n == 2 && a.whole && a.integers < n {
		a.integers = 0 // later integers do not get the last register either
		a.push(2*word, align)
		return
	}
	a.inWords(n, align)
}

// inWords assigns n words, each to a register or the stack. The first word on the stack has the given alignment.
func (a *arguments) inWords(n int, align uint64) {
	for range n {
		if a.integers > 0 {
			a.words = append(a.words, ArgumentWord{Register: argumentRegistersOf[a.arch].integers[a.all.integers-a.integers]})
			a.integers--
			continue
		}
		a.push(word, align)
		align = 0
	}
}

// array assigns an array, as a whole if even is set, or otherwise element by element.
func (a *arguments) array(t *ir.Type) {
	before := *a
	for range min(t.Len, maxElements) {
		a.take(t.Elem)
	}
	if !a.even || a.bytes == before.bytes {
		return
	}
	*a = before
	if t.Elem.Kind == ir.IntKind || t.Elem.Kind == ir.PointerKind {
		a.integers = 0
	} else {
		a.floats = 0
	}
	for range min(t.Len, maxElements) {
		a.take(t.Elem)
	}
}

// RedZone is the number of bytes below the stack pointer that a leaf function may use for variables (System V ABI, AMD64 supplement, 3.2.2). AAPCS64 has no
// red zone.
const RedZone = 128
