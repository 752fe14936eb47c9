// Package libm has the functions of C's <math.h> (C17 7.12) that IEEE 754 does not
// require to be rounded correctly, rounded correctly: to nearest, ties to even,
// in any format. C libraries differ from each other in the last place of these,
// and glibc differs from itself between processors with FMA and without; the
// right result is the one that most of them give for most arguments.
//
// Its main type is [Func]. Functions are evaluated in fixed point with a bound on
// the error, and again with more bits where both ends of the bound do not
// round to the same number (Ziv, "Fast evaluation of elementary mathematical
// functions with correctly rounded last bit", 1991).
//
// # Security
//
// Arguments may be anything. The work is bounded by the format's exponents, which
// the reduction of a large angle needs as many bits of pi for.
package libm
