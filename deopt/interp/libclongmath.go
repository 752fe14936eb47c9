package interp

import (
	"encoding/binary"
	"math"
	"math/big"

	"example.com/reframe/deopt/interp/internal/libm"
	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

// longMathFuncs are the functions of <math.h> for long double, whose names end in l. The module's declaration selects x86_fp80 or fp128. Results are
// rounded once, in that format.
var longMathFuncs = longMathTable()

func longMathTable() map[string]Builtin {
	table := map[string]Builtin{
		"ldexpl": longScaled, "scalbnl": longScaled, "scalblnl": longScaled,
		"frexpl":   long(1, longFrexp),
		"modfl":    long(1, longModf),
		"logbl":    long(1, longLogb),
		"ilogbl":   longToInt(longIlogb),
		"lroundl":  longToInt(longWhole(softfloat.TiesAway)),
		"llroundl": longToInt(longWhole(softfloat.TiesAway)),
		"lrintl":   longToInt(longWhole(softfloat.TiesToEven)),
		"llrintl":  longToInt(longWhole(softfloat.TiesToEven)),
		// The classes of C17 7.12.3 by the numbers that glibc's functions return.
		"isnanl":  longToInt(func(n softfloat.Number, _ int) uint64 { return truth(n.Class == softfloat.NaN) }),
		"finitel": longToInt(func(n softfloat.Number, _ int) uint64 { return truth(n.Class <= softfloat.Finite) }),
		"isinfl": longToInt(func(n softfloat.Number, _ int) uint64 {
			return truth(n.Class == softfloat.Inf && !n.Neg) - truth(n.Class == softfloat.Inf && n.Neg)
		}),
		"signbitl": longToInt(func(n softfloat.Number, _ int) uint64 { return truth(n.Neg) }),
	}
	for _, name := range []string{"isnan", "isinf", "finite", "signbit"} {
		table["__"+name+"l"] = table[name+"l"]
	}
	// Functions that are also intrinsics.
	for c, intrinsic := range map[string]string{"fmin": "minnum", "fmax": "maxnum"} {
		table[c+"l"] = longLane(floatIntrinsics[intrinsic].(laneFunc))
	}
	for _, name := range []string{"sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "fma"} {
		table[name+"l"] = longLane(floatIntrinsics[name].(laneFunc))
	}
	for name, f := range map[string]libm.Func{
		"cbrt": libm.Cbrt, "hypot": libm.Hypot, "pow": libm.Pow, "exp": libm.Exp, "exp2": libm.Exp2, "exp10": libm.Exp10, "expm1": libm.Expm1,
		"log": libm.Log, "log2": libm.Log2, "log10": libm.Log10, "log1p": libm.Log1p, "sin": libm.Sin, "cos": libm.Cos, "tan": libm.Tan,
		"asin": libm.Asin, "acos": libm.Acos, "atan": libm.Atan, "atan2": libm.Atan2, "sinh": libm.Sinh, "cosh": libm.Cosh, "tanh": libm.Tanh,
	} {
		table[name+"l"] = longLane(fromC(f))
	}
	for name, f := range map[string]func(a, b softfloat.Number) softfloat.Number{
		"fmod": softfloat.Rem, "remainder": longRemainder, "drem": longRemainder, "fdim": longDim, "copysign": longCopySign,
	} {
		table[name+"l"] = long(2, func(_ *longCall, v []softfloat.Number) softfloat.Number { return f(v[0], v[1]) })
	}
	table["fabsl"] = long(1, func(_ *longCall, v []softfloat.Number) softfloat.Number { return v[0].Abs() })
	return table
}

// longCall is a call whose first argument is a long double of the kind kind.
type longCall struct {
	*ccall
	kind ir.TypeKind
}

// longArgs reads the first n arguments, which must be long doubles.
func longArgs(i *Invocation, n int) (*longCall, []softfloat.Number, error) {
	c, v := &longCall{ccall: &ccall{Invocation: i}}, make([]softfloat.Number, n)
	for k := range v {
		if k >= len(i.Args) {
			return nil, nil, troublef(KindModule, "@%s is called with %d arguments, too few", i.Name, len(i.Args))
		}
		t := i.Args[k].Type()
		if t.Kind != ir.X86FP80Kind && t.Kind != ir.FP128Kind || k > 0 && t.Kind != c.kind {
			return nil, nil, troublef(KindModule, "argument %d of @%s is not a long double", k+1, i.Name)
		}
		if !defined(i.Args[k].w) {
			return nil, nil, undefined("argument %d of @%s", k+1, i.Name)
		}
		c.kind, v[k] = t.Kind, floatNumber(t.Kind, i.Args[k].w)
	}
	return c, v, nil
}

// long makes a function of n long doubles that returns a long double; f reads the arguments that follow.
func long(n int, f func(c *longCall, v []softfloat.Number) softfloat.Number) Builtin {
	return func(i *Invocation) (Value, error) {
		c, v, err := longArgs(i, n)
		if err != nil {
			return Value{}, err
		}
		if i.Result.Kind != c.kind {
			return Value{}, c.mistyped()
		}
		result := f(c, v)
		if c.err != nil {
			return Value{}, c.err
		}
		w := make([]word, c.ret.words)
		setFloat(c.kind, w, result)
		return Value{c.ret, w}, nil
	}
}

func longLane(x laneFunc) Builtin {
	return long(x.args, func(c *longCall, v []softfloat.Number) softfloat.Number { return x.soft(formats[c.kind], v) })
}

// longToInt makes a function of a long double that returns an int or a long.
func longToInt(f func(n softfloat.Number, width int) uint64) Builtin {
	return func(i *Invocation) (Value, error) {
		c, v, err := longArgs(i, 1)
		if err != nil {
			return Value{}, err
		}
		return i.Return(f(v[0], c.resultBits()))
	}
}

var longScaled = long(1, func(c *longCall, v []softfloat.Number) softfloat.Number { return v[0].Scale(big.NewInt(c.int(1))) })

func longFrexp(c *longCall, v []softfloat.Number) softfloat.Number {
	fraction, exp := v[0].Frexp()
	c.put(c.addr(1), 4, uint64(uint32(exp)))
	return fraction
}

// longModf stores the whole part and returns the fraction. Both have the sign of the argument, even if zero (C17 7.12.6.12, F.10.3.12).
func longModf(c *longCall, v []softfloat.Number) softfloat.Number {
	x := v[0]
	whole, fraction := x.Round(softfloat.ToZero), softfloat.Number{Neg: x.Neg}
	switch x.Class {
	case softfloat.NaN:
		fraction = x
	case softfloat.Finite:
		if fraction = softfloat.Sub(x, whole); fraction.Class == softfloat.Zero {
			fraction.Neg = x.Neg
		}
	}
	f := formats[c.kind]
	stored := f.Encode(whole).FillBytes(make([]byte, 16))
	p := binary.LittleEndian.AppendUint64(nil, binary.BigEndian.Uint64(stored[8:]))
	p = binary.LittleEndian.AppendUint64(p, binary.BigEndian.Uint64(stored))
	// A store of an x86_fp80 writes ten of the sixteen bytes (System V ABI, AMD64, §3.1.2).
	c.write(c.addr(1), p[:f.Bits()/8])
	return fraction
}

func longLogb(_ *longCall, v []softfloat.Number) softfloat.Number {
	switch x := v[0]; x.Class {
	case softfloat.Zero:
		return softfloat.Number{Class: softfloat.Inf, Neg: true}
	case softfloat.Finite:
		_, exp := x.Frexp()
		return softfloat.FromInt(big.NewInt(int64(exp - 1)))
	default:
		return x.Abs()
	}
}

// longIlogb returns ilogb's results for numbers without an exponent.
func longIlogb(n softfloat.Number, _ int) uint64 {
	switch n.Class {
	case softfloat.Finite:
		_, exp := n.Frexp()
		return uint64(int64(exp - 1))
	case softfloat.Inf:
		return math.MaxInt32
	}
	return 1 << 31
}

// longWhole rounds to a long or long long. A result that does not fit is x86's integer indefinite value.
func longWhole(to softfloat.Rounding) func(n softfloat.Number, width int) uint64 {
	return func(n softfloat.Number, width int) uint64 {
		v, ok := n.Round(to).Int()
		if !ok || !v.IsInt64() || signExtend(uint64(v.Int64()), width) != uint64(v.Int64()) {
			return 1 << (width - 1)
		}
		return uint64(v.Int64())
	}
}

// longRemainder returns x - n·y with n nearest to x/y, the even one of two (IEEE 754-2019 §5.3.1). The remainder by 2y determines whether the
// quotient is odd.
func longRemainder(x, y softfloat.Number) softfloat.Number {
	if x.Class != softfloat.Finite || y.Class != softfloat.Finite {
		return softfloat.Rem(x, y)
	}
	y = y.Abs()
	r := softfloat.Rem(x.Abs(), y.Scale(big.NewInt(1)))
	half := y.Scale(big.NewInt(-1))
	if softfloat.Cmp(r, half) > 0 {
		if r = softfloat.Sub(r, y); softfloat.Cmp(r, half) >= 0 {
			r = softfloat.Sub(r, y)
		}
	}
	switch {
	case r.Class == softfloat.Zero:
		return softfloat.Number{Neg: x.Neg}
	case x.Neg:
		return r.Negated()
	}
	return r
}

func longDim(x, y softfloat.Number) softfloat.Number {
	if x.Class != softfloat.NaN && y.Class != softfloat.NaN && softfloat.Cmp(x, y) <= 0 {
		return softfloat.Number{}
	}
	return softfloat.Sub(x, y)
}

func longCopySign(x, y softfloat.Number) softfloat.Number {
	x.Neg = y.Neg
	return x
}
