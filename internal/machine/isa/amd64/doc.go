// Package amd64 decodes x86-64 machine code, one instruction at a time: the length of an instruction, its operation, the registers that it writes, and
// whether a call ends at an address.
//
// Its main function is [Decode]. [Length] decodes lengths. The operation comes from golang.org/x/arch/x86/x86asm and counts only if x86asm finds the same
// length.
//
// # Security
//
// Code is hostile. The package reads only the slice that it is given and allocates nothing for it. Unknown bytes have length 0 and no operation. x86asm
// runs under a recover.
package amd64
