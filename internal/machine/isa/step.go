package isa

import "example.com/reframe/internal/machine"

// Step describes the effect of an instruction on the control flow.
type Step struct {
	Size   int // of the instruction, in bytes; 0 where it is not known
	How    StepKind
	Target machine.Addr // of what says where it leads
}

// StepKind classifies where control goes.
type StepKind uint8

// The kinds of steps.
const (
	StepOn       StepKind = iota // to the next instruction
	StepCall                     // calls, perhaps a target, and comes back
	StepBranch                   // to the target or to the next one
	StepJump                     // to the target
	StepComputed                 // to what is in a register or in memory
	StepReturn                   // out of the function
	StepTrap                     // nowhere
)
