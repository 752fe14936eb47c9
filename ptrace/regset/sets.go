// Package regset lists the register sets that the kernel provides for a thread, the notes of a core that contain registers, and the place of each
// register in them. Captures, sessions and cores use these tables.
//
// Its main types are [Set] and [Note]; the tables are [Sets] and [Notes].
//
// # Security
//
// The package reads nothing. Callers that use the tables must check that the data is as long as the tables require.
package regset

import (
	"debug/elf"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
)

// Set is a set of registers that one ptrace(2) request reads (PTRACE_GETREGSET). A core contains it as a note.
type Set struct {
	Owner string
	Kind  elf.NType
	Room  int // maximum size in bytes
}

// Types of sets and notes, as defined in linux/elf.h.
const (
	X86XState     = 0x202 // NT_X86_XSTATE
	X86Layout     = 0x205 // NT_X86_XSAVE_LAYOUT
	ARMTLS        = 0x401 // NT_ARM_TLS
	ARMSystemCall = 0x404 // NT_ARM_SYSTEM_CALL
	ARMSVE        = 0x405 // NT_ARM_SVE
	armPACMask    = 0x406 // NT_ARM_PAC_MASK
)

// sveRoom is the size of the largest NT_ARM_SVE, with vectors of 2048 bits: struct user_sve_header, z0 to z31, p0 to p15, ffr, fpsr, fpcr.
const sveRoom = 9 << 10

// VectorLength returns the length in bytes of a thread's SVE vectors, from the beginning of NT_ARM_SVE: struct user_sve_header of asm/ptrace.h. It
// returns 0 if SVE does not allow the length.
func VectorLength(b []byte) uint64 {
	const at, unit, most = 8, 16, 256
	if len(b) < at+2 {
		return 0
	}
	n := uint64(b[at]) | uint64(b[at+1])<<8
	if n%unit != 0 || n > most {
		return 0
	}
	return n
}

// xsaveRoom is an upper bound of the size of an XSAVE area. With AMX an area has 11 KiB.
const xsaveRoom = 16 << 10

// Sets holds the register sets that are read from a process's threads. The first is the set of general registers, the second that of vector
// registers. Some kernels and processors provide only some of the sets, but always the first.
var Sets = map[*machine.Arch][]Set{
	machine.AMD64: { // struct user_regs_struct, an XSAVE area in its standard form
		{elfcore.OwnerCore, elf.NT_PRSTATUS, 27 * 8},
		{elfcore.OwnerLinux, X86XState, xsaveRoom},
	},
	machine.ARM64: { // struct user_pt_regs, struct user_fpsimd_state, tpidr_el0 and tpidr2_el0, an int, struct user_pac_mask
		{elfcore.OwnerCore, elf.NT_PRSTATUS, 34 * 8},
		{elfcore.OwnerCore, elf.NT_FPREGSET, 528},
		{elfcore.OwnerLinux, ARMTLS, 16},
		{elfcore.OwnerLinux, ARMSystemCall, 4},
		{elfcore.OwnerLinux, armPACMask, 16},
		{elfcore.OwnerLinux, ARMSVE, sveRoom},
	},
}

// Others returns the sets of an architecture, without the general registers. name is Go's name of the architecture. If processes of the architecture
// are not supported, Others returns none.
func Others(name string) []Set {
	arch, _ := machine.ByName(name)
	if sets := Sets[arch]; len(sets) > 0 {
		return sets[1:]
	}
	return nil
}
