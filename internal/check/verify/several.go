package verify

import (
	"iter"
	"math"
	"slices"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// several returns the reason why the IR allows several results for what the interpreter ran, or "".
func (p *prediction) several(v *verifier) string {
	if p.interp.machine == nil {
		return ""
	}
	if p.interp.machine.Frozen() {
		return "it freezes a value that is poison or undefined, for which any value is right"
	}
	asInteger := false
	for _, b := range p.interp.machine.Profile() {
		for _, i := range b.Block.Instrs {
			switch {
			case comparesAllocas(i):
				return "it compares the addresses of two allocas, whose order is open"
			case bitsOfFloat(i), loadsInteger(i):
				asInteger = true
			}
		}
	}
	if asInteger && p.nanAsInteger(v) {
		return "it uses the bits of a NaN as an integer, and the payload is open"
	}
	return ""
}

// comparesAllocas reports whether an instruction orders the addresses of two allocas, or subtracts one from the other.
func comparesAllocas(i *ir.Instr) bool {
	switch {
	case i.Op == ir.OpSub:
	case i.Op == ir.OpICmp && !slices.Contains([]string{"eq", "ne"}, i.Pred):
	default:
		return false
	}
	a, b := allocaOf(i.Args[0]), allocaOf(i.Args[1])
	return a != nil && b != nil && a != b
}

// allocaOf returns the alloca that an address is computed from, or nil.
func allocaOf(value ir.Value) *ir.Instr {
	for range 100 {
		i, ok := value.(*ir.Instr)
		switch {
		case !ok:
			return nil
		case i.Op == ir.OpAlloca:
			return i
		case slices.Contains([]ir.Op{ir.OpGEP, ir.OpBitCast, ir.OpPtrToInt, ir.OpIntToPtr, ir.OpAddrSpaceCast}, i.Op):
			value = i.Args[0]
		default:
			return nil
		}
	}
	return nil
}

// bitsOfFloat reports whether an instruction makes integers of the bits of floats.
func bitsOfFloat(i *ir.Instr) bool {
	return i.Op == ir.OpBitCast && scalarOf(i.Typ).Kind == ir.IntKind && floatBits(i.Args[0].Type()) > 0
}

// loadsInteger reports whether an instruction loads integers that are as wide as a float.
func loadsInteger(i *ir.Instr) bool {
	if i.Op != ir.OpLoad {
		return false
	}
	t := scalarOf(i.Typ)
	return t.Kind == ir.IntKind && (t.Bits == 32 || t.Bits == 64)
}

// scalarOf returns the type of a vector's elements, and any other type itself.
func scalarOf(t *ir.Type) *ir.Type {
	if t.Kind == ir.VectorKind {
		return t.Elem
	}
	return t
}

// floatBits returns the width of floats and doubles, and 0 for other types. Vectors have that of their elements.
func floatBits(t *ir.Type) int {
	switch scalarOf(t).Kind {
	case ir.FloatKind:
		return 32
	case ir.DoubleKind:
		return 64
	}
	return 0
}

// lanes yields the bits of a value in parts of 32 or 64 bits.
func lanes(v interp.Value, width int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range max(v.Len(), 1) {
			part := v
			if v.Len() > 0 {
				part, _ = v.Elem(i)
			}
			words, _ := part.Bits()
			for _, w := range words {
				if !yield(w&(math.MaxUint64>>(64-width))) || width == 32 && w>>32 != 0 && !yield(w>>32) {
					return
				}
			}
		}
	}
}

// arithmetic holds the instructions that compute floats.
var arithmetic = []ir.Op{ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv, ir.OpFRem, ir.OpFPTrunc, ir.OpFPExt, ir.OpCall}

// nanAsInteger repeats the run of the interpreter, and reports whether it computes a NaN, whose payload and sign LLVM leaves open (LangRef,
// "Floating-Point NaN Values"), and later converts one to an integer, or loads one as an integer.
func (p *prediction) nanAsInteger(v *verifier) bool {
	calculated, seen := map[uint64]bool{}, false // without their signs
	err := p.reruns.trace(func(t interp.Traced) {
		if t.Value.IsNone() {
			return
		}
		switch width := floatBits(t.Instr.Typ); {
		case bitsOfFloat(t.Instr):
			from := floatBits(t.Instr.Args[0].Type())
			for bits := range lanes(t.Value, from) {
				seen = seen || len(calculated) > 0 && nanBits(bits, from)
			}
		case loadsInteger(t.Instr):
			size := scalarOf(t.Instr.Typ).Bits
			for bits := range lanes(t.Value, size) {
				seen = seen || calculated[unsigned(bits, size)]
			}
		case width > 0 && slices.Contains(arithmetic, t.Instr.Op):
			for bits := range lanes(t.Value, width) {
				if nanBits(bits, width) && len(calculated) < maxNaNs {
					calculated[unsigned(bits, width)] = true
				}
			}
		}
	})
	return err == nil && seen
}

// maxNaNs bounds the NaNs that are remembered.
const maxNaNs = 1 << 10

// unsigned clears the sign of a float.
func unsigned(bits uint64, size int) uint64 { return bits &^ (1 << (size - 1)) }

func nanBits(bits uint64, size int) bool {
	switch size {
	case 32:
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	case 64:
		return math.IsNaN(math.Float64frombits(bits))
	}
	return false
}
