// Package explain says how a frame came to be: how the stack was unwound to it, which record it has and why the others near it are not
// its own, from which bytes its values were read, where it resumes and who says so. It explains places in the code, too.
//
// Its main type is [Explanation], plain data that [Explain] makes while the target can be read.
//
// # Security
//
// It trusts what made the view, and reads code and memory of the target through the same packages, within bounds of its own.
package explain
