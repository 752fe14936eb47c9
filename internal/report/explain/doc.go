// Package explain explains a rebuilt frame: how the stack was unwound to it, which record it has and why no other record near it fits, from which
// bytes its values were read, and where it resumes. It explains code addresses, too. It explains places in the code, too.
//
// Its main type is [Explanation], plain data that [Explain] makes while the target can be read.
//
// # Security
//
// It trusts what made the view, and reads code and memory of the target through the same packages, within bounds of its own.
package explain
