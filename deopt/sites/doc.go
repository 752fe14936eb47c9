// Package sites matches the records of stack maps with the calls of IR modules that they were made from: which sites a record may be, what
// these agree on, and which location is which operand's.
//
// Its main type is [Modules], the modules that a user gave; [Modules.OfRecord] finds the sites of a record. [Align] says which operands LLVM
// dropped, and [MismatchError] that a module cannot be what was compiled.
//
// # Security
//
// Stack maps and code come from the target and are hostile: what is compared of a function is bounded (see [MaxPairs] and its kin).
// Modules come from the user and are held against the target before they name anything.
package sites
