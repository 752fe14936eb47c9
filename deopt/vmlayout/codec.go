package vmlayout

import (
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"
)

// Codec makes typed values of the bits that a machine has for them, and the other way round.
type Codec interface {
	// Decode is given what the target has, and errs where no value has these bits.
	Decode(bits uint64) (Typed, error)
	// Encode errs where the codec has no bits for a value.
	Encode(v Typed) (uint64, error)
}

// errNoBits says that a codec has none for a value.
func errNoBits(codec string, v Typed) error {
	return fmt.Errorf("%s has no bits for %s %s", codec, v.Type, v)
}

// nanBox is the encoding of doubles by adding a number to their bits, so that integers and references have room above and below:
// JavaScriptCore's, and those that follow it.
type nanBox struct {
	ints    uint64 // the upper 16 bits of integers
	offset  uint64 // that is added to the bits of a double
	symbols map[uint64]string
}

const canonicalNaN = 0x7ff8_0000_0000_0000

func (c *nanBox) Decode(bits uint64) (Typed, error) {
	if name, ok := c.symbols[bits]; ok {
		return Typed{Type: "symbol", Bits: bits, Text: name}, nil
	}
	switch top := bits >> 48; {
	case top == c.ints:
		if bits>>32&0xffff != 0 {
			return Typed{}, fmt.Errorf("%#x: an integer has 32 bits", bits)
		}
		return Typed{Type: "i32", Bits: bits & math.MaxUint32}, nil
	case bits == 0:
		return Typed{Type: "null"}, nil
	case top == 0:
		return Typed{Type: "ref", Bits: bits}, nil
	case bits < c.offset:
		return Typed{}, fmt.Errorf("%#x is no number and no reference", bits)
	}
	d := bits - c.offset
	if f := math.Float64frombits(d); f != f && d != canonicalNaN {
		return Typed{}, fmt.Errorf("%#x is no number and no reference", bits)
	}
	return Typed{Type: "f64", Bits: d}, nil
}

func (c *nanBox) Encode(v Typed) (uint64, error) {
	switch v.Type {
	case "i32":
		return c.ints<<48 | v.Bits&math.MaxUint32, nil
	case "f64":
		if math.IsNaN(math.Float64frombits(v.Bits)) {
			return canonicalNaN + c.offset, nil
		}
		return v.Bits + c.offset, nil
	case "null":
		return 0, nil
	case "ref":
		if v.Bits>>48 == 0 {
			return v.Bits, nil
		}
	case "symbol":
		return bitsOf("nan_box", c.symbols, v)
	}
	return 0, errNoBits("nan_box", v)
}

// bitsOf finds the bits of a symbol; of several the lowest.
func bitsOf(codec string, symbols map[uint64]string, v Typed) (uint64, error) {
	found, bits := false, uint64(0)
	for b, name := range symbols {
		if name == v.Text && (!found || b < bits) {
			found, bits = true, b
		}
	}
	if !found {
		return 0, errNoBits(codec, v)
	}
	return bits, nil
}

// nanTag is the encoding of all but doubles as NaNs, with a tag above and a payload below: LuaJIT's and SpiderMonkey's.
type nanTag struct {
	shift uint
	tags  map[uint64]string // types, or symbols
}

func (c *nanTag) Decode(bits uint64) (Typed, error) {
	kind, ok := c.tags[bits>>c.shift]
	if !ok {
		return Typed{Type: "f64", Bits: bits}, nil
	}
	payload := bits & (1<<c.shift - 1)
	if known(kind) != nil {
		return Typed{Type: "symbol", Bits: bits, Text: kind}, nil
	}
	if cut(payload, kind) != payload {
		return Typed{}, fmt.Errorf("%#x: an %s with more bits", bits, kind)
	}
	return Typed{Type: kind, Bits: payload}, nil
}

func (c *nanTag) Encode(v Typed) (uint64, error) {
	if v.Type == "f64" {
		if _, taken := c.tags[v.Bits>>c.shift]; taken {
			return 0, errNoBits("nan_tag", v)
		}
		return v.Bits, nil
	}
	for _, tag := range c.inOrder() {
		kind := c.tags[tag]
		payload := cut(v.Bits, kind)
		switch {
		case v.Type == "symbol" && v.Text == kind:
			return tag<<c.shift | v.Bits&(1<<c.shift-1), nil
		case v.Type == kind && payload>>c.shift == 0:
			return tag<<c.shift | payload, nil
		}
	}
	return 0, errNoBits("nan_tag", v)
}

