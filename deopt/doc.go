// Package deopt makes abstract frames of a target: it unwinds each thread, finds the stack map record for each program counter, and reads the
// recorded values. The IR module or a layout file gives the values names and types.
//
// Its main type is [View], all frames of one moment; [View.Run] lets the reference interpreter resume from one of them. Packages above this one build
// on a view: explain, commit, trace (the frame of each exit of a running process as it happens) and verify.
//
// # Security
//
// Everything that comes from the target is hostile and is read through packages that bound their work. IR modules and layout files come from the
// user; they are checked against the target before they name anything, and rejected if they do not fit.
package deopt
