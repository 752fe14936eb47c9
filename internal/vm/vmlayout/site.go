package vmlayout

import (
	"math/big"

	"example.com/reframe/deopt/frame"
)

// Site holds the parts of a record that a layout reads: constants, but no other values.
type Site struct {
	Function string       // the function of the record
	Record   uint64       // its id
	Kind     string       // stackmap, patchpoint, statepoint, deoptimize, or unknown without a module
	Moment   frame.Moment // the state of the site at the exit: before, in or after its call; unknown before a program runs
	Operands []Operand
	Args     []Operand // the arguments of the call, if a module gives them
	Target   *Target   // immutable memory for frames(site); nil before a program runs
	Native   *Native   // for interpreter_frames(native): the native frame; nil for a record
}

// Operand is a live value of a site, or an argument of its call.
type Operand struct {
	Name     string     // as the module spells it, or ""
	Type     frame.Type // zero without a module
	Constant *big.Int   // signed; nil if it is not a constant
	Undef    bool       // the operand is undef or poison in the module
	Pair     Pair
}

// Pair is the role of an operand in the pairs that a statepoint's record lists for the garbage collector.
type Pair int

// The kinds of pair.
const (
	NotTold  Pair = iota // unknown: there is no module, or the site is not a statepoint
	Unpaired             // in no pair
	Base                 // the base of a pair
	Derived              // the derived pointer of a pair, which points into an object; the pair has the base
)