func (c *nanTag) inOrder() (list []uint64) {
	for tag := range c.tags {
		list = append(list, tag)
	}
	slices.Sort(list)
	return list
}

// lowTag is the encoding with a tag in the lowest bits: integers shifted left, pointers that are aligned.
type lowTag struct {
	bits    uint
	ints    uint64 // the tag of integers
	refs    uint64 // the tag of references
	symbols map[uint64]string
}

func (c *lowTag) Decode(bits uint64) (Typed, error) {
	if name, ok := c.symbols[bits]; ok {
		return Typed{Type: "symbol", Bits: bits, Text: name}, nil
	}
	switch tag := bits & (1<<c.bits - 1); tag {
	case c.ints:
		return Typed{Type: "i64", Bits: uint64(int64(bits) >> c.bits)}, nil
	case c.refs:
		if bits == c.refs {
			return Typed{Type: "null"}, nil
		}
		return Typed{Type: "ref", Bits: bits - c.refs}, nil
	default:
		return Typed{}, fmt.Errorf("%#x: nothing has the tag %d", bits, tag)
	}
}

func (c *lowTag) Encode(v Typed) (uint64, error) {
	switch v.Type {
	case "i64":
		bits := v.Bits << c.bits
		if uint64(int64(bits)>>c.bits) == v.Bits {
			return bits | c.ints, nil
		}
	case "null":
		return c.refs, nil
	case "ref":
		if v.Bits&(1<<c.bits-1) == 0 {
			return v.Bits + c.refs, nil
		}
	case "symbol":
		return bitsOf("low_tag", c.symbols, v)
	}
	return 0, errNoBits("low_tag", v)
}

// compressed is the encoding of references as 32 bits, which are shifted and added to a base. 0 is null.
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
	if v.Type == "null" {
		return 0, nil
	}
	n := (v.Bits - c.base) >> c.shift
	if v.Type != "ref" || n == 0 || n > math.MaxUint32 || c.base+n<<c.shift != v.Bits {
		return 0, errNoBits("compressed", v)
	}
	return n, nil
}

// interned is the encoding of values as numbers that a table names.
type interned struct{ names map[uint64]string }

func (c *interned) Decode(bits uint64) (Typed, error) {
	if name, ok := c.names[bits]; ok {
		return Typed{Type: "symbol", Bits: bits, Text: name}, nil
	}
	return Typed{}, fmt.Errorf("%d is none of the names", bits)
}

func (c *interned) Encode(v Typed) (uint64, error) {
	if v.Type != "symbol" {
		return 0, errNoBits("interned", v)
	}
	return bitsOf("interned", c.names, v)
}

// written is a codec of two functions of a layout.
type written struct {
	layout         *Layout
	decode, encode starlark.Callable
}

func (c *written) Decode(bits uint64) (Typed, error) {
	v, err := c.layout.call(c.decode, nil, starlark.MakeUint64(bits))
	if err != nil {
		return Typed{}, err
	}
	t, ok := v.(typedValue)
	if !ok {
		return Typed{}, fmt.Errorf("%s: %s gives a %s, and a typed value is wanted, as i32(n) and ref(bits) make it", c.layout.Name, c.decode.Name(), v.Type())
	}
	return t.is, nil
}

func (c *written) Encode(v Typed) (uint64, error) {
	if c.encode == nil {
		return 0, fmt.Errorf("%s: codec(%s) has no encode: its values cannot be set", c.layout.Name, c.decode.Name())
	}
	out, err := c.layout.call(c.encode, nil, typedValue{v})
	if err != nil {
		return 0, err
	}
	bits, err := bits64(out)
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", c.layout.Name, c.encode.Name(), err)
	}
	return bits, nil
}

// bits64 are the low 64 bits of a number that fits into as many, signed or not.
func bits64(v starlark.Value) (uint64, error) {
	i, ok := v.(starlark.Int)
	if !ok {
		return 0, fmt.Errorf("a %s, and a number is wanted", v.Type())
	}
	if u, ok := i.Uint64(); ok {
		return u, nil
	}
	if s, ok := i.Int64(); ok {
		return uint64(s), nil
	}
	return 0, fmt.Errorf("%v has more than 64 bits", i)
}
