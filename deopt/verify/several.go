package verify

import (
	"context"
	"math"
	"slices"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
)

// several says why the IR allows several results of what the interpreter ran, or "".
func (p *prediction) several(v *verifier) string {
	if p.machine == nil {
		return ""
	}
	if p.machine.Frozen() {
		return "it freezes a value that is poison or undefined, for which any value is right"
	}
	asInteger := false
	for _, b := range p.machine.Profile() {
		for _, i := range b.Block.Instrs {
			switch {
			case comparesAllocas(i):
				return "it compares the addresses of two allocas, whose order is open"
			case bitsOfFloat(i):
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

// bitsOfFloat reports whether an instruction makes an integer of the bits of a float or double.
func bitsOfFloat(i *ir.Instr) bool {
	return i.Op == ir.OpBitCast && i.Typ.Kind == ir.IntKind && slices.Contains([]ir.TypeKind{ir.FloatKind, ir.DoubleKind}, i.Args[0].Type().Kind)
}

// nanAsInteger runs the interpreter once more, and reports whether it calculates a NaN, whose payload LLVM leaves open (LangRef, "Floating-Point NaN Values"), and
// then makes an integer of the bits of one.
func (p *prediction) nanAsInteger(v *verifier) bool {
	calculated, seen := false, false
	_, run, err := p.rerun(v, func(t interp.Traced) {
		bits, ok := t.Value.Uint()
		switch op := t.Instr.Op; {
		case bitsOfFloat(t.Instr) && ok:
			seen = seen || calculated && nanBits(bits, t.Instr.Typ.Bits)
		case slices.Contains([]ir.Op{ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv, ir.OpFRem, ir.OpFPTrunc, ir.OpFPExt}, op) && !t.Value.IsNone():
			words, _ := t.Value.Bits()
			calculated = calculated || len(words) > 0 && nanBits(words[0], map[ir.TypeKind]int{ir.FloatKind: 32, ir.DoubleKind: 64}[t.Instr.Typ.Kind])
		}
	}, nil)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(v.ctx, v.options.Time)
	defer cancel()
	_, _ = run(ctx) // how it ends is known
	return seen
}

func nanBits(bits uint64, size int) bool {
	switch size {
	case 32:
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	case 64:
		return math.IsNaN(math.Float64frombits(bits))
	}
	return false
}
