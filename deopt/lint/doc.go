// Package lint says of IR modules, before anything runs, which values LLVM is going to lose or to confuse in their stack maps, and where a
// layout does not fit.
//
// Its main type is [Report], which [Lint] makes; doc/verbs.md says more of each [Rule].
//
// # Security
//
// Modules and layouts come from the user; names in findings are bounded (see [MaxNames]).
package lint
