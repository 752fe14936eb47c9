// Package lint finds the values that LLVM will lose or confuse in the stack maps of IR modules, and mismatches between modules and layouts. It works
// on files alone.
//
// Its main type is [Report], which [Lint] makes; doc/user/verbs.md explains each [Rule].
//
// # Security
//
// Modules and layouts come from the user. The number of names in a finding is bounded (see [MaxNames]).
package lint
