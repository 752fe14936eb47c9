// Package machine defines addresses, registers and their values, memory, and architectures as tables. Every other package uses it. It imports none of
// the other packages.
//
// Its main type is [Arch]: the DWARF number of each register, its width and whether it is callee-saved. A new architecture is a new table, not new
// code.
//
// # Security
//
// This package does not read targets. [Memory] and [Target] are the interfaces through which the bytes of a target come; they are hostile, and
// every reader of them bounds what it does with them.
package machine

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Addr is an address in the target.
type Addr uint64

// String prints the address in hexadecimal, as gdb does.
func (a Addr) String() string { return fmt.Sprintf("%#x", uint64(a)) }

// DWARFReg is a register's number in the DWARF numbering of its architecture
// (the comment of each [Arch] names the document).
type DWARFReg uint16

// RegisterInfo is one row of an architecture's table.
type RegisterInfo struct {
	DWARF DWARFReg
	Name  string
	Size  int // bytes, at its widest
	Kept  int // bytes, from its first, that are callee-saved in the C convention
	Class Class
}

// Class is the purpose of a register.
type Class uint8

// The classes of registers.
const (
	General Class = iota // integers and addresses
	Vector               // floating-point numbers and vectors
	Flags                // conditions, masks and predicates
	Special              // registers that never hold a program's values, such as a program counter
)

// Arch describes an architecture as data.
type Arch struct {
	Name    string // as Go spells it: amd64
	Title   string // as people say it: x86-64
	Pointer int    // size of an address in bytes
	Order   binary.ByteOrder
	// Align is the alignment of instructions in bytes, and Fixed means that all of them have that length; 0 if unknown.
	Align int
	Fixed bool

	SP DWARFReg // the stack pointer
	FP DWARFReg // the frame pointer, where code keeps one
	PC DWARFReg // the program counter; noNumber where DWARF has none for it
	// Link is the register in which a call leaves the return address, which a function
	// that calls nothing need not save. It is PC itself where a call pushes the address.
	Link DWARFReg

	// CallerSP is the value of the stack pointer just before the call, as the distance from the CFA: 0 unless the ABI puts the CFA past an area
	// that the caller leaves to its callees.
	CallerSP int64
	// Vector counts the low bytes of a vector register that unwind information saves. The register may have more. 0 if unknown.
	Vector int
	// Calls are the instructions that call, if their bits identify them.
	Calls Calls
	// Constant are registers that are the same in all frames of a thread, as the length of vectors is.
	Constant []DWARFReg
	// Unread maps registers to the reason why a value that a compiler's record puts there cannot be read from them.
	Unread map[DWARFReg]string
	// Single returns the float that a float register holds in another form than its low bytes; nil if the architecture has no such registers. It
	// takes the register and all of its bytes, and returns four; ok is false for a register of another kind.
	Single func(reg DWARFReg, raw []byte) (b []byte, ok bool)
	// Code is the mask of the bits of a code address that are the address, if pointer authentication signs the others; 0 for all.
	Code uint64
	// Chain describes how code that keeps a frame pointer, or a back chain, links its frames; the zero value if it does not.
	Chain Chain
	// Trampolines lists the code that signal handlers return to.
	Trampolines []Trampoline

	table []RegisterInfo // by number; entries without a name are unused
	order []DWARFReg
	parts func() map[part]string // made when a name is needed: most runs need those of no architecture
	plan  plan
}

// noNumber is the program counter's number where DWARF gives it none. No table has it.
const noNumber DWARFReg = 0xffff

// Chain describes where the frame of a function has the link to its caller's. Offsets are in bytes from the address in Base.
type Chain struct {
	Base DWARFReg // the frame pointer, or the stack pointer for a back chain
	// Linked is the place where the caller's value of Base was saved.
	Linked int64
	// Return is the place where the return address was saved; for a back chain, as the distance from the CFA.
	Return int64
	// CFA is the CFA as the distance from Base. The record gives it unless NoCFA is set; for a back chain it is the caller's value of Base.
	CFA   int64
	NoCFA bool
}

// Exists reports whether frames are linked at all.
func (c Chain) Exists() bool { return c != Chain{} }

func newArch(a Arch, rows []RegisterInfo, aliases ...alias) *Arch {
	for _, r := range rows {
		a.table = append(a.table, make([]RegisterInfo, max(0, int(r.DWARF)+1-len(a.table)))...)
		a.table[r.DWARF] = r
		a.order = append(a.order, r.DWARF)
	}
	a.parts = sync.OnceValue(func() map[part]string { return a.nameParts(aliases) })
	a.plan = newPlan(&a)
	return &a
}

// Register returns the row of r, and false where the architecture has none.
func (a *Arch) Register(r DWARFReg) (RegisterInfo, bool) {
	info := a.row(r)
	return info, info.Name != ""
}

// row returns the row of r, which has no name if there is none.
func (a *Arch) row(r DWARFReg) RegisterInfo {
	if int(r) >= len(a.table) {
		return RegisterInfo{}
	}
	return a.table[r]
}

// RegisterName returns the name of r, or "dwarf register N" where it has none.
func (a *Arch) RegisterName(r DWARFReg) string {
	if name := a.row(r).Name; name != "" {
		return name
	}
	if r == a.PC {
		return "pc"
	}
	return fmt.Sprintf("dwarf register %d", r)
}

// Registers lists the numbers of all registers in the table's order.
func (a *Arch) Registers() []DWARFReg { return a.order }

// Kept returns how many bytes of r, from its first, are callee-saved.
func (a *Arch) Kept(r DWARFReg) int { return a.row(r).Kept }

// Preserved reports whether a callee gives all of r back as it was.
func (a *Arch) Preserved(r DWARFReg) bool {
	info := a.row(r)
	return info.Kept > 0 && info.Kept == info.Size
}

// Uint reads an address-sized or smaller unsigned integer in the byte order of the architecture. Of more than eight bytes it takes the low eight.
func (a *Arch) Uint(b []byte) uint64 {
	if len(b) == 8 {
		return a.Order.Uint64(b)
	}
	if len(b) > 8 {
		if a.BigEndian() {
			b = b[len(b)-8:]
		} else {
			b = b[:8]
		}
	}
	var v uint64
	for i, c := range b {
		if a.BigEndian() {
			v = v<<8 | uint64(c)
		} else {
			v |= uint64(c) << (8 * i)
		}
	}
	return v
}

// PutUint writes an unsigned integer of the size of b, at most eight bytes, in the byte
// order of the architecture: what [Arch.Uint] reads.
func (a *Arch) PutUint(b []byte, v uint64) {
	if len(b) == 8 {
		a.Order.PutUint64(b, v)
		return
	}
	for i := range b {
		if a.BigEndian() {
			b[len(b)-1-i] = byte(v)
		} else {
			b[i] = byte(v)
		}
		v >>= 8
	}
}

// BigEndian reports whether the most significant byte comes first. It is spelled once,
// because an interface compares only with its like.
func (a *Arch) BigEndian() bool { return a.Order == binary.ByteOrder(binary.BigEndian) }
