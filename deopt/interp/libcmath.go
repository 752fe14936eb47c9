package interp

import (
	"math"

	"example.com/reframe/deopt/interp/internal/libm"
	"example.com/reframe/internal/llvm/ir"
)

// mathFuncs holds the functions of <math.h> that take floats and return a float. Each also has a form for float, whose name ends in f. The comment of
// floatFunc describes their accuracy.
var mathFuncs = map[string]floatFunc{
	"sqrt": one(math.Sqrt), "cbrt": correct(libm.Cbrt), "sin": correct(libm.Sin), "cos": correct(libm.Cos), "tan": correct(libm.Tan),
	"asin": constantNaN(libm.Asin), "acos": constantNaN(libm.Acos), "atan": correct(libm.Atan), "atan2": correct(libm.Atan2),
	"sinh": correct(libm.Sinh), "cosh": correct(libm.Cosh), "tanh": correct(libm.Tanh),
	"asinh": correct(libm.Asinh), "acosh": correct(libm.Acosh), "atanh": correct(libm.Atanh),
	"exp": correct(libm.Exp), "exp2": correct(libm.Exp2), "exp10": correct(libm.Exp10), "expm1": correct(libm.Expm1), "log": correct(libm.Log), "log2": correct(libm.Log2),
	"log10": constantNaN(libm.Log10), "log1p": correct(libm.Log1p), "logb": one(math.Logb),
	"pow": correct(libm.Pow), "fmod": two(math.Mod), "remainder": two(math.Remainder), "drem": two(math.Remainder), "hypot": correct(libm.Hypot),
	"fabs": {1, func(v []float64) float64 { return math.Abs(v[0]) }}, "floor": one(math.Floor), "ceil": one(math.Ceil), "trunc": one(math.Trunc), "round": one(math.Round),
	"rint": one(math.RoundToEven), "nearbyint": one(math.RoundToEven), "roundeven": one(math.RoundToEven),
	"fmin": two(minNum), "fmax": two(maxNum), "copysign": {2, func(v []float64) float64 { return math.Copysign(v[0], v[1]) }}, "fdim": two(fdim),
}

// fdim returns the positive difference (C17 7.12.12.1); a NaN stays a NaN.
func fdim(x, y float64) float64 {
	if x <= y {
		return 0
	}
	return x - y
}

func (x floatFunc) builtin(c *Invocation) (Value, error) {
	v := make([]float64, x.args)
	for k := range v {
		var err error
		if v[k], err = c.Float(k); err != nil {
			return Value{}, err
		}
	}
	return c.ReturnFloat(x.f(v))
}

// mathLibFuncs holds the other functions of <math.h>, whose result or arguments have another type. Each also has a float form, whose name ends in f.
var mathLibFuncs = mathLibTable()

func mathLibTable() map[string]Builtin {
	table := map[string]Builtin{}
	for name, f := range map[string]Builtin{
		"fma":     floating3,
		"ldexp":   floating(func(c numberCall) float64 { return c.scaled(c.float(0), c.int(1)) }),
		"scalbn":  floating(func(c numberCall) float64 { return c.scaled(c.float(0), c.int(1)) }),
		"scalbln": floating(func(c numberCall) float64 { return c.scaled(c.float(0), c.int(1)) }),
		"frexp":   floating(frexp), "modf": floating(modf),
		"lround":  scalar(func(c numberCall) uint64 { return c.whole(math.Round) }),
		"llround": scalar(func(c numberCall) uint64 { return c.whole(math.Round) }),
		"lrint":   scalar(func(c numberCall) uint64 { return c.whole(math.RoundToEven) }),
		"llrint":  scalar(func(c numberCall) uint64 { return c.whole(math.RoundToEven) }),
		"ilogb":   scalar(ilogb),
		"isnan":   scalar(func(c numberCall) uint64 { return truth(math.IsNaN(c.float(0))) }),
		"isinf":   scalar(isinf),
		"finite":  scalar(func(c numberCall) uint64 { x := c.float(0); return truth(!math.IsNaN(x) && !math.IsInf(x, 0)) }),
		"signbit": scalar(func(c numberCall) uint64 { return truth(math.Signbit(c.float(0))) }),
		"nan":     floating(func(c numberCall) float64 { return math.Float64frombits(0x7ff8<<48 | c.nanPayload()) }),
	} {
		for _, suffix := range []string{"", "f"} {
			table[name+suffix] = f
			switch name {
			case "isnan", "isinf", "finite", "signbit":
				table["__"+name+suffix] = f
			}
		}
	}
	table["nextafter"], table["nextafterf"] = floating(nextafter), floating(nextafter)
	return table
}

