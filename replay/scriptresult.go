package replay

import (
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
)

// sameResult reports whether a text denotes the value of a result: it has the same spelling, or gives the same value when [deopt.ParseValue] parses
// it with the result's type.
func sameResult(r *frame.Result, text string) (bool, error) {
	if text == r.Value {
		return true, nil
	}
	t := scalar(r.Type)
	if t == nil {
		return false, nil // an aggregate or vector has only one spelling
	}
	v, err := deopt.ParseValue(t, text)
	switch {
	case err != nil:
		return false, err
	case r.Value == "nan" && v.Format() == r.Value: // NaNs are compared by their bits
		return false, fmt.Errorf("%s: a result does not contain the bits of a nan", text)
	}
	return v.Format() == r.Value, nil
}

// scalar returns the type with a spelling, or nil if values of the type cannot be parsed.
func scalar(spelling string) *ir.Type {
	for _, t := range []*ir.Type{ir.Ptr, {Kind: ir.HalfKind}, {Kind: ir.BFloatKind}, {Kind: ir.FloatKind}, {Kind: ir.DoubleKind}, {Kind: ir.X86FP80Kind}, {Kind: ir.FP128Kind}} {
		if t.String() == spelling {
			return t
		}
	}
	bits := 0
	if n, err := fmt.Sscanf(spelling, "i%d", &bits); n != 1 || err != nil || fmt.Sprintf("i%d", bits) != spelling || bits < 1 || bits > 1<<16 {
		return nil
	}
	return &ir.Type{Kind: ir.IntKind, Bits: bits}
}
