// Package handover hands the frames of a virtual machine that a view has read to the VM's own interpreter (package vmproto), and says what came of it.
//
// Its main type is [Stack], the frames that are handed over.
//
// # Security
//
// What the interpreter says is held against the protocol before it comes here, and is text and numbers. Nothing is written to the target.
package handover
