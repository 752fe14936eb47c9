package vmlayout

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"example.com/reframe/deopt/frame"
)

// operator computes a number of 64 bits from two. The left number is signed, or unsigned for >> only.
type operator func(a, b uint64, signed bool) (uint64, error)

// operators holds the operators of computed values by their names in Starlark.
var operators = map[string]operator{
	"+": func(a, b uint64, _ bool) (uint64, error) { return a + b, nil },
	"-": func(a, b uint64, _ bool) (uint64, error) { return a - b, nil },
	"*": func(a, b uint64, _ bool) (uint64, error) { return a * b, nil },
	"&": func(a, b uint64, _ bool) (uint64, error) { return a & b, nil },
	"|": func(a, b uint64, _ bool) (uint64, error) { return a | b, nil },
	"<<": func(a, b uint64, _ bool) (uint64, error) {
		if b > 63 {
			return 0, fmt.Errorf("a shift by %d bits", int64(b))
		}
		return a << b, nil
	},
	">>": func(a, b uint64, signed bool) (uint64, error) {
		switch {
		case b > 63:
			return 0, fmt.Errorf("a shift by %d bits", int64(b))
		case signed:
			return uint64(int64(a) >> b), nil
		}
		return a >> b, nil
	},
}

// maxComputed bounds the tokens of a computed value.
const maxComputed = 32

// computedValue is a token for a number that is computed from two others.
type computedValue struct {
	op    string
	parts []Value
	size  int // number of tokens in it
	as    string
	codec Codec
}

func (*computedValue) String() string        { return "computed" }
func (*computedValue) Type() string          { return "computed" }
func (*computedValue) Freeze()               {}
func (*computedValue) Truth() starlark.Bool  { return true }
func (*computedValue) Hash() (uint32, error) { return 0, errors.New("unhashable: computed") }
func (*computedValue) AttrNames() []string   { return names("as_type", "decoded_by", "pointee") }

func (v *computedValue) token() Value {
	return Value{Kind: ComputedValue, Op: v.op, Parts: v.parts, As: v.as, Codec: v.codec, Reads: reads(v.codec)}
}

func (v *computedValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "as_type":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			with := *v
			if err := starlark.UnpackArgs(name, args, kwargs, "type", &with.as); err != nil {
				return nil, err
			}
			return &with, known(with.as)
		}), nil
	case "decoded_by":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var by starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "codec", &by); err != nil {
				return nil, err
			}
			c, err := codecOf(runOf(t).layout, by)
			with := *v
			with.codec = c
			return &with, err
		}), nil
	case "pointee":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return newLoad(name, v, args, kwargs)
		}), nil
	}
	return nil, nil
}

// Binary implements starlark.HasBinary.
func (v *operandValue) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	return compute(op, v, y, side)
}

// Binary implements starlark.HasBinary.
func (l *loadValue) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	return compute(op, l, y, side)
}

// Binary implements starlark.HasBinary.
func (v *computedValue) Binary(op syntax.Token, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	return compute(op, v, y, side)
}

// compute makes a token of x op y, or of y op x.
func compute(op syntax.Token, x, y starlark.Value, side starlark.Side) (starlark.Value, error) {
	if side == starlark.Right {
		x, y = y, x
	}
	if operators[op.String()] == nil {
		return nil, nil // tokens do not have this operator
	}
	out := &computedValue{op: op.String(), as: "i64", size: 1}
	for _, v := range []starlark.Value{x, y} {
		part, err := partOf(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		out.size++
		switch v := v.(type) {
		case *operandValue:
			v.take()
		case *computedValue:
			out.size += v.size
		}
		out.parts = append(out.parts, part)
	}
	if out.size > maxComputed {
		return nil, fmt.Errorf("%s: a value that is computed from over %d others", op, maxComputed)
	}
	return out, nil
}

// wide reads a part of a computed value, extended to 64 bits by its type.
func (from *Source) wide(v *Value) raw {
	got := from.number(v)
	got.bits = uint64(got.signed(v))
	return got
}

// computed reads a computed value.
func (from *Source) computed(v *Value) raw {
	parts := [2]raw{from.wide(&v.Parts[0]), from.wide(&v.Parts[1])}
	out := raw{status: frame.OK, have: widths[v.As], typed: v.As}
	for _, got := range parts {
		switch {
		case got.status == frame.Guessed:
			out.status, out.why = got.status, got.why
		case got.status != frame.OK:
			return raw{status: got.status, why: frame.Errorf("it is computed: %w", got.why)}
		}
	}
	bits, err := operators[v.Op](parts[0].bits, parts[1].bits, v.Parts[0].signed())
	if err != nil {
		return raw{status: frame.Missing, why: unread("it is computed: %v", err)}
	}
	out.bits = cut(bits, v.As)
	return out
}

// kind returns the type of a token's bits; "" means the type of the slot.
func (v *Value) kind() string {
	if v.Kind == ConstValue {
		return v.Const.Type
	}
	return v.As
}

// signed reports whether >> extends the sign of a token.
func (v *Value) signed() bool { return v.kind() == "" || v.kind()[0] == 'i' && v.kind() != "i1" }

// signed returns the number that the bits of a token represent. An integer of the slot's type is signed, of any width except 1.
func (r *raw) signed(v *Value) int64 {
	if t := v.kind(); t != "" {
		return Typed{Type: t, Bits: r.bits}.signed()
	}
	unused := 64 - min(r.have, 64)
	if r.have <= 1 {
		return int64(r.bits << unused >> unused)
	}
	return int64(r.bits<<unused) >> unused
}
