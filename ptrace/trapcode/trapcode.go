// Package trapcode holds the machine code of the SIGTRAP handler that a process has while breakpoints are in its code.
//
// Its main type is [Handler]. While the tracer lives, it intercepts every SIGTRAP by ptrace(2), and the handler never runs. If the tracer is killed,
// the kernel delivers the SIGTRAP of a breakpoint to the process; the default action would end it. The handler moves the thread back to the
// breakpoint and waits until another process has restored the code. If none does, the handler restores the code itself, through /proc/self/mem. For
// any other SIGTRAP it does the same as the default action.
//
// testdata holds the source in assembly language. The handler finds the breakpoints in a table after its code: a word with the number of slots, and
// the slots of [SlotSize] bytes each. A slot holds the address, the code under the breakpoint, and a byte: [Planted] while the breakpoint is there,
// and [Restored] after the code was restored. The word with the number takes the place of slot 0.
//
// # Security
//
// The process may overwrite its table, but can only harm itself by that.
package trapcode

import (
	"bytes"
	"encoding/binary"
)

// Handler is the handler for one architecture.
type Handler struct {
	code    []byte
	syscall uint64 // the offset of the restorer's system call in code
}

// Offsets and sizes in the mapping of a handler.
const (
	Table    = 4096
	SlotSize = 16
	SlotCode = 8
	SlotUsed = 12
	restorer = 32 // distance to the end of the code
)

// Values of the byte SlotUsed of a slot in use.
const (
	Planted  = 1
	Restored = 2
)

// Slots is the number of slots of a table. Breakpoints beyond it are not in the table.
const Slots = 1 << 15

// Size is the size of the mapping.
const Size = Table + (1+Slots)*SlotSize

// For returns the handler for an architecture, given by Go's name.
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

// Syscall returns the address of a system call instruction with a breakpoint instruction after it, in a handler at base.
func (h Handler) Syscall(base uint64) uint64 { return base + h.syscall }

// Default and Own return the addresses of two actions for rt_sigaction(2): the default action, and the action of a handler at base.
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
	return binary.LittleEndian.AppendUint64(b, ^uint64(0)) // mask: block all signals
}
