package interp

import (
	"math"
	"slices"

	"example.com/reframe/deopt/interp/internal/libm"
)

// floatFunc is a function of doubles in the C library. Package libm rounds its functions of <math.h> correctly, and its documentation says how often
// glibc differs in the last place. The others are Go's, and only exact ones: Go's approximations differ from one processor to the next.
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

// correct is a function that is rounded correctly. Where it has no result, the NaN that comes out is what glibc makes by dividing zeros
// or subtracting infinities: the processor's, which is negative (see nan.go).
func correct(x libm.Func) floatFunc {
	return floatFunc{x.Args, func(v []float64) float64 {
		r := x.Float64(v...)
		if math.IsNaN(r) && !slices.ContainsFunc(v, math.IsNaN) {
			return nanOf()
		}
		return r
	}}
}

// constantNaN is correct for those whose NaN is a constant of glibc's (2.36, w_log10_compat.c and k_standard.c), which is positive.
func constantNaN(x libm.Func) floatFunc {
	return floatFunc{x.Args, func(v []float64) float64 { return x.Float64(v...) }}
}

// minNum and maxNum return the number where the other operand is a NaN.
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
