package abi

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// Compared is the comparison of the interpreter's result with the registers of a native function that has just returned.
type Compared struct {
	// Why is the reason why the result cannot be compared with the registers, or "".
	Why   string
	Same  bool
	Parts []ResultPart // the scalars of the value in order

	err error // the error whose text is Why, with its reason code
}

// ResultPart is one scalar of a result: the whole result, an element or a field.
type ResultPart struct {
	Path     string // "" for the whole result, or an index path such as "[1]" or "[0][2]"
	Register string // "rax", "rax:rdx", or with an offset in bytes "xmm0+4"
	Interp   interp.Value
	Native   interp.Value
	Same     bool
}

// ResultRegisters holds the registers in which LLVM returns values on an architecture, in the order of assignment.
type ResultRegisters struct {
	ints, floats, vectors []machine.DWARFReg
	Lowerings             []Lowering
	// narrow reports whether a vector smaller than a register has the same layout in a register as in memory, without widened elements.
	narrow bool
}

// Lowering holds properties of the code that affect results but are not in the IR. They are the width of the vector registers that the code was
// compiled for, and whether a half is returned as an integer (LLVM up to 14 on x86-64).
type Lowering struct {
	vector  int // width in bytes
	halfInt bool
}

// ResultsOf holds the result registers of the supported architectures.
var ResultsOf = map[*machine.Arch]*ResultRegisters{
	// RetCC_X86Common and RetCC_X86_64_C of X86CallingConv.td. For C types they agree with the System V ABI, AMD64 supplement, 3.2.3.
	machine.AMD64: {
		ints:      []machine.DWARFReg{0, 1, 2},        // rax, rdx, rcx
		floats:    []machine.DWARFReg{17, 18},         // xmm0, xmm1
		vectors:   []machine.DWARFReg{17, 18, 19, 20}, // xmm0 to xmm3, or ymm, or zmm
		Lowerings: []Lowering{{64, false}, {32, false}, {16, false}, {64, true}, {32, true}, {16, true}},
		narrow:    true,
	},
	// RetCC_AArch64_AAPCS of AArch64CallingConvention.td. For C types it agrees with AAPCS64, 6.9.
	machine.ARM64: {
		ints:      []machine.DWARFReg{0, 1, 2, 3, 4, 5, 6, 7},
		floats:    []machine.DWARFReg{64, 65, 66, 67, 68, 69, 70, 71}, // v0 to v7
		vectors:   []machine.DWARFReg{64, 65, 66, 67, 68, 69, 70, 71},
		Lowerings: []Lowering{{16, false}},
	},
}

// IsVector reports whether vectors are returned in a register.
func (r *ResultRegisters) IsVector(reg machine.DWARFReg) bool { return reg >= r.vectors[0] }

