package unwind

import (
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// Bounds of the startup code of a process, up to its first call.
const (
	startBytes  = 256
	startInstrs = 32
)

// startsProcess reports whether f is at the first call of the startup code of its process. That code has no caller: the kernel jumped to it, and
// the word at its stack pointer is the number of the program's arguments. In a dynamic linker the first call (_dl_start of glibc) returns the
// program's entry point. The code after that call, up to the jump to the entry point (_dl_start_user), makes one more call.
func (u *codeReader) startsProcess(f *Frame) bool {
	start := f.code.Start
	if u.Arch != machine.AMD64 || start == 0 || !f.Return || f.PC <= start || f.PC-start > startBytes {
		return false
	}
	r := newReading(u.Memory, start, start+startBytes, startInstrs)
	at := start
	for range startInstrs {
		i, ok := r.decode(at)
		if !ok || i.ends() || i.op == opBranch {
			return false
		}
		if at = i.next(); i.mayEnd() {
			return at == f.PC || f.PC > at && u.entersAt(at, start+startBytes, f.PC)
		}
	}
	return false
}

// entersAt reports whether the code at an address keeps the result of a call and finally jumps to it, without a branch. pc must be the return
// address of a second call in that code.
func (u *codeReader) entersAt(at, end, pc machine.Addr) bool {
	r := newReading(u.Memory, at, end, startInstrs)
	kept, passed := x86asm.Reg(0), false
	for range startInstrs {
		i, known, err := amd64.Read(u.Memory, at)
		flow, decoded := r.decode(at)
		if err != nil || !known || !decoded || i.Len == 0 || at >= end {
			return false
		}
		at += machine.Addr(i.Len)
		to, _ := i.Args[0].(x86asm.Reg)
		reg, size, ok := amd64.Register(to)
		switch {
		case kept == 0:
			from, _ := i.Args[1].(x86asm.Reg)
			if i.Op != x86asm.MOV || from != x86asm.RAX || !ok || size != 8 || !u.Arch.Preserved(reg) {
				return false
			}
			kept = to
		case i.Op == x86asm.JMP:
			return passed && to == kept
		case amd64.IsCall(i):
			passed = passed || at == pc
		case flow.ends(), flow.op == opBranch, flow.op == opSystem:
			return false
		default:
			if own, _, _ := amd64.Register(kept); amd64.Writes(i).Has(own) {
				return false
			}
		}
	}
	return false
}
