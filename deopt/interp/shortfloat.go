package interp

import (
	"math"

	"example.com/reframe/internal/llvm/ir"
)

// floatShort holds the fast paths of a function for doubles and for floats. A field is nil if that type has no fast path. The fast paths leave a NaN
// result to the step.
type floatShort struct{ double, single shortWay }

func (x floatShort) of(k ir.TypeKind) shortWay {
	switch k {
	case ir.DoubleKind:
		return x.double
	case ir.FloatKind:
		return x.single
	}
	return nil
}

var floatShorts = map[string]floatShort{
	// Rounding a root or a whole number from 53 bits to 24 equals rounding it once: see floatIntrinsics.
	"sqrt": ofOne(math.Sqrt), "floor": ofOne(math.Floor), "ceil": ofOne(math.Ceil), "trunc": ofOne(math.Trunc),
	"rint": ofOne(math.RoundToEven), "nearbyint": ofOne(math.RoundToEven), "roundeven": ofOne(math.RoundToEven), "round": ofOne(math.Round),
	"minnum": extreme(-1), "minimumnum": extreme(-1), "minimum": extreme(-1),
	"maxnum": extreme(1), "maximumnum": extreme(1), "maximum": extreme(1),
	"fabs": {
		func(a, _, _ uint64) (uint64, bool) { return a &^ (1 << 63), true },
		func(a, _, _ uint64) (uint64, bool) { return a &^ (1 << 31), true },
	},
	"copysign": {
		func(a, b, _ uint64) (uint64, bool) { return a&^(1<<63) | b&(1<<63), true },
		func(a, b, _ uint64) (uint64, bool) { return a&^(1<<31) | b&(1<<31), true },
	},
	"fma": {
		func(a, b, c uint64) (uint64, bool) {
			return finishDouble(math.FMA(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)))
		},
		func(a, b, c uint64) (uint64, bool) {
			x, y, z := float64(float(a)), float64(float(b)), float64(float(c))
			if x*y+z != x*y+z {
				return 0, false
			}
			return fused(ir.FloatKind, x, y, z), true
		},
	},
	"fmuladd": { // the conversion rounds, so that Go does not fuse the product with the sum
		func(a, b, c uint64) (uint64, bool) {
			return finishDouble(float64(math.Float64frombits(a)*math.Float64frombits(b)) + math.Float64frombits(c))
		},
		func(a, b, c uint64) (uint64, bool) { return finishSingle(float32(float(a)*float(b)) + float(c)) },
	},
}

func finishDouble(r float64) (uint64, bool) { return math.Float64bits(r), r == r }

func finishSingle(r float32) (uint64, bool) { return uint64(math.Float32bits(r)), r == r }

func ofOne(f func(float64) float64) floatShort {
	return floatShort{
		func(a, _, _ uint64) (uint64, bool) { return finishDouble(f(math.Float64frombits(a))) },
		func(a, _, _ uint64) (uint64, bool) { return finishSingle(float32(f(float64(float(a))))) },
	}
}

// extreme returns the fast path of the minimum (-1) or maximum (1) of two floats. It leaves NaNs, and zeros of different signs, to the step.
func extreme(sign int) floatShort {
	pick := func(a, b uint64, x, y float64) (uint64, bool) {
		switch {
		case x < y == (sign < 0) && x != y:
			return a, x == x && y == y
		case x == y:
			return a, a == b
		}
		return b, x == x && y == y
	}
	return floatShort{
		func(a, b, _ uint64) (uint64, bool) {
			return pick(a, b, math.Float64frombits(a), math.Float64frombits(b))
		},
		func(a, b, _ uint64) (uint64, bool) { return pick(a, b, float64(float(a)), float64(float(b))) },
	}
}

// conversionShort returns the fast path of a conversion from or to double or float, nil if there is none.
func conversionShort(op ir.Op, flags ir.Flags, from, to *shape) shortWay {
	if flags&(ir.NoNaNs|ir.NoInfs) != 0 || from.words != 1 || to.words != 1 {
		return nil
	}
	switch op {
	case ir.OpSIToFP, ir.OpUIToFP:
		return intToFloatShort(op == ir.OpSIToFP, flags&ir.NNeg != 0, from.bits, to.typ.Kind)
	case ir.OpFPToSI, ir.OpFPToUI:
		return floatToIntShort(op == ir.OpFPToSI, from.typ.Kind, to.bits)
	case ir.OpFPTrunc:
		if from.typ.Kind == ir.DoubleKind && to.typ.Kind == ir.FloatKind {
			return func(a, _, _ uint64) (uint64, bool) { return finishSingle(float32(math.Float64frombits(a))) }
		}
	case ir.OpFPExt:
		if from.typ.Kind == ir.FloatKind && to.typ.Kind == ir.DoubleKind {
			return func(a, _, _ uint64) (uint64, bool) { return finishDouble(float64(float(a))) }
		}
	}
	return nil
}

func intToFloatShort(signed, notNegative bool, bits int, to ir.TypeKind) shortWay {
	cut, refused := uint8(64-bits), uint64(0)
	if notNegative {
		refused = 1 << (bits - 1)
	}
	switch {
	case to == ir.DoubleKind && signed:
		return func(a, _, _ uint64) (uint64, bool) {
			return math.Float64bits(float64(extended(a, cut))), a&refused == 0
		}
	case to == ir.DoubleKind:
		return func(a, _, _ uint64) (uint64, bool) { return math.Float64bits(float64(a)), a&refused == 0 }
	case to == ir.FloatKind && signed:
		return func(a, _, _ uint64) (uint64, bool) {
			return uint64(math.Float32bits(float32(extended(a, cut)))), a&refused == 0
		}
	case to == ir.FloatKind:
		return func(a, _, _ uint64) (uint64, bool) { return uint64(math.Float32bits(float32(a))), a&refused == 0 }
	}
	return nil
}

// floatToIntShort converts numbers for which Go defines the conversion. It leaves others, and NaN, to the step.
func floatToIntShort(signed bool, from ir.TypeKind, bits int) shortWay {
	var value func(a uint64) float64
	switch from {
	case ir.DoubleKind:
		value = math.Float64frombits
	case ir.FloatKind:
		value = func(a uint64) float64 { return float64(float(a)) }
	default:
		return nil
	}
	m, cut := maskAt(bits, 0), uint8(64-bits)
	if signed {
		return func(a, _, _ uint64) (uint64, bool) {
			f := value(a)
			if !(f >= -1<<63 && f < 1<<63) {
				return 0, false
			}
			v := int64(f)
			return uint64(v) & m, extended(uint64(v), cut) == v
		}
	}
	return func(a, _, _ uint64) (uint64, bool) {
		f := math.Trunc(value(a)) // numbers above -1 truncate to -0, which is 0
		if !(f >= 0 && f < 1<<64) {
			return 0, false
		}
		v := uint64(f)
		return v, v&^m == 0
	}
}
