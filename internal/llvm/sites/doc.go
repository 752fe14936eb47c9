// Package sites matches the records of stack maps with the calls in IR modules that produced them. It finds the possible sites of a record, the properties
// that they share, and the operand of each location.
//
// Its main type is [Modules], the modules that a user gave; [Modules.OfRecord] finds the sites of a record. [Align] finds the operands that LLVM dropped.
// [MismatchError] reports that the target was not compiled from a module.
//
// # Security
//
// Stack maps and code come from the target and are hostile. The work to compare a function is limited (see [MaxPairs] and related constants). Modules come
// from the user, and are checked against the target before their names are used.
package sites
