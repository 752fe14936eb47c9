package deopt

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
)

// give adds the result that the user gave for the frame's pending call to the frame's values. callee is the frame that runs in that call, or nil. For
// a frame that resumes at a stackmap, the record does not name the pending call: give then checks that the last call before the stackmap may call
// callee's function.
func (f *Frame) give(text string, callee *Frame, values map[ir.Value]interp.Value) (*frame.Result, error) {
	call, result, why := f.Awaited()
	if call == nil {
		return nil, fmt.Errorf("cannot use the given result: %s has no pending call: %w", f.Title(), why)
	}
	if f.Resume.At != "" && callee != nil && callee.Function != "" && !f.called(call, callee) {
		return nil, fmt.Errorf("cannot use the given result: the last call before the %s of %s is of @%s, while %s runs", f.Record.Site, f.Title(), sites.CalledName(call), callee.Title())
	}
	if result == nil {
		return nil, fmt.Errorf("cannot use the given result: @%s does not read the result of the pending call of %s", f.to.Name, f.Title())
	}
	v, err := ParseValue(result.Typ, text)
	if err != nil {
		return nil, fmt.Errorf("the result for %s: %w", f.Title(), err)
	}
	values[call] = v
	return &frame.Result{Type: result.Typ.String(), Value: v.Format()}, nil
}

// take adds the result of the frame's call to the frame's values, if something reads it and the registers at the return hold it.
func (f *Frame) take(regs *machine.Registers, values map[ir.Value]interp.Value) error {
	call, result, _ := f.Awaited()
	if call == nil || result == nil {
		return nil
	}
	v, err := abi.ReturnedValue(result.Typ, call.Call.CC, regs)
	if err != nil {
		return fmt.Errorf("%s: the result of its call: %w", f.Title(), err)
	}
	values[call] = v
	return nil
}

// ParseValue parses a value of a scalar type:
//
//   - an integer in decimal, or in hexadecimal with 0x, from the lowest signed to the highest unsigned number of its width; true and false for i1
//   - null for a pointer
//   - a half, bfloat, float or double as a decimal number or with a binary exponent (0x1.8p3), rounded to nearest; a half or bfloat must hold it exactly
//   - a float of any type by its bits, with 0x and no exponent
func ParseValue(t *ir.Type, text string) (interp.Value, error) {
	var v interp.Value
	ok := false
	switch t.Kind {
	case ir.IntKind:
		switch {
		case t.Bits == 1 && (text == "true" || text == "false"):
			v, ok = interp.FromUint(t, map[string]uint64{"true": 1, "false": 0}[text]), true
		default:
			v, ok = parseBits(t, text, t.Bits)
		}
	case ir.PointerKind:
		if v, ok = parseBits(t, text, 64); text == "null" {
			v, ok = interp.FromUint(t, 0), true
		}
	case ir.HalfKind, ir.BFloatKind, ir.FloatKind, ir.DoubleKind, ir.X86FP80Kind, ir.FP128Kind:
		v, ok = parseFloat(t, text)
	default:
		return v, fmt.Errorf("a value of type %v cannot be given: only integers, pointers and floats are supported", t)
	}
	if !ok {
		return v, fmt.Errorf("%q is not a value of type %v", text, t)
	}
	return v, nil
}

// maxDigits bounds the length of numbers: an i4096 has 1234 decimal digits.
const maxDigits = 1300

// parseBits parses an integer of the given width.
func parseBits(t *ir.Type, text string, bits int) (interp.Value, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	base := 10
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		digits, base = hex, 16
	}
	if len(digits) > maxDigits || strings.ContainsAny(digits, "+-_") {
		return interp.Value{}, false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return interp.Value{}, false
	}
	limit := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	if negative {
		n.Neg(n)
		limit.Rsh(limit, 1)
	}
	if n.CmpAbs(limit) > 0 || !negative && n.CmpAbs(limit) == 0 {
		return interp.Value{}, false
	}
	return interp.FromBig(t, n), true
}

// parseFloat parses a float of any type.
func parseFloat(t *ir.Type, text string) (interp.Value, bool) {
	if strings.HasPrefix(text, "0x") && !strings.ContainsAny(text, "pP") {
		bits := interp.FrameType(&ir.DataLayout{}, t).Bits
		return parseBits(t, text, bits)
	}
	width := 64
	switch t.Kind {
	case ir.X86FP80Kind, ir.FP128Kind:
		return interp.Value{}, false
	case ir.FloatKind:
		width = 32 // parse in the final width, to round only once
	}
	n, err := strconv.ParseFloat(text, width)
	if err != nil {
		return interp.Value{}, false
	}
	v := interp.FromFloat64(t, n)
	if back, known := v.Float64(); width == 64 && t.Kind != ir.DoubleKind && (!known || back != n && n == n) {
		// Do not parse the number as a double first: it would be rounded twice.
		return interp.Value{}, false
	}
	return v, true
}
