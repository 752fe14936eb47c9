package vmlayout

import (
	"math/big"

	"reframe/deopt/frame"
)

// Site is what a layout sees of a record: no values, but where operands are constants what these are.
type Site struct {
	Function string // that the record is of
	Record   uint64 // its id
	Kind     string // stackmap, patchpoint, statepoint, deoptimize, or unknown without a module
	Operands []Operand
	Args     []Operand // of the call, where a module tells
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

// What is known of that.
const (
	NotTold  Pair = iota // there is no module, or no statepoint
	Unpaired             // the collector does not know of it
	Base                 // it is the base of a pair
	Derived              // it points into an object, whose base is the other of the pair
)