// CompareResult compares a result with the registers of the thread at the return address. Undefined bits equal any bits, NaNs equal each other, and
// bits above the width of an integer are ignored. made reports whether an integer or pointer is an address of the interpreter's own memory, which
// native code cannot return (see [interp.Interp.Made]).
//
// cc is the calling convention as in the IR. A type that LLVM returns in memory, or in an unknown place, cannot be compared. If the place depends on the
// code's features, CompareResult tries all possibilities.
func CompareResult(v interp.Value, cc string, regs *machine.Registers, made func(uint64) bool) Compared {
	if v.IsNone() {
		return Compared{Same: true}
	}
	in := ResultsOf[regs.Arch()]
	if in == nil {
		return incomparable(frame.Because(frame.ResultElsewhere, "the result registers of "+regs.Arch().Title+" are not known"))
	}
	if !slices.Contains([]string{"", "ccc", "fastcc", "coldcc", "tailcc", "preserve_mostcc", "preserve_allcc"}, cc) {
		return incomparable(frame.Because(frame.ResultElsewhere, "the calling convention "+cc))
	}
	var first, refused *Compared
	for _, l := range in.Lowerings {
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
	// The value differs with every lowering that can be compared. With another lowering it may be in a place that cannot be read.
	if refused != nil {
		return *refused
	}
	return *first
}

// Reason returns the error whose text is Why, or nil.
func (c *Compared) Reason() error { return c.err }

func incomparable(why error) Compared { return Compared{Why: why.Error(), err: why} }

// compareLowered compares with one lowering.
func compareLowered(v interp.Value, in *ResultRegisters, l Lowering, regs *machine.Registers, made func(uint64) bool) Compared {
	a := Assignment{ResultRegisters: in, Lowering: l}
	if err := a.Value(v, ""); err != nil {
		return incomparable(err)
	}
	out := Compared{Same: true}
	for _, p := range a.Parts {
		part, err := p.compare(regs)
		if err != nil {
			return incomparable(err)
		}
		if u, ok := part.Interp.Uint(); !part.Same && ok && made(u) && p.pointerSized() {
			return incomparable(frame.Errorf("the result%s is %v, which is in the interpreter's own memory", p.Path, machine.Addr(u)))
		}
		out.Same = out.Same && part.Same
		out.Parts = append(out.Parts, part)
	}
	return out
}

// Assignment assigns registers to the scalars of a value, in order.
type Assignment struct {
	*ResultRegisters
	Lowering
	takenInts, takenVectors int
	Parts                   []ReturnedPart
}

// ReturnedPart is a scalar and its place: 8-byte words in registers.
type ReturnedPart struct {
	Path  string
	Value interp.Value
	Words []ReturnedWord
}

// ReturnedWord is a register, or 8 bytes of one, that holds a word of a result.
type ReturnedWord struct {
	Reg machine.DWARFReg
	Off int // offset in bytes
}

// Value assigns registers to the scalars of a value. path is the position of the value in the result.
func (a *Assignment) Value(v interp.Value, path string) error {
	switch t := v.Type(); t.Kind {
	case ir.StructKind, ir.ArrayKind:
		for i := range v.Len() {
			e, _ := v.Elem(i)
			if err := a.Value(e, fmt.Sprintf("%s[%d]", path, i)); err != nil {
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
		return unplaced(t)
	}
}

// errElsewhere is returned when no register of a kind is left. Floats and doubles are then returned on the x87 stack, and any other value in memory as a
// whole.
var errElsewhere = frame.Because(frame.ResultElsewhere, "its type is returned in memory, or on the x87 stack, which is not supported")

// unplaced returns the error for a type whose place is unknown.
func unplaced(t *ir.Type) error {
	return frame.Because(frame.ResultElsewhere, fmt.Sprintf("cannot tell where a value of type %v is returned", t))
}

func (a *Assignment) integer(v interp.Value, path string) error {
	words, _ := v.Bits()
	p := ReturnedPart{Path: path, Value: v}
	for range words {
		if a.takenInts == len(a.ints) {
			return errElsewhere
		}
		p.Words = append(p.Words, ReturnedWord{a.ints[a.takenInts], 0})
		a.takenInts++
	}
	a.Parts = append(a.Parts, p)
	return nil
}

func (a *Assignment) float(v interp.Value, path string, list []machine.DWARFReg) error {
	if a.takenVectors >= len(list) {
		return errElsewhere
	}
	words, _ := v.Bits()
	p := ReturnedPart{Path: path, Value: v}
	for i := range words {
		p.Words = append(p.Words, ReturnedWord{list[a.takenVectors], 8 * i})
	}
	a.takenVectors++
	a.Parts = append(a.Parts, p)
	return nil
}

// vector assigns registers to a vector with a power of two of elements of 8 to 64 bits, which LLVM widens to a register or splits into several.
func (a *Assignment) vector(v interp.Value, path string) error {
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
		return unplaced(v.Type())
	}
	for i := range n {
		e, _ := v.Elem(i)
		at := i * bytes
		if at%a.Lowering.vector == 0 {
			if a.takenVectors == len(a.vectors) {
				return errElsewhere
			}
			a.takenVectors++
		}
		a.Parts = append(a.Parts, ReturnedPart{fmt.Sprintf("%s[%d]", path, i), e, []ReturnedWord{{a.vectors[a.takenVectors-1], at % a.Lowering.vector}}})
	}
	return nil
}

func (p ReturnedPart) pointerSized() bool {
	t := p.Value.Type()
	return t.Kind == ir.PointerKind || t.Kind == ir.IntKind && t.Bits == 64
}

// compare compares the part with the registers.
func (p ReturnedPart) compare(regs *machine.Registers) (ResultPart, error) {
	arch := regs.Arch()
	out := ResultPart{Path: p.Path, Interp: p.Value, Same: true}
	want, unknown := p.Value.Bits()
	width := BitWidth(p.Value.Type())
	native := new(big.Int)
	for i, w := range p.Words {
		b, err := regs.Bytes(w.Reg)
		if err != nil {
			return ResultPart{}, err
		}
		size := min(8, (width-64*i+7)/8)
		if w.Off+size > len(b) {
			return ResultPart{}, frame.Because(frame.PartBytes, arch.NameOf(w.Reg, 16), len(b))
		}
		got := arch.Uint(b[w.Off : w.Off+size])
		if left := width - 64*i; left < 64 {
			got &= 1<<left - 1
		}
		out.Same = out.Same && (got^want[i])&^unknown[i] == 0
		native.Or(native, new(big.Int).Lsh(new(big.Int).SetUint64(got), uint(64*i)))
		if i == 0 || w.Reg != p.Words[i-1].Reg {
			name := arch.RegisterName(w.Reg)
			if ResultsOf[arch].IsVector(w.Reg) {
				name = arch.NameOf(w.Reg, max(16, 1<<bits.Len(uint(w.Off)))) // the narrowest name that includes the offset
			}
			out.Register += ":" + name
			if w.Off > 0 {
				out.Register += fmt.Sprintf("+%d", w.Off)
			}
		}
	}
	out.Register = out.Register[1:]
	out.Native = interp.FromBig(p.Value.Type(), native)
	out.Same = out.Same || isNaN(p.Value) && isNaN(out.Native)
	return out, nil
}

// BitWidth returns the width in bits of a scalar in a register, and 64 for any other type.
func BitWidth(t *ir.Type) int {
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

// isNaN reports whether a float is a NaN. LLVM does not define which NaN an operation returns (LangRef, "Behavior of Floating-Point NaN values").
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

// ReturnedValue reads the result of a call from the registers at its return. It rejects types such as vectors and halves, whose place depends on the code's
// features. The error has the code of an unavailable register, or [frame.ResultElsewhere].
func ReturnedValue(t *ir.Type, cc string, regs *machine.Registers) (interp.Value, error) {
	var none interp.Value
	if !inFixedRegisters(t) {
		return none, unplaced(t)
	}
	unknown, err := interp.Undef(t)
	if err != nil {
		return none, err
	}
	r := CompareResult(unknown, cc, regs, func(uint64) bool { return false })
	if r.err != nil {
		return none, r.err
	}
	scalars := make([]interp.Value, len(r.Parts))
	for k, p := range r.Parts {
		scalars[k] = p.Native
	}
	return interp.FromScalars(t, scalars)
}

// inFixedRegisters reports whether the registers of a result are independent of the code's features.
func inFixedRegisters(t *ir.Type) bool {
	switch t.Kind {
	case ir.IntKind, ir.PointerKind, ir.FloatKind, ir.DoubleKind:
		return true
	case ir.StructKind:
		return !slices.ContainsFunc(t.Fields, func(f *ir.Type) bool { return !inFixedRegisters(f) })
	case ir.ArrayKind:
		return inFixedRegisters(t.Elem)
	}
	return false
}
