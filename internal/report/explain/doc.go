// Package explain explains a rebuilt frame: how the stack was unwound to it, which record it has and why no other record near it fits, from which
// bytes its values were read, and where it resumes. It also explains code addresses and records without a frame.
//
// Its main type is [Explanation], plain data that [Explain] makes while the target can be read.
//
// # Security
//
// The view is trusted. Code and memory of the target are not: the package reads them through the packages that built the view, within its own bounds.
package explain
