package condition

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"example.com/reframe/deopt/frame"
)

// run evaluates an expression for the slots of a frame.
type run struct {
	*Expression
	slots []frame.Slot
}

// absentError reports a slot that does not exist.
type absentError struct{ Name }

func (e *absentError) Error() string { return "there is no " + e.String() }

func isAbsent(err error) bool {
	_, is := err.(*absentError)
	return is
}

// first returns the first of two errors, or nil. It prefers other errors to one about a slot that does not exist, because they do not depend on which
// slots exist.
func first(a, b error) error {
	if a == nil || b != nil && isAbsent(a) {
		return b
	}
	return a
}

// truth evaluates an operand of `and`, `or` or `not`. As in C and in Starlark, a number is true if it is not 0.
func (r *run) truth(e syntax.Expr) verdict {
	v, err := r.value(e)
	return verdict{err == nil && bool(v.Truth()), err == nil && !bool(v.Truth()), err}
}

// value evaluates a part as a [starlark.Int], a [starlark.Float], or, if it is a truth value, a [starlark.Bool].
func (r *run) value(e syntax.Expr) (starlark.Value, error) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return r.value(e.X)
	case *syntax.Literal:
		switch v := e.Value.(type) {
		case int64:
			return starlark.MakeInt64(v), nil
		case *big.Int:
			return starlark.MakeBigInt(v), nil
		case float64:
			return starlark.Float(v), nil
		case string:
			return starlark.String(v), nil
		}
	case *syntax.Ident:
		name, ok := r.slot(e)
		if !ok {
			return words[e.Name], nil
		}
		if s := name.Find(r.slots); s != nil {
			return valueOf(s)
		}
		return nil, &absentError{name}
	case *syntax.UnaryExpr:
		if e.Op == syntax.NOT || e.Op == cNot {
			return r.logical(e)
		}
		x, err := r.value(e.X)
		if err != nil {
			return nil, err
		}
		return starlark.Unary(e.Op, number(x))
	case *syntax.BinaryExpr:
		if e.Op == syntax.AND || e.Op == syntax.OR {
			return r.logical(e)
		}
		x, errX := r.value(e.X)
		y, errY := r.value(e.Y)
		if err := first(errX, errY); err != nil {
			return nil, err
		}
		return r.binary(e, number(x), number(y))
	}
	return nil, fmt.Errorf("%T is not supported", e) // the tokenizer rejects all other expressions
}

// logical evaluates a part whose operator is `and`, `or` or `not`.
func (r *run) logical(e syntax.Expr) (starlark.Value, error) {
	v := logic(e, r.truth)
	if v.yes || v.no {
		return starlark.Bool(v.yes), nil
	}
	return nil, v.err
}

// number returns 1 for true and 0 for false, because Starlark has no arithmetic on truth values. It returns any other value unchanged.
func number(v starlark.Value) starlark.Value {
	switch v {
	case starlark.True:
		return starlark.MakeInt(1)
	case starlark.False:
		return starlark.MakeInt(0)
	}
	return v
}

// maxBits bounds numbers. A module may have integers of 2^23 bits.
const maxBits = 1 << 16

var errWide = fmt.Errorf("a number of over %d bits", maxBits)

// binary computes a comparison or an arithmetic operator.
func (r *run) binary(e *syntax.BinaryExpr, x, y starlark.Value) (starlark.Value, error) {
	if is, err := texts(e.Op, x, y); err != nil || is != nil {
		return is, err
	}
	x, y = spelled(x), spelled(y)
	a, xIsFloat := x.(starlark.Float)
	b, yIsFloat := y.(starlark.Float)
	slotX, slotY := r.find(e.X), r.find(e.Y)
	untyped := func(s *frame.Slot) bool { return s != nil && s.Type.IsZero() }
	if yIsFloat && untyped(slotX) || xIsFloat && untyped(slotY) {
		return nil, errors.New("it has no type, so it is not a floating-point number")
	}
	switch e.Op {
	case syntax.EQL, syntax.NEQ:
		bits := 0
		switch {
		case width(slotX) == width(slotY), slotY == nil && len(r.uses(e.Y)) == 0:
			bits = width(slotX)
		case slotX == nil && len(r.uses(e.X)) == 0:
			bits = width(slotY)
		}
		if !xIsFloat && !yIsFloat {
			x, y = wrapped(x, bits), wrapped(y, bits)
		}
	case syntax.LT, syntax.LE, syntax.GT, syntax.GE:
	default:
		v, err := starlark.Binary(e.Op, x, y)
		if n, ok := v.(starlark.Int); ok && n.BigInt().BitLen() > maxBits {
			return nil, errWide
		}
		return v, err
	}
	if a != a || b != b { // Starlark's NaN equals itself and is above every number
		return starlark.Bool(e.Op == syntax.NEQ), nil
	}
	is, err := starlark.Compare(e.Op, x, y)
	return starlark.Bool(is), err
}

// find returns the slot, if a part of the expression is just one slot; otherwise nil.
func (r *run) find(e syntax.Expr) *frame.Slot {
	if name, ok := r.slot(e); ok {
		return name.Find(r.slots)
	}
	return nil
}

// wrapped returns the non-negative integer with the bits of a negative one that has a width; any other value unchanged. It makes a slot equal to a
// number in the text with the same bits: a user may copy 0xfffffffb from a register to compare it with an i32 of -5. Two slots of one width are
// compared in the same way.
func wrapped(v starlark.Value, width int) starlark.Value {
	n, ok := v.(starlark.Int)
	if !ok || n.Sign() >= 0 || width == 0 {
		return v
	}
	is := n.BigInt()
	if new(big.Int).Not(is).BitLen() >= width {
		return v
	}
	return starlark.MakeBigInt(is.Add(is, new(big.Int).Lsh(big.NewInt(1), uint(width))))
}

// width returns the number of bits of a slot, and 0 for nil.
func width(s *frame.Slot) int {
	switch {
	case s == nil:
		return 0
	case s.Type.IsZero():
		return 8 * len(s.Bytes)
	}
	return s.Type.Bits
}

// valueOf returns the number in a slot. An iN is signed, except for i1; a pointer and a slot without a type are not.
func valueOf(s *frame.Slot) (starlark.Value, error) {
	switch {
	case s.Status == frame.Undefined:
		return nil, errors.New(cmp.Or(s.Reason, "it is undefined"))
	case s.Status != frame.OK:
		return nil, errors.New(cmp.Or(s.Reason, "it is unavailable"))
	case s.Type.Source == frame.Text:
		return starlark.String(s.Value), nil
	case s.Type.Kind == frame.Float || s.Type.Kind == frame.BFloat:
		f, err := strconv.ParseFloat(s.Value, 64)
		if err != nil && f == 0 {
			return nil, errors.New("its text is not a number")
		}
		return starlark.Float(f), nil
	case !s.Type.IsZero() && s.Type.Kind != frame.Int && s.Type.Kind != frame.Pointer:
		return nil, fmt.Errorf("it is not a number: its type is %s", s.Type.Source)
	}
	bits := width(s)
	if bits > maxBits {
		return nil, errWide
	}
	n, ok := new(big.Int).SetString(string(s.Hex), 0)
	if !ok || bits == 0 {
		return nil, errors.New("it has no bits")
	}
	if s.Type.Kind == frame.Int && bits > 1 && n.Bit(bits-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	return starlark.MakeBigInt(n), nil
}
