//go:build linux

package tracer

import (
	"bytes"
	"encoding/binary"
)

// handlerCode is the machine code of the SIGTRAP handler, for one architecture, that a process has while breakpoints are in its code.
//
// While the tracer runs, it intercepts every SIGTRAP by ptrace(2), and the handler never runs. If the tracer is killed, the kernel delivers the
// SIGTRAP of a breakpoint to the process; the default action would end it. The handler moves the thread back to the breakpoint and waits until
// another process has restored the code. If none does, the handler restores the code itself, through /proc/self/mem. For any other SIGTRAP it has the
// effect of the default action.
//
// testdata holds the source in assembly language. The handler finds the breakpoints in a table after its code: a word with the number of slots, and
// the slots of [slotSize] bytes each. A slot holds the address, the code under the breakpoint, and a byte: [planted] while the breakpoint is there,
// and [restored] after the code was restored. The word with the number is in the place of slot 0.
//
// The process may overwrite its table, but can thereby harm only itself.
type handlerCode struct {
	code    []byte
	syscall uint64 // offset of the restorer's system call in code
}

// Offsets and sizes in the mapping of a handler.
const (
	trapTable    = 4096
	slotSize     = 16
	slotCode     = 8
	slotUsed     = 12
	restorerSize = 32 // distance to the end of the code
)

// Values of slotUsed, the byte for the state of a slot in use.
const (
	planted  = 1
	restored = 2
)

// trapSlots is the number of slots of a table. Further breakpoints are not in the table.
const trapSlots = 1 << 15

// trapSize is the size of the mapping.
const trapSize = trapTable + (1+trapSlots)*slotSize

// trapCodeFor returns the handler for an architecture, given by Go's name.
func trapCodeFor(arch string) (h handlerCode, ok bool) {
	switch arch {
	case x86Arch:
		return handlerCode{trapCodeX86, uint64(len(trapCodeX86)) - restorerSize + 5}, true
	case armArch:
		return handlerCode{trapCodeArm, uint64(len(trapCodeArm)) - restorerSize + 4}, true
	}
	return handlerCode{}, false
}

// machineCode returns the machine code.
func (h handlerCode) machineCode() []byte { return bytes.Clone(h.code) }

// syscallAt returns the address of a system call instruction that is followed by a breakpoint instruction, in a handler at base.
func (h handlerCode) syscallAt(base uint64) uint64 { return base + h.syscall }

// defaultAction and ownAction return the addresses of two actions for rt_sigaction(2): the default action, and the action of a handler at base.
func (h handlerCode) defaultAction(base uint64) uint64 { return base + uint64(len(h.code)) }

// ownAction is documented with [handlerCode.defaultAction].
func (h handlerCode) ownAction(base uint64) uint64 { return h.defaultAction(base) + actionSize }

// actionSize is the size of the kernel's struct sigaction.
const actionSize = 32

// at returns the code and the actions of a handler at base.
func (h handlerCode) at(base uint64) []byte {
	const sigInfo, onStack, hasRestorer = 0x4, 0x08000000, 0x04000000 // SA_SIGINFO, SA_ONSTACK, SA_RESTORER
	b := append(h.machineCode(), make([]byte, actionSize)...)
	b = binary.LittleEndian.AppendUint64(b, base)
	b = binary.LittleEndian.AppendUint64(b, sigInfo|onStack|hasRestorer)
	b = binary.LittleEndian.AppendUint64(b, base+uint64(len(h.code))-restorerSize)
	return binary.LittleEndian.AppendUint64(b, ^uint64(0)) // mask: block all signals
}
