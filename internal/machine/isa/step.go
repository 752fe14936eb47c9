package isa

import "example.com/reframe/internal/machine"

// Step describes the effect of an instruction on the control flow.
type Step struct {
	Size   int // length of the instruction in bytes; 0 if unknown
	How    StepKind
	Target machine.Addr // the target of a direct call, branch or jump
}

// StepKind classifies the effect of an instruction on the control flow.
type StepKind uint8

// These are the kinds of steps.
const (
	StepOn       StepKind = iota // continues at the next instruction
	StepCall                     // calls and returns here; Target is 0 for an indirect call
	StepBranch                   // continues at the target or at the next instruction
	StepJump                     // continues at the target
	StepComputed                 // continues at an address from a register or memory
	StepReturn                   // returns from the function
	StepTrap                     // ends execution here, such as ud2 or brk
)
