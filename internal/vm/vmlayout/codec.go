package vmlayout

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"
)

// Codec converts between typed values and their bits in the machine.
type Codec interface {
	// Decode returns the value of bits in the target, or an error if no value has these bits.
	Decode(bits uint64) (Typed, error)
	// Encode returns an error if the codec has no bits for a value.
	Encode(v Typed) (uint64, error)
}

// errNoBits reports that a codec cannot encode a value.
func errNoBits(codec string, v Typed) error {
	return fmt.Errorf("%s cannot encode %s %s", codec, v.Type, v)
}

// symbols holds values with a name: undefined, true, a hole. A symbol with the name null is the value of that type.
type symbols map[uint64]string

func (s symbols) decode(bits uint64) (Typed, bool) {
	name, ok := s[bits]
	if name == "null" {
		return Typed{Type: "null"}, ok
	}
	return Typed{Type: "symbol", Bits: bits, Text: name}, ok
}

// encode returns the bits of a symbol; if several values have its name, the lowest of them.
func (s symbols) encode(codec string, v Typed) (uint64, error) {
	name := v.Text
	if v.Type == "null" {
		name = v.Type
	}
	found, bits := false, uint64(0)
	for b, is := range s {
		if is == name && (!found || b < bits) {
			found, bits = true, b
		}
	}
	if !found {
		return 0, errNoBits(codec, v)
	}
	return bits, nil
}

// null returns the bits of null: those of the symbol null, or the value of otherwise if no symbol has that name. If another symbol has these bits, it
// returns an error.
func (s symbols) null(codec string, otherwise uint64) (uint64, error) {
	v := Typed{Type: "null"}
	bits, err := s.encode(codec, v)
	if err == nil {
		return bits, nil
	}
	if _, taken := s[otherwise]; taken {
		return 0, err
	}
	return otherwise, nil
}

// nanBox encodes doubles by adding an offset to their bits, which leaves room above and below for integers and references. JavaScriptCore and similar
// VMs use it.
type nanBox struct {
	ints    uint64 // the upper 16 bits of integers
	offset  uint64 // added to the bits of a double
	extend  bool   // bits 32 to 47 of an integer repeat its sign
	below   bool   // integers are below the doubles, not above
	symbols symbols
}

const canonicalNaN = 0x7ff8_0000_0000_0000

// int32 returns the encoding of an integer.
func (c *nanBox) int32(v uint64) uint64 {
	if c.extend && v>>31&1 != 0 {
		v |= 0xffff << 32
	}
	return c.ints<<48 | v
}

func (c *nanBox) Decode(bits uint64) (Typed, error) {
	if v, ok := c.symbols.decode(bits); ok {
		return v, nil
	}
	switch top := bits >> 48; {
	case top == c.ints:
		if bits != c.int32(bits&math.MaxUint32) {
			return Typed{}, fmt.Errorf("%#x: an integer has 32 bits", bits)
		}
		return Typed{Type: "i32", Bits: bits & math.MaxUint32}, nil
	case bits == 0:
		if _, err := c.symbols.encode("nan_box", Typed{Type: "null"}); err == nil {
			return Typed{}, errors.New("0x0 is neither a number nor a reference")
		}
		return Typed{Type: "null"}, nil
	case top == 0:
		return Typed{Type: "ref", Bits: bits}, nil
	case bits < c.offset || !c.below && top > c.ints:
		return Typed{}, fmt.Errorf("%#x is neither a number nor a reference", bits)
	}
	return Typed{Type: "f64", Bits: bits - c.offset}, nil
}

func (c *nanBox) Encode(v Typed) (uint64, error) {
	switch v.Type {
	case "i32":
		return c.int32(v.Bits & math.MaxUint32), nil
	case "f64":
		// The processor's own NaNs can be encoded. A NaN with all bits set, which arithmetic never produces, would be encoded as an integer.
		if sum := v.Bits + c.offset; sum >= c.offset && (c.below || sum>>48 < c.ints) {
			return sum, nil
		}
		return canonicalNaN + c.offset, nil
	case "null":
		return c.symbols.null("nan_box", 0)
	case "ref":
		if v.Bits == 0 {
			return c.symbols.null("nan_box", 0)
		}
		if _, taken := c.symbols[v.Bits]; v.Bits>>48 == 0 && !taken {
			return v.Bits, nil
		}
	case "symbol":
		return c.symbols.encode("nan_box", v)
	}
	return 0, errNoBits("nan_box", v)
}

// nanTag encodes all values except doubles as NaNs, with a tag above and a payload below. LuaJIT and SpiderMonkey use it.
type nanTag struct {
	shift   uint
	tags    map[uint64]string // types, "ref" with the kind of object, or symbols
	symbols symbols           // symbols by all 64 bits of their value
}

func (c *nanTag) Decode(bits uint64) (Typed, error) {
	if v, ok := c.symbols.decode(bits); ok {
		return v, nil
	}
	kind, ok := c.tags[bits>>c.shift]
	if !ok {
		return Typed{Type: "f64", Bits: bits}, nil
	}
	payload := bits & (1<<c.shift - 1)
	if of, isRef := strings.CutPrefix(kind, "ref "); isRef {
		return Typed{Type: "ref", Bits: payload, Text: of}, nil
	}
	if known(kind) != nil {
		return Typed{Type: "symbol", Bits: bits, Text: kind}, nil
	}
	if cut(payload, kind) != payload {
		return Typed{}, fmt.Errorf("%#x: more bits than %s has", bits, kind)
	}
	return Typed{Type: kind, Bits: payload}, nil
}

