// Package deopt makes abstract frames of a target: it unwinds each thread, finds
// the stack map record that matches each program counter, reads every recorded
// value, and names and types the values by the IR module or a layout file.
//
// Its main type is [View], all frames of one moment; [View.Run] lets the reference
// interpreter carry on from one of them. [Trace] makes the frame of each exit of a running process
// as it happens.
//
// # Security
//
// Everything that comes from the target is hostile and is read through packages
// that bound what they do. IR modules and layout files come from the user; they are
// held against the target before they name anything, and one that does not fit
// is refused.
package deopt
