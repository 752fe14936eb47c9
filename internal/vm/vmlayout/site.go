package vmlayout

import (
	"math/big"

	"example.com/reframe/deopt/frame"
)

// Site holds what a layout reads of a record: no values, but the constants among the operands.
type Site struct {
	Function string // the function of the record
	Record   uint64 // its id
	Kind     string // stackmap, patchpoint, statepoint, deoptimize, or unknown without a module
	Operands []Operand
	Args     []Operand // of the call, if a module gives them
}

// Operand is one live value of a site, or an argument of its call.
type Operand struct {
	Name     string     // as the module spells it, or ""
	Type     frame.Type // none without a module
	Constant *big.Int   // signed; nil where it is no constant
	Undef    bool       // the module has undef or poison there
	Pair     Pair
}

// Pair reports whether a statepoint's record lists an operand for the garbage collector.
type Pair int

// The kinds of pair.
const (
	NotTold  Pair = iota // there is no module, or no statepoint
	Unpaired             // the collector does not know of it
	Base                 // it is the base of a pair
	Derived              // it points into an object, whose base is the other of the pair
)
