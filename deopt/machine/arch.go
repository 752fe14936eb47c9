// Package machine is the leaf that every other package knows: addresses,
// registers and their values, memory, and architectures written as tables.
//
// Its main type is [Arch]: what DWARF calls each register, how wide it is and
// whether a callee keeps it. A new architecture is a new table, not new code.
//
// # Security
//
// Nothing here reads a target. [Memory] and [Target] are the interfaces through
// which the bytes of a target come; they are hostile, and every reader of them
// bounds what it does with them.
package machine

import (
	"encoding/binary"
	"fmt"
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
	DWARF     DWARFReg
	Name      string
	Size      int  // bytes, at its widest
	Preserved bool // a callee gives all of it back as it was (callee-saved in the C convention)
	Class     Class
}

// Class says what a register is for.
type Class uint8

// The classes of registers.
const (
	General Class = iota // integers and addresses
	Vector               // floating-point numbers and vectors
	Flags                // conditions, masks and predicates
	Special              // what no value of a program is kept in, such as a program counter
)

// Arch describes an architecture as data.
type Arch struct {
	Name    string // as Go spells it: amd64
	Title   string // as people say it: x86-64
	Pointer int    // size of an address in bytes
	Order   binary.ByteOrder

	SP DWARFReg // the stack pointer
	FP DWARFReg // the frame pointer, where code keeps one
	PC DWARFReg // the column of an unwind table that holds the return address

	table map[DWARFReg]RegisterInfo
	order []DWARFReg
	parts map[part]string
}

func newArch(a Arch, rows []RegisterInfo, aliases ...alias) *Arch {
	a.table, a.parts = make(map[DWARFReg]RegisterInfo, len(rows)), map[part]string{}
	for _, r := range rows {
		a.table[r.DWARF] = r
		a.order = append(a.order, r.DWARF)
	}
	for _, al := range aliases {
		a.name(al)
	}
	return &a
}

// Register returns the row of r, and false where the architecture has none.
func (a *Arch) Register(r DWARFReg) (RegisterInfo, bool) {
	info, ok := a.table[r]
	return info, ok
}

// RegisterName returns the name of r, or "dwarf register N" where it has none.
func (a *Arch) RegisterName(r DWARFReg) string {
	if info, ok := a.table[r]; ok {
		return info.Name
	}
	return fmt.Sprintf("dwarf register %d", r)
}

// Registers lists the numbers of all registers in the table's order.
func (a *Arch) Registers() []DWARFReg { return a.order }

// Preserved says whether a callee gives r back as it was.
func (a *Arch) Preserved(r DWARFReg) bool { return a.table[r].Preserved }

// Uint reads an address-sized or smaller unsigned integer in the byte order
// of the architecture. Of more than eight bytes the low eight are taken.
func (a *Arch) Uint(b []byte) uint64 {
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
