// Package handover passes the frames of a virtual machine to the VM's own interpreter (package protocol), and reports the result.
//
// Its main type is [Stack], the frames that are passed.
//
// # Security
//
// Package protocol first checks the interpreter's messages against the protocol; this package gets text and numbers. The package writes nothing to
// the target.
package handover
