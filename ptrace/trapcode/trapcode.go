// Package trapcode holds the machine code of the handler of SIGTRAP that a process has while breakpoints lie in its code.
//
// Its main type is [Handler]. While the tracer lives it takes every SIGTRAP by ptrace(2), and the handler never runs. If the tracer is killed, the
// kernel delivers the SIGTRAP of a breakpoint to the process, where the default action ends it. The handler moves the thread back to the breakpoint and
// waits until another process has restored the code. If none does, it restores the code itself, by /proc/self/mem. For any other SIGTRAP it does what
// the default action does.
//
// testdata holds the source in assembly language. The handler knows the breakpoints by a table behind its code: a word with the number of slots, and the
// slots, of [SlotSize] bytes each: the address, the code under the breakpoint, and a byte that is 1 while the breakpoint lies there and [Restored] once the
// code is restored. The first slot follows the word with the number.
//
// # Security
//
// The process may overwrite its table, and can only harm itself by that.
package trapcode

import (
	"bytes"
	"encoding/binary"
)

// Handler is the handler for one architecture.
type Handler struct {
	code    []byte
	syscall uint64 // where the restorer's system call lies in it
}

// Places in the mapping of a handler.
const (
	Table    = 4096
	SlotSize = 16
	SlotCode = 8
	SlotUsed = 12
	restorer = 32 // before the end of the code
)

// Values of a slot's byte SlotUsed, besides 0.
const (
	Planted  = 1
	Restored = 2
)

// Slots is the number of slots of a table. Breakpoints beyond it are not covered.
const Slots = 1 << 15

// Size is the number of bytes of the mapping.
const Size = Table + (1+Slots)*SlotSize

// For returns the handler for an architecture of Go.
func For(arch string) (h Handler, ok bool) {
	switch arch {
	case x86Arch:
		return Handler{x86, uint64(len(x86)) - restorer + 5}, true
	case armArch:
		return Handler{arm, uint64(len(arm)) - restorer + 4}, true
	}
	return Handler{}, false
}

// Code returns the machine code.
func (h Handler) Code() []byte { return bytes.Clone(h.code) }

// Syscall returns the address of a system call instruction that a breakpoint instruction follows, in a handler at base.
func (h Handler) Syscall(base uint64) uint64 { return base + h.syscall }

// Default and Own return the addresses of two actions for rt_sigaction(2): the default one, and that of a handler at base.
func (h Handler) Default(base uint64) uint64 { return base + uint64(len(h.code)) }

// Own is documented with [Handler.Default].
func (h Handler) Own(base uint64) uint64 { return h.Default(base) + actionSize }

// actionSize is the size of the kernel's struct sigaction.
const actionSize = 32

// At returns the code and the actions of a handler at base.
func (h Handler) At(base uint64) []byte {
	const sigInfo, onStack, hasRestorer = 0x4, 0x08000000, 0x04000000 // SA_SIGINFO, SA_ONSTACK, SA_RESTORER
	b := append(h.Code(), make([]byte, actionSize)...)
	b = binary.LittleEndian.AppendUint64(b, base)
	b = binary.LittleEndian.AppendUint64(b, sigInfo|onStack|hasRestorer)
	b = binary.LittleEndian.AppendUint64(b, base+uint64(len(h.code))-restorer)
	return binary.LittleEndian.AppendUint64(b, ^uint64(0)) // all signals are blocked
}
