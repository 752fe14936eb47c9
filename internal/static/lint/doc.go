// Package lint finds the values that LLVM will lose or confuse in the stack maps of IR modules, and the places where a layout does not fit. Nothing
// needs to run.
//
// Its main type is [Report], which [Lint] makes; doc/verbs.md says more of each [Rule].
//
// # Security
//
// Modules and layouts come from the user; names in findings are bounded (see [MaxNames]).
package lint
