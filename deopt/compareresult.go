package deopt

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// comparedResult is what the interpreter returned beside what native code has in the registers of
// a function that has just returned.
type comparedResult struct {
	// Why is why they cannot be compared, "" where they were.
	Why   string
	Same  bool
	Parts []resultPart // scalars of the value, in order
}

// resultPart is one scalar of a result: all of it, an element of a vector, a field.
type resultPart struct {
	Path     string // "" for the whole, "[1]", "[0][2]"
	Register string // "rax", "rax:rdx", "xmm0+4" with the offset in bytes
	Interp   interp.Value
	Native   interp.Value
	Same     bool
}

// resultRegisters are those that LLVM returns values in on one architecture, in the order in which it gives them out.
type resultRegisters struct {
	ints, floats, vectors []machine.DWARFReg
	lowerings             []lowering
	// narrow says that a vector smaller than a register lies in one as it lies in memory, and no element is widened.
	narrow bool
}

// lowering is what the IR does not say of how a value is returned: how wide the vector registers are
// that the code was made for, and whether a half is an integer (LLVM up to 14 on x86-64) or has a register
// of its own.
type lowering struct {
	vector  int // bytes
	halfInt bool
}

var resultsOf = map[*machine.Arch]*resultRegisters{
	// RetCC_X86Common and RetCC_X86_64_C of X86CallingConv.td; a subset is what the System V ABI, AMD64 supplement, 3.2.3,
	// wants of C types.
	machine.AMD64: {
		ints:      []machine.DWARFReg{0, 1, 2},        // rax, rdx, rcx
		floats:    []machine.DWARFReg{17, 18},         // xmm0, xmm1
		vectors:   []machine.DWARFReg{17, 18, 19, 20}, // xmm0 to xmm3, ymm, zmm
		lowerings: []lowering{{64, false}, {32, false}, {16, false}, {64, true}, {32, true}, {16, true}},
		narrow:    true,
	},
	// RetCC_AArch64_AAPCS of AArch64CallingConvention.td; a subset is what AAPCS64, 6.9, wants of C types.
	machine.ARM64: {
		ints:      []machine.DWARFReg{0, 1, 2, 3, 4, 5, 6, 7},
		floats:    []machine.DWARFReg{64, 65, 66, 67, 68, 69, 70, 71}, // v0 to v7
		vectors:   []machine.DWARFReg{64, 65, 66, 67, 68, 69, 70, 71},
		lowerings: []lowering{{16, false}},
	},
}

// isVector says whether a register is one that values of vectors are returned in.
func (r *resultRegisters) isVector(reg machine.DWARFReg) bool { return reg >= r.vectors[0] }

// compareResult holds a result against the registers of the thread at the return address. Undefined bits
// are like anything, a NaN like every other NaN, and all bits past the width of an integer are
// ignored. made says of which integers and pointers the interpreter alone can have them (see
// [interp.Interp.Made]).
//
// cc is the calling convention as the IR spells it. A type that LLVM returns in memory, or where that is
// not known, cannot be compared; where it depends on the code's features, all ways are tried.
func compareResult(v interp.Value, cc string, regs *machine.Registers, made func(uint64) bool) comparedResult {
	if v.IsNone() {
		return comparedResult{Same: true}
	}
	in := resultsOf[regs.Arch()]
	if in == nil {
		return comparedResult{Why: "in which registers code of " + regs.Arch().Title + " returns values is not known here"}
	}
	if !slices.Contains([]string{"", "ccc", "fastcc", "coldcc", "tailcc", "preserve_mostcc", "preserve_allcc"}, cc) {
		return comparedResult{Why: "the calling convention " + cc}
	}
	var first, refused *comparedResult
	for _, l := range in.lowerings {
		r := compareLowered(v, in, l, regs, made)
		switch {
		case r.Why != "":
			if refused == nil {
				refused = &r
			}
		case r.Same:
			return r
		case first == nil:
			first = &r
		}
	}
	// What one way shows to be different may lie elsewhere in a way that cannot be looked at.
	if refused != nil {
		return *refused
	}
	return *first
}

