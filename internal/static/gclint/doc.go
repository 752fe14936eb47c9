// Package gclint checks how modules of LLVM IR treat the references of a precise garbage collector, before and after the pass rewrite-statepoints-for-gc.
//
// [Check] reports four kinds of mistakes: pointers and copies of addresses that are used after a safepoint at which they went stale; pairs of a
// gc.relocate with a wrong base; functions that are marked as leaves although they can collect; and calls that can collect without a statepoint.
//
// # Method
//
// A forward dataflow finds, at each instruction, the values whose address a collector may have changed. Each path counts, and each definition of a value
// ends its staleness. A phi is stale only by the edges on which its operand is. LLVM's own verifier (verify<safepoint-ir>) reports some correct phis.
//
// # Security
//
// Modules come from the user. [Check] refuses functions whose dataflow needs more than maxState bits.
package gclint
