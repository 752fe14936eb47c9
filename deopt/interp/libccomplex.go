package interp

import (
	"reframe/deopt/interp/internal/libm"
	"reframe/deopt/interp/internal/softfloat"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// complexFuncs holds the functions of <complex.h> (C17 7.3), each also for float and long double, and those that compilers call for products and
// quotients. The ABI decides how a complex number is passed and returned: in two arguments, a vector, an array or memory.
var complexFuncs = complexTable()

func complexTable() map[string]Builtin {
	table := map[string]Builtin{}
	kinds := map[string]ir.TypeKind{"": ir.DoubleKind, "f": ir.FloatKind, "l": ir.X86FP80Kind}
	for suffix, kind := range kinds {
		for name, f := range map[string]libm.ComplexFunc{
			"csqrt": libm.Csqrt, "cexp": libm.Cexp, "clog": libm.Clog, "cpow": libm.Cpow, "csin": libm.Csin, "ccos": libm.Ccos, "ctan": libm.Ctan,
			"csinh": libm.Csinh, "ccosh": libm.Ccosh, "ctanh": libm.Ctanh, "catan": libm.Catan, "catanh": libm.Catanh, "conj": libm.Conj, "cproj": libm.Cproj,
		} {
			table[name+suffix] = complexToComplex(kind, f)
		}
		for name, f := range map[string]func(f softfloat.Format, z libm.Complex) softfloat.Number{
			"creal": func(_ softfloat.Format, z libm.Complex) softfloat.Number { return z.Re },
			"cimag": func(_ softfloat.Format, z libm.Complex) softfloat.Number { return z.Im },
			"cabs":  func(f softfloat.Format, z libm.Complex) softfloat.Number { return libm.Hypot.Call(f, z.Re, z.Im) },
			"carg":  func(f softfloat.Format, z libm.Complex) softfloat.Number { return libm.Atan2.Call(f, z.Im, z.Re) },
		} {
			table[name+suffix] = complexToFloat(kind, f)
		}
	}
	for letter, kind := range map[string]ir.TypeKind{"d": ir.DoubleKind, "s": ir.FloatKind, "x": ir.X86FP80Kind} {
		table["__mul"+letter+"c3"] = complexToComplex(kind, libm.Cmul)
		table["__div"+letter+"c3"] = complexToComplex(kind, libm.Cdiv)
	}
	return table
}

// complexCall is a call with complex numbers whose parts have one kind.
type complexCall struct {
	*ccall
	kind  ir.TypeKind
	parts []softfloat.Number
}

// partSize returns the distance of the parts in memory (System V ABI, AMD64 and i386: a long double has 16 or 12 bytes).
func (c *complexCall) partSize() int {
	switch {
	case c.kind == ir.DoubleKind:
		return 8
	case c.kind == ir.FloatKind:
		return 4
	case c.longSize() == 4:
		return 12
	}
	return 16
}

// take reads the parts of arguments from first on.
func (c *complexCall) take(first int) error {
	for k, a := range c.Args[first:] {
		switch {
		case !defined(a.w):
			return undefined("argument %d of @%s", first+k+1, c.Name)
		case a.Type().Kind == ir.PointerKind:
			c.load(machine.Addr(a.w[0].v))
		case a.Type().Kind == c.kind:
			c.parts = append(c.parts, floatNumber(c.kind, a.w))
		default:
			for i := range a.Len() {
				e, ok := a.Elem(i)
				if !ok || e.Type().Kind != c.kind {
					return troublef(KindModule, "argument %d of @%s is no complex number", first+k+1, c.Name)
				}
				c.parts = append(c.parts, floatNumber(c.kind, e.w))
			}
		}
	}
	return c.err
}

// load reads a number that is passed in memory.
func (c *complexCall) load(at machine.Addr) {
	if c.in.layout.BigEndian {
		c.fail(unsupported("", "@%s with numbers in memory of the other byte order", c.Name))
	}
	for range 2 {
		w := []word{{v: c.get(at, min(c.partSize(), 8))}}
		if c.kind == ir.X86FP80Kind {
			w = append(w, word{v: c.get(at+8, 2)})
		}
		if c.err != nil {
			return
		}
		c.parts = append(c.parts, floatNumber(c.kind, w))
		at += machine.Addr(c.partSize())
	}
}

// give makes the result of two parts.
func (c *complexCall) give(z libm.Complex) (Value, error) {
	size := (formats[c.kind].Bits() + 63) / 64
	var raw [2][]word
	for k, n := range []softfloat.Number{z.Re, z.Im} {
		raw[k] = make([]word, size)
		setFloat(c.kind, raw[k], n)
	}
	switch {
	case c.ret.words == 0: // argument 0 says where to
		at := c.addr(0)
		for _, w := range raw {
			c.put(at, min(c.partSize(), 8), w[0].v)
			if len(w) > 1 {
				c.put(at+8, 2, w[1].v)
			}
			at += machine.Addr(c.partSize())
		}
		return Value{}, c.err
	case c.kind == ir.FloatKind && c.ret.bits == 64 && !c.ret.typ.Float():
		return c.Return(raw[0][0].v | raw[1][0].v<<32)
	case c.ret.n != 2:
		return Value{}, c.mistyped()
	}
	w := make([]word, c.ret.words)
	for k := range raw {
		part, at, ok := c.ret.part(k)
		if !ok || part.typ.Kind != c.kind {
			return Value{}, c.mistyped()
		}
		copy(w[at:at+part.words], raw[k])
	}
	return Value{c.ret, w}, nil
}

func (c *complexCall) mistaken(want int) error {
	if len(c.parts) != want {
		return troublef(KindModule, "@%s is called with %d parts of complex numbers where it takes %d", c.Name, len(c.parts), want)
	}
	return nil
}

func newComplexCall(i *Invocation, kind ir.TypeKind) (*complexCall, error) {
	c := &complexCall{ccall: &ccall{Invocation: i}, kind: kind}
	if triple := c.in.mods[0].Triple; kind == ir.X86FP80Kind && triple != "" && !ofX86(triple) {
		return nil, unsupported("", "@%s of a long double that is not x86's", c.Name)
	}
	return c, c.in.work(1 << 12)
}

func complexToComplex(kind ir.TypeKind, f libm.ComplexFunc) Builtin {
	return func(i *Invocation) (Value, error) {
		c, err := newComplexCall(i, kind)
		if err != nil {
			return Value{}, err
		}
		first := 0
		if c.ret.words == 0 {
			first = min(1, len(c.Args)) // behind the address of the result
		}
		if err := c.take(first); err != nil {
			return Value{}, err
		}
		if err := c.mistaken(2 * f.Args); err != nil {
			return Value{}, err
		}
		z := make([]libm.Complex, f.Args)
		for k := range z {
			z[k] = libm.Complex{Re: c.parts[2*k], Im: c.parts[2*k+1]}
		}
		return c.give(f.Call(formats[kind], z...))
	}
}

func complexToFloat(kind ir.TypeKind, f func(f softfloat.Format, z libm.Complex) softfloat.Number) Builtin {
	return func(i *Invocation) (Value, error) {
		c, err := newComplexCall(i, kind)
		if err != nil {
			return Value{}, err
		}
		if err := c.take(0); err != nil {
			return Value{}, err
		}
		if err := c.mistaken(2); err != nil {
			return Value{}, err
		}
		if c.ret.typ.Kind != kind {
			return Value{}, c.mistyped()
		}
		w := make([]word, c.ret.words)
		setFloat(kind, w, f(formats[kind], libm.Complex{Re: c.parts[0], Im: c.parts[1]}))
		return Value{c.ret, w}, nil
	}
}
