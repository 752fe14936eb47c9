package vmlayout

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"example.com/reframe/deopt/frame"
)

// Change is a new value for an operand of a record.
type Change struct {
	Operand int
	Bits    *big.Int
}

// Encode finds the operands from which a value of the shape is read, and encodes another value for them. The name is that of [frame.VM.Slots], and
// from has the slots of the record. It returns an error for a value that is read-only: one in memory, or one that has no inverse.
func (s *Shape) Encode(from *Source, name string, is Typed) ([]Change, error) {
	var found *Value
	s.walk(func(n int, what string, at int64, p *Placed) {
		named := fmt.Sprintf("%s[%d]", what, at)
		switch {
		case what == "extra":
			named = p.Name
		case what == "object":
			named = fmt.Sprintf("object[%d].%d", n, at)
			if p.Name != "" {
				named = fmt.Sprintf("object[%d].%s", n, p.Name)
			}
		}
		if n > 0 && what != "object" {
			named = fmt.Sprintf("caller[%d].%s", n, named)
		}
		if named == name {
			found = &p.Value
		}
	})
	if found == nil {
		return nil, errors.New("it is part of a row in memory")
	}
	parts := []Value{*found}
	if found.Kind == WordsValue {
		parts = found.Parts
	}
	unbounded := *from // setting one value takes few calls of codecs
	unbounded.codecs = nil
	from = &unbounded
	words := []uint64{is.Bits}
	if found.Codec != nil {
		words = words[:0]
		for k := range parts {
			words = append(words, from.number(&parts[k]).bits)
		}
		var err error
		if words, err = encode(found.Codec, from, is, words); err != nil {
			return nil, err
		}
	}
	var out []Change
	for k := range parts {
		if len(parts) > 1 && from.number(&parts[k]).bits == words[k] {
			continue
		}
		c, err := s.solve(from, &parts[k], words[k])
		if err == nil && len(parts) > 1 {
			err = from.holds(&parts[k], words[k])
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// holds returns an error if the slot of an operand is too narrow for a word.
func (from *Source) holds(v *Value, word uint64) error {
	at := slices.IndexFunc(from.Slots, func(s frame.Slot) bool { return s.Index == v.Operand })
	if v.Kind != OperandValue || at < 0 || len(from.Slots[at].Bytes) >= 8 {
		return nil
	}
	unused := 64 - 8*len(from.Slots[at].Bytes)
	if word<<unused>>unused != word && uint64(int64(word<<unused)>>unused) != word {
		return fmt.Errorf("live value %d has %d bytes, which cannot represent %#x", v.Operand, len(from.Slots[at].Bytes), word)
	}
	return nil
}

// solve returns the change of one operand after which a token has the given bits.
func (s *Shape) solve(from *Source, v *Value, bits uint64) (Change, error) {
	switch v.Kind {
	case ComputedValue:
		return s.invert(from, v, bits)
	case OperandValue:
		if s.uses(v.Operand) > 1 {
			return Change{}, fmt.Errorf("live value %d is also part of another value", v.Operand)
		}
	default:
		return Change{}, errors.New("no location of the record contains it")
	}
	if at := slices.IndexFunc(from.Slots, func(s frame.Slot) bool { return s.Index == v.Operand }); v.Extend != "" && at >= 0 {
		if t := from.Slots[at].Type; v.widened(bits, t) != cut(bits, v.As) {
			return Change{}, fmt.Errorf("live value %d is %s, which cannot represent it", v.Operand, t.Source)
		}
	}
	return Change{v.Operand, new(big.Int).SetUint64(bits)}, nil
}

// invert changes one operand of a computed value: the first that can be changed and that no other value uses.
func (s *Shape) invert(from *Source, v *Value, bits uint64) (Change, error) {
	err := errors.New("it is computed from constants and memory")
	for k := range v.Parts {
		part, other := &v.Parts[k], from.wide(&v.Parts[1-k])
		if part.Kind != OperandValue && part.Kind != ComputedValue {
			continue
		}
		if other.status != frame.OK {
			return Change{}, other.why
		}
		if part.Kind == OperandValue && s.uses(part.Operand) > 1 {
			err = fmt.Errorf("it is computed from live value %d, which is also part of another value", part.Operand)
			continue
		}
		want, ok := inverse(v.Op, k, uint64(Typed{Type: v.As, Bits: bits}.signed()), other.bits)
		if !ok {
			err = fmt.Errorf("it is read-only: it is computed by %s, and no operand gives this result", v.Op)
			continue
		}
		changed := *from
		var c Change
		if c, err = s.solve(from, part, want); err != nil {
			continue
		}
		if changed.Slots, err = c.apply(from); err != nil {
			continue
		}
		if got := changed.raw(v); got.status != frame.OK || got.bits != cut(bits, v.As) {
			err = fmt.Errorf("it is read-only: it is computed by %s, and no operand gives this result", v.Op)
			continue
		}
		return c, nil
	}
	return Change{}, err
}

// uses counts the tokens that read an operand.
func (s *Shape) uses(operand int) (n int) {
	s.tokens(func(v *Value) {
		if v.Kind == OperandValue && v.Operand == operand {
			n++
		}
	})
	return n
}

// inverse returns the operand with which the operator gives a result: the left operand if side is 0, the right one if side is 1. other is the other
// operand.
func inverse(op string, side int, result, other uint64) (uint64, bool) {
	switch {
	case op == "+":
		return result - other, true
	case op == "-" && side == 0:
		return result + other, true
	case op == "-":
		return other - result, true
	case op == "*" && other != 0 && int64(result)%int64(other) == 0:
		return uint64(int64(result) / int64(other)), true
	case op == "<<" && side == 0 && other < 64:
		return uint64(int64(result) >> other), true
	case op == ">>" && side == 0 && other < 64:
		return result << other, true
	}
	return 0, false
}

// apply returns the slots with a change. It cuts the bits to the width of the slot: the caller checks whether the cut operand still gives the result.
func (c Change) apply(from *Source) ([]frame.Slot, error) {
	slots := slices.Clone(from.Slots)
	at := slices.IndexFunc(slots, func(s frame.Slot) bool { return s.Index == c.Operand })
	if at < 0 || slots[at].Bytes == nil {
		return nil, fmt.Errorf("live value %d is not among the slots that were read", c.Operand)
	}
	s := &slots[at]
	raw := make([]byte, len(s.Bytes))
	for i := range min(len(raw), 8) {
		raw[i] = byte(c.Bits.Uint64() >> (8 * i))
	}
	if from.Order != nil && from.Order.String() == "BigEndian" {
		slices.Reverse(raw)
	}
	s.Bytes = raw
	return slots, nil
}
