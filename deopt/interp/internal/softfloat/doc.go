// Package softfloat calculates with binary floating-point numbers of any format,
// exactly, and rounds once: to nearest, ties to even (IEEE 754-2019 §4.3.1). It
// is for the formats that Go has no arithmetic of, and for operations that
// must not be rounded twice. An [Environment] rounds in another direction or to fewer bits, and flushes subnormal numbers to zero.
//
// The main type is [Number], a value that is not bound to a format. [Format.Decode]
// makes one of bits, and [Format.Encode] rounds one into bits.
//
// # Security
//
// Any bits are a number of any format here. What an operation costs is bounded
// by the exponents of the largest format, fp128: some 33,000 bits.
package softfloat
