// Package handover passes the frames of a virtual machine to the VM's own interpreter (package vmproto), and reports the result.
//
// Its main type is [Stack], the frames that are handed over.
//
// # Security
//
// Package vmproto checks the interpreter's messages against the protocol before they come here, and they are text and numbers. Nothing is written to
// the target.
package handover
