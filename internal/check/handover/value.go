package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
)

// valueOf converts a frame's value to the form of the protocol. It adds shift to the number of an object.
func (s *Stack) valueOf(v *frame.VMValue, shift int64) (protocol.Value, error) {
	is := protocol.Value{Index: v.Index, Name: v.Name}
	switch {
	case v.Object != nil:
		id := *v.Object + shift
		is.Object = &id
		return is, nil
	case v.Status == frame.Dead:
		is.Dead = true
		return is, nil
	case v.Status == frame.Undefined:
		return is, errors.New("the value is undef in the module, and the layout does not mark it as dead")
	case v.Status != frame.OK && v.Status != frame.Guessed:
		return is, fmt.Errorf("unavailable: %s", v.Reason)
	}
	is.Type, _, _ = strings.Cut(v.Type, " ") // the rest, such as the class of a reference, is only for display
	is.Text = v.Value
	for _, w := range v.Words {
		is.Words = append(is.Words, protocol.Word(w))
	}
	if v.Bytes != nil {
		is.Bits = bits(v, s.View.Target().Arch().Order)
	}
	return is, nil
}

// wordOf formats a number, "" for 0.
func wordOf(v uint64) protocol.Word {
	if v == 0 {
		return ""
	}
	return protocol.WordOf(v)
}

// bits returns the bits of a value within its type's width. The bits above are undefined.
func bits(v *frame.VMValue, order binary.ByteOrder) protocol.Word {
	n := frame.Number(v.Bytes, order)
	if v.Kind.Bits > 0 && !v.Kind.Composite() {
		one := big.NewInt(1)
		n.And(n, new(big.Int).Sub(new(big.Int).Lsh(one, uint(v.Kind.Bits)), one))
	}
	return protocol.Word("0x" + n.Text(16))
}

// Given parses the call result of --result: an integer, a pointer (0x..., null) or a float, in the form in which compiled code has it in a register.
func Given(text string) (*protocol.Native, error) {
	if text == "null" {
		return &protocol.Native{Type: "ref", Bits: "0x0", Text: text}, nil
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return &protocol.Native{Type: "i64", Bits: protocol.WordOf(n), Text: text}, nil
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return &protocol.Native{Type: "i64", Bits: protocol.WordOf(uint64(n)), Text: text}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("expected an integer, pointer or float, got %q", text)
	}
	return &protocol.Native{Type: "f64", Bits: protocol.WordOf(math.Float64bits(f)), Text: text}, nil
}

// Returned returns the result of the call for which a frame waits, from the registers of a thread that is stopped right after that call; nil for a
// void call. If the registers are nil, the call is still running, which is an error.
func Returned(f *deopt.Frame, regs *machine.Registers) (*protocol.Native, error) {
	if regs == nil {
		return nil, errors.New("its innermost VM frame waits for a call that is still running")
	}
	call, result, why := f.Awaited()
	if call == nil {
		return nil, fmt.Errorf("cannot find the call for which its innermost VM frame waits: %w", why)
	}
	var t *ir.Type
	if result != nil {
		t = result.Typ
	} else if t = resultType(call); t == nil {
		return nil, errors.New("cannot find the result type of the call for which its innermost VM frame waits")
	}
	if t.Kind == ir.VoidKind {
		return nil, nil
	}
	v, err := abi.ReturnedValue(t, call.Call.CC, regs)
	if err != nil {
		return nil, fmt.Errorf("cannot read the result of the call for which its innermost VM frame waits: %w", err)
	}
	name := ""
	switch t.Kind {
	case ir.IntKind:
		name = "i" + strconv.Itoa(t.Bits)
	case ir.PointerKind:
		name = "ref"
	case ir.FloatKind:
		name = "f32"
	case ir.DoubleKind:
		name = "f64"
	}
	bits, ok := v.Uint()
	if !ok || name == "" || t.Bits > 64 {
		return nil, fmt.Errorf("its innermost VM frame waits for a call that returns %v, which is not supported", t)
	}
	return &protocol.Native{Type: name, Bits: protocol.WordOf(bits)}, nil
}

// resultType returns the type of a call's result, or nil if it is unknown. The type of a statepoint is token, so it takes the type of the result from
// the statepoint's callee.
func resultType(call *ir.Instr) *ir.Type {
	if call.Typ.Kind != ir.TokenKind {
		return call.Typ
	}
	const callee = 2 // LangRef, llvm.experimental.gc.statepoint
	if len(call.Call.ElemTypes) > callee && call.Call.ElemTypes[callee] != nil {
		return call.Call.ElemTypes[callee].Elem
	}
	if args := call.Args; len(args) > callee && args[callee].Type().Elem != nil { // pointers of LLVM 14 have the type
		return args[callee].Type().Elem.Elem
	}
	return nil
}