// compareLowered compares under one lowering.
func compareLowered(v interp.Value, in *resultRegisters, l lowering, regs *machine.Registers, made func(uint64) bool) comparedResult {
	a := assignment{resultRegisters: in, lowering: l}
	if err := a.value(v, ""); err != nil {
		return comparedResult{Why: err.Error()}
	}
	out := comparedResult{Same: true}
	for _, p := range a.parts {
		part, err := p.compare(regs)
		if err != nil {
			return comparedResult{Why: err.Error()}
		}
		if u, ok := part.Interp.Uint(); !part.Same && ok && made(u) && p.pointerSized() {
			return comparedResult{Why: fmt.Sprintf("the result%s is %#x, where the interpreter has memory of its own", p.path, u)}
		}
		out.Same = out.Same && part.Same
		out.Parts = append(out.Parts, part)
	}
	return out
}

// assignment gives the scalars of a value their registers, one after the other.
type assignment struct {
	*resultRegisters
	lowering
	takenInts, takenVectors int
	parts                   []returnedPart
}

// returnedPart is a scalar and where it lies: words of eight bytes at offsets in registers.
type returnedPart struct {
	path  string
	v     interp.Value
	words []returnedWord
}

type returnedWord struct {
	reg machine.DWARFReg
	off int // bytes
}

