package interp

import (
	"math"
	"math/big"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// argument is one argument of a format: the bits of a number or pointer. high holds sign and exponent of a long double.
type argument struct{ low, high uint64 }

// The argument types of conversions.
const (
	argInt  = 'i' // promoted to 32 bits
	argLong = 'l' // 64 bits: long, or long long
	argPtr  = 'p'
	argDbl  = 'd'
	argWide = 'L' // long double: x86_fp80
)

var argTypes = map[byte]*ir.Type{
	argInt: ir.I32, argLong: ir.I64, argPtr: ir.Ptr, argDbl: {Kind: ir.DoubleKind}, argWide: {Kind: ir.X86FP80Kind},
}

// asks returns the type of the argument that a conversion needs (C17 7.21.6.1p7), or an error if the conversion is not supported.
func (v conversion) asks(long int) (byte, error) {
	switch v.verb {
	case 'd', 'i', 'u', 'x', 'X', 'o':
		if n := v.size(long); n == 64 {
			return argLong, nil
		} else if n > 0 {
			return argInt, nil
		}
	case 'c', 'C':
		if v.length == "" || v.length == "l" {
			return argInt, nil
		}
	case 's', 'S':
		if v.length == "" || v.length == "l" {
			return argPtr, nil
		}
	case 'p', 'n':
		if v.size(long) > 0 {
			return argPtr, nil
		}
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		switch v.length {
		case "", "l":
			return argDbl, nil
		case "L":
			return argWide, nil
		}
	}
	return 0, unsupported("", "the conversion %%%s%c", v.length, v.verb)
}

// size returns the width in bits of an integer conversion, or 0 for an invalid length modifier. long is the size of C's long in bytes.
func (v conversion) size(long int) int {
	switch v.length {
	case "":
		return 32
	case "hh":
		return 8
	case "h":
		return 16
	case "l", "z", "Z", "t":
		return 8 * long
	case "ll", "q", "L", "j":
		return 64
	}
	return 0
}

// fit reduces an integer to the width of the conversion. For d and i it sign-extends the result.
func (v conversion) fit(n uint64, long int) uint64 {
	n &= maskAt(v.size(long), 0)
	if v.verb == 'd' || v.verb == 'i' {
		n = signExtend(n, v.size(long))
	}
	return n
}

// fetch reads the arguments of the conversions, in order. An argument that no conversion uses, before one that is used, is read as an int, as in
// glibc.
func (f *formatter) fetch(list []conversion) {
	var kinds []byte
	var by []conversion
	want := func(arg int, kind byte, v conversion) {
		for arg >= len(kinds) {
			kinds, by = append(kinds, argInt), append(by, conversion{})
		}
		if arg >= 0 {
			kinds[arg], by[arg] = kind, v
		}
	}
	for _, v := range list {
		if v.widthArg >= 0 {
			want(v.widthArg, argInt, conversion{verb: '*'})
		}
		if v.precisionArg >= 0 {
			want(v.precisionArg, argInt, conversion{verb: '*'})
		}
		if v.arg < 0 {
			continue
		}
		kind, err := v.asks(f.c.longSize())
		f.c.fail(err)
		want(v.arg, kind, v)
	}
	f.args = make([]argument, len(kinds))
	for k, kind := range kinds {
		if f.c.err != nil {
			return
		}
		if f.list {
			f.args[k] = f.listed(kind)
		} else {
			f.args[k] = f.passed(kind, f.next+k, by[k])
		}
	}
}

// passed reads argument i of the call, whose type must fit the conversion.
func (f *formatter) passed(kind byte, i int, v conversion) argument {
	low := f.c.uint(i)
	if f.c.err != nil {
		return argument{}
	}
	a := f.c.Args[i]
	ok := false
	switch t := a.s.typ; kind {
	case argDbl:
		ok = t.Kind == ir.DoubleKind
	case argWide:
		ok = t.Kind == ir.X86FP80Kind
	case argInt:
		ok = t.Kind == ir.IntKind && a.s.bits >= 32
	case argPtr:
		ok = !t.Float() && a.s.bits >= 8*f.c.longSize()
	default:
		ok = !t.Float() && a.s.bits >= 64
	}
	if !ok {
		f.c.err = troublef(KindModule, "%%%s%c got a value of type %v", v.length, v.verb, a.s.typ)
		return argument{}
	}
	if kind == argWide {
		return argument{low, a.w[1].v}
	}
	return argument{low: low}
}

// listed reads the next argument of the call's va_list.
func (f *formatter) listed(kind byte) argument {
	if f.va == 0 {
		f.va = f.c.addr(f.next)
	}
	low, high := f.c.vaArg(&f.va, kind)
	return argument{low, high}
}

// vaArg reads the next argument of a va_list that a function received, and advances the list. On x86-64 a va_list is an array, and *list is its
// address. On 32-bit x86 it is a pointer to the next argument, and *list is a copy of the pointer.
func (c *ccall) vaArg(list *machine.Addr, kind byte) (low, high uint64) {
	if !c.in.knowsLists() {
		c.fail(unsupported("", "@%s for %s, whose va_list has another layout,", c.Name, c.in.opt.Arch.Title))
	}
	s, err := c.in.shapes.of(argTypes[kind])
	c.fail(err)
	if c.err != nil {
		return 0, 0
	}
	var a machine.Addr
	if c.in.listSize() == vaWord {
		a, *list = c.in.vaWords(*list, s)
	} else {
		a, err = c.in.vaNext(*list, s)
		c.fail(err)
	}
	if kind == argWide {
		return c.get(a, 8), c.get(a+8, 2)
	}
	return c.get(a, s.bits/8), 0
}

// number is a float to print: a double, or the exact value of a long double.
type number struct {
	negative bool
	special  string // "nan", "inf" or ""
	double   float64
	wide     *big.Float // the exact value of a long double, nil for a double
	high     uint64     // exponent bits of wide
	low      uint64     // significand bits of wide
}

// cost returns the bytes of bulk work to charge for printing a number. Printing the decimal digits of a power of two takes time quadratic in the
// exponent.
func (x number) cost() uint64 {
	if x.wide == nil {
		return 64
	}
	e := x.wide.MantExp(nil) / 256
	return uint64(64 * (1 + e*e))
}

func (a argument) number(wide bool) number {
	if !wide {
		x := math.Float64frombits(a.low)
		n := number{negative: math.Signbit(x), double: math.Abs(x)}
		switch {
		case math.IsNaN(x):
			n.special = "nan"
		case math.IsInf(x, 0):
			n.special = "inf"
		}
		return n
	}
	n := number{negative: a.high>>15&1 == 1, high: a.high & 0x7fff, low: a.low}
	switch {
	case n.high == 0x7fff && n.low<<1 == 0:
		n.special = "inf"
	case n.high == 0x7fff, n.high > 0 && n.low>>63 == 0:
		n.special = "nan" // also for encodings that x87 rejects as invalid operands
	default:
		n.wide = new(big.Float).SetMantExp(new(big.Float).SetPrec(64).SetUint64(n.low), max(int(n.high), 1)-16383-63)
	}
	return n
}
