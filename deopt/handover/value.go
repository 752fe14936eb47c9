package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"reframe/deopt/frame"
	"reframe/deopt/vmproto"
)

// valueOf is a value as it is handed over, in which objects have other numbers.
func (s *Stack) valueOf(v *frame.VMValue, shift int64) (vmproto.Value, error) {
	is := vmproto.Value{Index: v.Index, Name: v.Name}
	switch {
	case v.Object != nil:
		id := *v.Object + shift
		is.Object = &id
		return is, nil
	case v.Status == frame.Dead:
		is.Dead = true
		return is, nil
	case v.Status == frame.Undefined:
		return is, errors.New("the module has undef there, and the layout does not say that it is dead")
	case v.Status != frame.OK && v.Status != frame.Guessed:
		return is, fmt.Errorf("unavailable: %s", v.Reason)
	}
	is.Type, _, _ = strings.Cut(v.Type, " ") // what a reference leads to is for people
	is.Text = v.Value
	if v.Bytes != nil {
		is.Bits = bits(v, s.View.Target().Arch().Order)
	}
	return is, nil
}

// bits are those that the type has of a value: above them there may be anything.
func bits(v *frame.VMValue, order binary.ByteOrder) vmproto.Word {
	n := frame.Number(v.Bytes, order)
	if v.Kind.Bits > 0 && !v.Kind.Composite() {
		one := big.NewInt(1)
		n.And(n, new(big.Int).Sub(new(big.Int).Lsh(one, uint(v.Kind.Bits)), one))
	}
	return vmproto.Word("0x" + n.Text(16))
}

// Given reads what --result says that a call returns: an integer, a pointer (0x..., null) or a float, as compiled code has it in its register.
func Given(text string) (*vmproto.Native, error) {
	if text == "null" {
		return &vmproto.Native{Type: "ref", Bits: "0x0", Text: text}, nil
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return &vmproto.Native{Type: "i64", Bits: vmproto.WordOf(n), Text: text}, nil
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return &vmproto.Native{Type: "i64", Bits: vmproto.WordOf(uint64(n)), Text: text}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no integer, pointer or float", text)
	}
	return &vmproto.Native{Type: "f64", Bits: vmproto.WordOf(math.Float64bits(f)), Text: text}, nil
}