func (a *assignment) value(v interp.Value, path string) error {
	switch t := v.Type(); t.Kind {
	case ir.StructKind, ir.ArrayKind:
		for i := range v.Len() {
			e, _ := v.Elem(i)
			if err := a.value(e, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case ir.IntKind, ir.PointerKind:
		return a.integer(v, path)
	case ir.VectorKind:
		return a.vector(v, path)
	case ir.HalfKind:
		if a.halfInt {
			return a.integer(v, path)
		}
		return a.float(v, path, a.vectors)
	case ir.FloatKind, ir.DoubleKind, ir.FP128Kind:
		return a.float(v, path, a.floats)
	default:
		return fmt.Errorf("where a value of type %v is returned is not known", t)
	}
}

// Where the registers of a kind are used up, floats and doubles go to the x87 stack, and with anything else
// the whole value goes to memory.
var errElsewhere = machine.Unavailablef("its type is returned in memory, or on the x87 stack, which is not read")

func (a *assignment) integer(v interp.Value, path string) error {
	words, _ := v.Bits()
	p := returnedPart{path: path, v: v}
	for range words {
		if a.takenInts == len(a.ints) {
			return errElsewhere
		}
		p.words = append(p.words, returnedWord{a.ints[a.takenInts], 0})
		a.takenInts++
	}
	a.parts = append(a.parts, p)
	return nil
}

func (a *assignment) float(v interp.Value, path string, list []machine.DWARFReg) error {
	if a.takenVectors >= len(list) {
		return errElsewhere
	}
	words, _ := v.Bits()
	p := returnedPart{path: path, v: v}
	for i := range words {
		p.words = append(p.words, returnedWord{list[a.takenVectors], 8 * i})
	}
	a.takenVectors++
	a.parts = append(a.parts, p)
	return nil
}

// vector takes a vector whose elements are whole registers' parts: powers of two of them, of 8 to 64
// bits, which LLVM widens to a register or splits into several.
func (a *assignment) vector(v interp.Value, path string) error {
	n, elem := v.Len(), v.Type().Elem
	bytes := 8
	switch {
	case elem.Kind == ir.IntKind && slices.Contains([]int{8, 16, 32, 64}, elem.Bits):
		bytes = elem.Bits / 8
	case elem.Kind == ir.FloatKind:
		bytes = 4
	case elem.Kind != ir.DoubleKind && elem.Kind != ir.PointerKind:
		n = 0
	}
	if n < 2 || n&(n-1) != 0 || !a.narrow && n*bytes < 8 {
		return fmt.Errorf("where a value of type %v is returned is not known", v.Type())
	}
	for i := range n {
		e, _ := v.Elem(i)
		at := i * bytes
		if at%a.lowering.vector == 0 {
			if a.takenVectors == len(a.vectors) {
				return errElsewhere
			}
			a.takenVectors++
		}
		a.parts = append(a.parts, returnedPart{fmt.Sprintf("%s[%d]", path, i), e, []returnedWord{{a.vectors[a.takenVectors-1], at % a.lowering.vector}}})
	}
	return nil
}

func (p returnedPart) pointerSized() bool {
	t := p.v.Type()
	return t.Kind == ir.PointerKind || t.Kind == ir.IntKind && t.Bits == 64
}

// compare reads the registers.
func (p returnedPart) compare(regs *machine.Registers) (resultPart, error) {
	arch := regs.Arch()
	out := resultPart{Path: p.path, Interp: p.v, Same: true}
	want, unknown := p.v.Bits()
	width := bitWidth(p.v.Type())
	native := new(big.Int)
	for i, w := range p.words {
		b, err := regs.Bytes(w.reg)
		if err != nil {
			return resultPart{}, err
		}
		size := min(8, (width-64*i+7)/8)
		if w.off+size > len(b) {
			return resultPart{}, machine.Unavailablef("%s has %d bytes here", arch.NameOf(w.reg, 16), len(b))
		}
		got := arch.Uint(b[w.off : w.off+size])
		if left := width - 64*i; left < 64 {
			got &= 1<<left - 1
		}
		out.Same = out.Same && (got^want[i])&^unknown[i] == 0
		native.Or(native, new(big.Int).Lsh(new(big.Int).SetUint64(got), uint(64*i)))
		if i == 0 || w.reg != p.words[i-1].reg {
			name := arch.RegisterName(w.reg)
			if resultsOf[arch].isVector(w.reg) {
				name = arch.NameOf(w.reg, max(16, 1<<bits.Len(uint(w.off)))) // the narrowest that has the offset
			}
			out.Register += ":" + name
			if w.off > 0 {
				out.Register += fmt.Sprintf("+%d", w.off)
			}
		}
	}
	out.Register = out.Register[1:]
	out.Native = interp.FromBig(p.v.Type(), native)
	out.Same = out.Same || isNaN(p.v) && isNaN(out.Native)
	return out, nil
}

func bitWidth(t *ir.Type) int {
	switch t.Kind {
	case ir.IntKind:
		return t.Bits
	case ir.HalfKind:
		return 16
	case ir.FloatKind:
		return 32
	case ir.FP128Kind:
		return 128
	}
	return 64
}

// isNaN says whether a float is a NaN: which one an operation makes LLVM does not say (LangRef,
// "Behavior of Floating-Point NaN values").
func isNaN(v interp.Value) bool {
	if v.Type().Kind == ir.FP128Kind {
		n, ok := v.Big()
		if !ok {
			return false
		}
		magnitude := new(big.Int).SetBit(n, 127, 0)
		return magnitude.Cmp(new(big.Int).Lsh(big.NewInt(0x7fff), 112)) > 0
	}
	f, ok := v.Float64()
	return ok && f != f
}

// returnedValue reads what a call has returned from the registers at its return. Of vectors and of a half it
// depends on the code's features where they are.
func returnedValue(t *ir.Type, cc string, regs *machine.Registers) (interp.Value, error) {
	var none interp.Value
	switch t.Kind {
	case ir.IntKind, ir.PointerKind, ir.FloatKind, ir.DoubleKind:
	default:
		return none, fmt.Errorf("where a value of type %v is returned is not known", t)
	}
	unknown, err := interp.Undef(t)
	if err != nil {
		return none, err
	}
	r := compareResult(unknown, cc, regs, func(uint64) bool { return false })
	if r.Why != "" {
		return none, machine.Unavailablef("%s", r.Why)
	}
	return r.Parts[0].Native, nil
}
