package vmlayout

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"example.com/reframe/deopt/frame"
)

// Typed is a value with its type, as a codec decodes it.
type Typed struct {
	Type string // i1 to i64, u8 to u64, f32, f64, ref, null, symbol
	Bits uint64
	Text string // the name of a symbol
}

// widths holds the widths of types in bits.
var widths = map[string]int{"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64, "f32": 32, "f64": 64, "ref": 64}

// plain holds the types with a width, in the form of slots.
var plain = func() map[string]frame.Type {
	all := map[string]frame.Type{}
	for name, bits := range widths {
		t := frame.Type{Kind: frame.Int, Bits: bits, Source: name}
		switch name[0] {
		case 'f':
			t.Kind = frame.Float
		case 'r':
			t.Kind = frame.Pointer
		}
		all[name] = t
	}
	return all
}()

// Kind returns the type in the form of slots; ok is false if it has no width.
func (t Typed) Kind() (kind frame.Type, ok bool) {
	if t.Type == "null" {
		return plain["ref"], true
	}
	kind, ok = plain[t.Type]
	return kind, ok
}

// known returns an error if a type does not exist.
func known(t string) error {
	if _, ok := widths[t]; ok {
		return nil
	}
	return fmt.Errorf("unknown type %q: expected i1, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 or ref", t)
}

// extends checks that an integer can be widened to a type as a layout requests: "sign", "zero", or "" for not at all.
func extends(how, to string) error {
	switch {
	case how == "":
		return nil
	case how != "sign" && how != "zero":
		return fmt.Errorf("extend = %q: expected \"sign\" or \"zero\"", how)
	case to == "" || plain[to].Kind != frame.Int:
		return fmt.Errorf("extend = %q: only integers are widened, and %q is not an integer", how, to)
	}
	return nil
}

// widened returns the bits of a narrower integer, widened to the token's type.
func (v *Value) widened(bits uint64, from frame.Type) uint64 {
	unused := 64 - min(from.Bits, 64)
	bits = bits << unused >> unused
	if v.Extend == "sign" {
		bits = uint64(int64(bits<<unused) >> unused)
	}
	return cut(bits, v.As)
}

// unwidened returns the reason why an operand of a type cannot be widened as the token requires, or nil.
func (v *Value) unwidened(t frame.Type) error {
	switch as := plain[v.As]; {
	case t.IsZero():
		return fmt.Errorf("the layout widens it to %s, and no module gives its type", v.As)
	case t.Kind != frame.Int:
		return fmt.Errorf("it is %s, but the layout widens it to %s: only integers are widened", t.Source, v.As)
	case t.Bits > as.Bits:
		return fmt.Errorf("it is %s, but the layout widens it to %s, which is narrower", t.Source, v.As)
	}
	return nil
}

// cut clears the bits above a type's width.
func cut(bits uint64, t string) uint64 {
	if w := widths[t]; w < 64 {
		return bits & (1<<w - 1)
	}
	return bits
}

// named returns the text of a value that cannot be formatted by a type in [plain]; otherwise "".
func (t Typed) named() string {
	switch t.Type {
	case "null":
		return "null"
	case "symbol":
		return t.Text
	case "u8", "u16", "u32", "u64":
		return strconv.FormatUint(cut(t.Bits, t.Type), 10)
	}
	return ""
}

// String returns the text of a value in its natural form.
func (t Typed) String() string {
	if text := t.named(); text != "" || t.Type == "symbol" {
		return text
	}
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], t.Bits)
	return plain[t.Type].Format(raw[:], binary.LittleEndian)
}

// signed returns the number that the bits of a type represent.
func (t Typed) signed() int64 {
	if t.Type != "" && t.Type[0] == 'i' && t.Type != "i1" {
		unused := 64 - widths[t.Type]
		return int64(t.Bits<<unused) >> unused
	}
	return int64(cut(t.Bits, t.Type))
}
