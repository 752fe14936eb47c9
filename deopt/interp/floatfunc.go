package interp

import (
	"math"
	"slices"

	"example.com/reframe/deopt/interp/internal/libm"
)

// floatFunc is a function of doubles in the C library. Most functions of <math.h> are computed by package libm, which rounds correctly; the
// documentation of libm gives how often glibc differs in the last place. The other functions are Go's. Only exact functions of Go are used, because
// its approximations differ between processors.
type floatFunc struct {
	args int
	f    func(v []float64) float64
}

func one(f func(float64) float64) floatFunc {
	return floatFunc{1, func(v []float64) float64 {
		if r := f(v[0]); !math.IsNaN(r) {
			return r
		}
		return nanOf(v...)
	}}
}

func two(f func(a, b float64) float64) floatFunc {
	return floatFunc{2, func(v []float64) float64 {
		if r := f(v[0], v[1]); !math.IsNaN(r) {
			return r
		}
		return nanOf(v...)
	}}
}

// correct returns a correctly rounded function. For arguments without a result, it returns the processor's default NaN, which is negative (see
// nan.go), because glibc computes 0/0 or infinity minus infinity there.
func correct(x libm.Func) floatFunc {
	return floatFunc{x.Args, func(v []float64) float64 {
		r := x.Float64(v...)
		if math.IsNaN(r) && !slices.ContainsFunc(v, math.IsNaN) {
			return nanOf()
		}
		return r
	}}
}

// constantNaN is like correct, for functions that return a constant, positive NaN in glibc (2.36, w_log10_compat.c and k_standard.c).
func constantNaN(x libm.Func) floatFunc {
	return floatFunc{x.Args, func(v []float64) float64 { return x.Float64(v...) }}
}

// minNum and maxNum return the other operand if one is a NaN.
func minNum(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	if math.IsNaN(b) {
		return a
	}
	return math.Min(a, b)
}

func maxNum(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	if math.IsNaN(b) {
		return a
	}
	return math.Max(a, b)
}
