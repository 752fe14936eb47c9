// Package sites matches the records of stack maps with the calls in IR modules that produced them: the possible sites of a record, their common
// facts, and the operand of each location.
//
// Its main type is [Modules], the modules that a user gave; [Modules.OfRecord] finds the sites of a record. [Align] finds the operands that LLVM
// dropped, and [MismatchError] reports that a module cannot be what was compiled.
//
// # Security
//
// Stack maps and code come from the target and are hostile: the amount of a function that is compared is bounded (see [MaxPairs] and its kin).
// Modules come from the user and are checked against the target before they name anything.
package sites
