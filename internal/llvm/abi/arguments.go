package abi

import (
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// argumentRules holds the rules by which arguments of C's convention are in registers.
type argumentRules struct {
	integers, floats int    // registers of each kind
	vector           uint64 // of the smallest vector, in bytes: a smaller one is widened to that
	// even reports whether a number of two words starts at an even register, and an array is in registers as a whole: after one that does not fit, no
	// further argument of its kind is in registers (AAPCS64, 6.8.2, rules C.10 to C.13, and functionArgumentNeedsConsecutiveRegisters of LLVM).
	even bool
	// whole reports whether a number of two words is in registers as a whole, aligned whether it is aligned to both on the stack, and halves whether
	// a half is in an integer register.
	whole, aligned, halves bool
}

// argumentsOf holds the rules of the architectures whose arguments are known, one for each way in which LLVM's releases differ: System V ABI, AMD64
// supplement, 3.2.3; AAPCS64, 6.8.2.
var argumentsOf = map[*machine.Arch][]argumentRules{
	machine.AMD64: {
		{integers: 6, floats: 8, vector: 16, halves: true},               // LLVM 14
		{integers: 6, floats: 8, vector: 16},                             // 15 to 17
		{integers: 6, floats: 8, vector: 16, aligned: true},              // 18 and 19
		{integers: 6, floats: 8, vector: 16, aligned: true, whole: true}, // 20 and later
	},
	machine.ARM64: {{integers: 8, floats: 8, vector: 8, even: true, whole: true, aligned: true}},
}

// ArgumentArea returns the number of bytes of a caller's stack that may hold arguments of a function, and that the function may overwrite: those of
// the arguments that do not fit in registers. Where releases of LLVM differ, it returns the most. It returns 0 for no function, and for an
// architecture without rules here.
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

// OnStackInParts reports whether a parameter is an i128 that no two argument registers of x86-64 are left for. LLVM records of it the address
// of where it lies (seen: llc 14 to 22; where one register is left, from 19 on: before, the parts were parted).
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

// InRegisters reports whether on arm64 all arguments of a function fit in registers, of which each takes one. It is false for some functions whose
// arguments do fit.
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

const word = 8 // of a register and of a place on the stack, in bytes

// maxElements bounds how much of an array is looked at: more than there are registers.
const maxElements = 64

// arguments allocates registers to arguments: the embedded rules hold those that are left.
type arguments struct {
	argumentRules
	layout *ir.DataLayout
	arch   *machine.Arch
	all    argumentRules // what there was of registers
	bytes  uint64
	words  []ArgumentWord // of the argument that is placed
}

func newArguments(rules argumentRules, layout *ir.DataLayout, arch *machine.Arch) *arguments {
	return &arguments{argumentRules: rules, all: rules, layout: layout, arch: arch}
}

// give places one argument, whose words are in a.words then.
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

// push puts something on the stack, no nearer than by words.
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
	case t.Kind == ir.VectorKind: // registers of 16 bytes each, as code without wider ones does
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
		a.integers = 0 // and nothing that follows finds room
		a.push(2*word, align)
		return
	}
	a.inWords(n, align)
}

// inWords places this many words, each in a register or on the stack, where the first is aligned.
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

// array places an array in registers as a whole, or as separate values.
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

// RedZone is the number of bytes below its stack pointer in which a leaf function may have variables (System V ABI, AMD64 supplement, 3.2.2). AAPCS64
// has none; memory below the stack pointer belongs to no function there.
const RedZone = 128