func (c *nanTag) Encode(v Typed) (uint64, error) {
	switch v.Type {
	case "f64":
		_, taken := c.tags[v.Bits>>c.shift]
		if _, named := c.symbols[v.Bits]; taken || named {
			return 0, errNoBits("nan_tag", v)
		}
		return v.Bits, nil
	case "null", "symbol":
		if bits, err := c.symbols.encode("nan_tag", v); err == nil {
			return bits, nil
		}
	}
	found, bits := 0, uint64(0)
	for tag, kind := range c.tags {
		payload := cut(v.Bits, v.Type)
		switch of, isRef := strings.CutPrefix(kind, "ref "); {
		case v.Type == "symbol" && v.Text == kind:
			payload = v.Bits & (1<<c.shift - 1)
		case isRef && v.Type == "ref" && (v.Text == of || v.Text == ""):
		case kind != v.Type || v.Text != "":
			continue
		}
		if payload>>c.shift == 0 {
			found, bits = found+1, tag<<c.shift|payload
		}
	}
	if found > 1 {
		return 0, fmt.Errorf("nan_tag has %d tags for %s %s: give its kind", found, v.Type, v)
	}
	if _, named := c.symbols[bits]; found == 0 || named {
		return 0, errNoBits("nan_tag", v)
	}
	return bits, nil
}

// lowTag encodes values with a tag in the lowest bits: shifted integers and aligned pointers.
type lowTag struct {
	bits    uint
	shift   uint   // of integers; if it exceeds bits, the bits between tag and integer are 0
	width   uint   // number of bits of a value
	ints    uint64 // the tag of integers
	refs    uint64 // the tag of references
	symbols symbols
}

func (c *lowTag) Decode(bits uint64) (Typed, error) {
	unused := 64 - c.width
	bits = bits << unused >> unused
	if v, ok := c.symbols.decode(bits); ok {
		return v, nil
	}
	switch tag := bits & (1<<c.bits - 1); tag {
	case c.ints:
		if bits&(1<<c.shift-1) != c.ints {
			return Typed{}, fmt.Errorf("%#x: an integer has no bits below bit %d", bits, c.shift)
		}
		return Typed{Type: "i64", Bits: uint64(int64(bits<<unused) >> unused >> c.shift)}, nil
	case c.refs:
		if bits == c.refs {
			return Typed{Type: "null"}, nil
		}
		return Typed{Type: "ref", Bits: bits - c.refs}, nil
	default:
		return Typed{}, fmt.Errorf("%#x: unknown tag %d", bits, tag)
	}
}

func (c *lowTag) Encode(v Typed) (uint64, error) {
	unused := 64 - c.width
	bits := uint64(0)
	switch v.Type {
	case "i64":
		bits = v.Bits << c.shift << unused >> unused
		if uint64(int64(bits<<unused)>>unused>>c.shift) != v.Bits {
			return 0, errNoBits("low_tag", v)
		}
		bits |= c.ints
	case "null":
		return c.symbols.null("low_tag", c.refs)
	case "ref":
		if v.Bits == 0 {
			return c.symbols.null("low_tag", c.refs)
		}
		if v.Bits&(1<<c.bits-1) != 0 || v.Bits<<unused>>unused != v.Bits {
			return 0, errNoBits("low_tag", v)
		}
		bits = v.Bits + c.refs
	case "symbol":
		return c.symbols.encode("low_tag", v)
	default:
		return 0, errNoBits("low_tag", v)
	}
	if _, named := c.symbols[bits]; named {
		return 0, errNoBits("low_tag", v)
	}
	return bits, nil
}

// compressed encodes references as 32 bits, which are shifted and added to a base. 0 is null.
type compressed struct {
	base  uint64
	shift uint
}

func (c *compressed) Decode(bits uint64) (Typed, error) {
	if bits &= math.MaxUint32; bits == 0 {
		return Typed{Type: "null"}, nil
	}
	return Typed{Type: "ref", Bits: c.base + bits<<c.shift}, nil
}

func (c *compressed) Encode(v Typed) (uint64, error) {
	if v.Type == "null" || v.Type == "ref" && v.Bits == 0 {
		return 0, nil
	}
	n := (v.Bits - c.base) >> c.shift
	if v.Type != "ref" || n == 0 || n > math.MaxUint32 || c.base+n<<c.shift != v.Bits {
		return 0, errNoBits("compressed", v)
	}
	return n, nil
}

// interned encodes values as numbers with names in a table.
type interned struct{ names symbols }

func (c *interned) Decode(bits uint64) (Typed, error) {
	if v, ok := c.names.decode(bits); ok {
		return v, nil
	}
	return Typed{}, fmt.Errorf("%d has no name", bits)
}

func (c *interned) Encode(v Typed) (uint64, error) {
	if v.Type != "symbol" && v.Type != "null" {
		return 0, errNoBits("interned", v)
	}
	return c.names.encode("interned", v)
}

// bits64 returns the low 64 bits of a signed or unsigned 64-bit number.
func bits64(v starlark.Value) (uint64, error) {
	i, ok := v.(starlark.Int)
	if !ok {
		return 0, fmt.Errorf("expected a number, got a %s", v.Type())
	}
	if u, ok := i.Uint64(); ok {
		return u, nil
	}
	if s, ok := i.Int64(); ok {
		return uint64(s), nil
	}
	return 0, fmt.Errorf("%v has more than 64 bits", i)
}
