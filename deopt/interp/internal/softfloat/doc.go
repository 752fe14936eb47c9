// Package softfloat computes with binary floating-point numbers of any format, exactly, and rounds once: to nearest, ties to even (IEEE 754-2019
// §4.3.1). It serves the formats for which Go has no arithmetic, and operations that must not be rounded twice. An [Environment] flushes
// subnormal numbers to zero, and selects the NaN of operations.
//
// The main type is [Number], a value that is independent of a format. [Format.Decode] converts bits to a Number, and [Format.Encode] rounds a Number
// to bits.
//
// # Security
//
// Any bits are a valid input in any format. The exponents of the largest format, fp128, bound the cost of an operation: some 33,000 bits.
package softfloat