// nextafter returns the next number in the result's type. From a zero to the other zero, it returns the other zero (C17 7.12.11.3).
func nextafter(c numberCall) float64 {
	x, y := c.float(0), c.float(1)
	switch {
	case x == y:
		return y
	case math.IsNaN(x) || math.IsNaN(y):
		return nanOf(x, y)
	case c.ret.typ.Kind == ir.FloatKind:
		return float64(math.Nextafter32(float32(x), float32(y)))
	}
	return math.Nextafter(x, y)
}

func floating3(i *Invocation) (Value, error) {
	c := &ccall{Invocation: i}
	x, y, z := c.float(0), c.float(1), c.float(2)
	if c.err != nil {
		return Value{}, c.err
	}
	if !narrowFloat(c.ret.typ) {
		return Value{}, c.mistyped()
	}
	return c.in.scalar(c.ret, fused(c.ret.typ.Kind, x, y, z)), nil
}

// scaled returns x · 2^n, rounded once, in the result's type.
func (c numberCall) scaled(x float64, n int64) float64 {
	n = min(max(n, -5000), 5000)
	if c.ret.typ.Kind != ir.FloatKind {
		return math.Ldexp(x, int(n))
	}
	// Exponents beyond ±600 have the same result: they move every float out of its range. With ±600 a double still holds the 24 bits exactly.
	return math.Ldexp(x, int(min(max(n, -600), 600)))
}

func frexp(c numberCall) float64 {
	x := c.float(0)
	f, e := math.Frexp(x)
	c.put(c.addr(1), 4, uint64(uint32(e)))
	return f
}

// modf stores the whole part through its pointer, in the type of its operand, and returns the fraction.
func modf(c numberCall) float64 {
	x := c.float(0)
	whole, fraction := math.Modf(x)
	if math.IsInf(x, 0) {
		whole, fraction = x, math.Copysign(0, x)
	}
	if c.err == nil {
		kind := c.ret.typ.Kind
		if !narrowFloat(c.ret.typ) {
			c.err = c.mistyped()
			return 0
		}
		c.put(c.addr(1), c.ret.bits/8, floatBits(kind, math.Copysign(whole, x)))
	}
	return math.Copysign(fraction, x)
}

// whole rounds an argument to a long or long long. If the result does not fit, it is x86's integer indefinite value.
func (c numberCall) whole(round func(float64) float64) uint64 {
	x := round(c.float(0))
	width := c.resultBits()
	limit := math.Ldexp(1, width-1)
	if x >= -limit && x < limit {
		return uint64(int64(x))
	}
	return 1 << (width - 1)
}

// ilogb returns glibc's results on x86-64 for numbers without an exponent: FP_ILOGB0 and FP_ILOGBNAN are INT_MIN; the result for an infinity is
// INT_MAX.
func ilogb(c numberCall) uint64 {
	switch x := c.float(0); {
	case x == 0 || math.IsNaN(x):
		return 1 << 31
	case math.IsInf(x, 0):
		return math.MaxInt32
	default:
		_, e := math.Frexp(x)
		return uint64(int64(e - 1))
	}
}

// isinf is glibc's function, which returns -1 for negative infinity.
func isinf(c numberCall) uint64 {
	x := c.float(0)
	return truth(math.IsInf(x, 1)) - truth(math.IsInf(x, -1))
}

func (c numberCall) nanPayload() uint64 {
	s := c.text(0)
	p := parseInteger(s, 0, false)
	if p.n != len(s) {
		return 0
	}
	v, _ := p.unsigned(64)
	if c.ret.typ.Kind == ir.FloatKind {
		return v & (1<<22 - 1) << 29
	}
	return v & (1<<51 - 1)
}
