// Package amd64 reads x86-64 machine code, one instruction at a time: how long an instruction is, what it means, which registers it writes, and
// whether a call ends at an address.
//
// Its main function is [Decode]. Lengths are decoded here, see [Length]; the meaning of an instruction comes from golang.org/x/arch/x86/x86asm, and
// is used where x86asm finds the same length.
//
// # Security
//
// Code is hostile. Nothing is read past the slice that was given, nothing is allocated for it, and bytes that are no known instruction have length 0
// and no meaning. x86asm runs under a recover.
package amd64
