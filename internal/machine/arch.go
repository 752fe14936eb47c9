// Package machine defines addresses, registers and their values, memory, and tables of architectures. All other packages may import it; it imports none
// of them.
//
// Its main type is [Arch]: the DWARF number of each register, its width and whether it is callee-saved. A new architecture is a new table, not new
// code.
//
// # Security
//
// This package does not read targets. [Memory] is the interface for the bytes of a target. These bytes are hostile, and each caller that reads them bounds
// its loops and allocations.
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

// TextWith implements [frame.Addressed].
func (a Addr) TextWith(spell func(uint64) string) string { return spell(uint64(a)) }

// DWARFReg is a register number in the DWARF numbering of an architecture. The comment of each [Arch] names the document that defines the numbers.
type DWARFReg uint16

// RegisterInfo is one row of an architecture's table.
type RegisterInfo struct {
	DWARF DWARFReg
	Name  string
	Size  int // bytes, at its greatest width
	Kept  int // number of its first bytes that are callee-saved in the C convention
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
	Name    string // Go's name: amd64
	Title   string // the common name: x86-64
	Pointer int    // size of an address in bytes
	Order   binary.ByteOrder
	// Align is the alignment of instructions in bytes. Fixed reports whether all instructions have that length. Align is 0 if unknown.
	Align int
	Fixed bool

	SP DWARFReg // the stack pointer
	FP DWARFReg // the frame pointer, in code that keeps one
	PC DWARFReg // the program counter; noNumber if DWARF has no number for it
	// Link is the register in which a call stores the return address; a leaf function need not save it. If calls push the address instead, Link equals PC.
	Link DWARFReg

	// CallerSP is the stack pointer just before the call, minus the CFA. It is 0 unless the ABI puts the CFA past an area that the caller reserves for
	// callees.
	CallerSP int64
	// Vector is the number of low bytes of a vector register that unwind information saves; the register may be wider. 0 if unknown.
	Vector int
	// Calls describes the call instructions, if their bits identify them.
	Calls Calls
	// Constant lists registers whose value is the same in all frames of a thread, such as the length of vectors.
	Constant []DWARFReg
	// Unread maps a register to the reason why a value that a stack map places in it cannot be read.
	Unread map[DWARFReg]string
	// Single converts a float register that holds a float in another form than its low bytes; nil if the architecture has none. It takes the register and
	// all of its bytes, and returns four bytes. ok is false for other registers.
	Single func(reg DWARFReg, raw []byte) (b []byte, ok bool)
	// Code masks the address bits of a code address, if pointer authentication uses the other bits for a signature. 0 means that all bits are address bits.
	Code uint64
	// Chain describes the links between frames of code with a frame pointer or a back chain. It is zero if the code does not link frames.
	Chain Chain
	// Trampolines lists the code that signal handlers return to.
	Trampolines []Trampoline

	table []RegisterInfo // indexed by number; unused entries have no name
	order []DWARFReg
	parts func() map[part]string // computed on first use: most runs need the names of one architecture at most
	plan  plan
}

// noNumber is the number of a program counter that has no DWARF number. No table contains it.
const noNumber DWARFReg = 0xffff

// Chain describes the place at which a frame stores the link to its caller's frame. Offsets are in bytes from the address in Base.
type Chain struct {
	Base DWARFReg // the frame pointer, or the stack pointer for a back chain
	// Linked is the offset at which the caller's value of Base was saved.
	Linked int64
	// Return is the offset at which the return address was saved. For a back chain it counts from the CFA.
	Return int64
	// CFA is the offset of the CFA from Base, unless NoCFA is set. For a back chain the CFA is the caller's value of Base.
	CFA   int64
	NoCFA bool
}

// Exists reports whether code of the architecture links its frames.
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

// Register returns the row of r, and false if the architecture does not have r.
func (a *Arch) Register(r DWARFReg) (RegisterInfo, bool) {
	info := a.row(r)
	return info, info.Name != ""
}

// row returns the row of r; its name is empty if r does not exist.
func (a *Arch) row(r DWARFReg) RegisterInfo {
	if int(r) >= len(a.table) {
		return RegisterInfo{}
	}
	return a.table[r]
}

// RegisterName returns the name of r, or "dwarf register N" if it has none.
func (a *Arch) RegisterName(r DWARFReg) string {
	if name := a.row(r).Name; name != "" {
		return name
	}
	if r == a.PC {
		return "pc"
	}
	return fmt.Sprintf("dwarf register %d", r)
}

// Registers returns the numbers of all registers in the table's order.
func (a *Arch) Registers() []DWARFReg { return a.order }

// Kept returns the number of bytes of r, from its first, that are callee-saved.
func (a *Arch) Kept(r DWARFReg) int { return a.row(r).Kept }

// Preserved reports whether all bytes of r are callee-saved.
func (a *Arch) Preserved(r DWARFReg) bool {
	info := a.row(r)
	return info.Kept > 0 && info.Kept == info.Size
}

// Uint decodes an unsigned integer in the byte order of the architecture. If b has more than eight bytes, it decodes the low eight.
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

// PutUint encodes v into all of b, at most eight bytes, in the byte order of the architecture. [Arch.Uint] decodes it.
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

// BigEndian reports whether the most significant byte comes first. The conversion is needed because Order can be compared only with a value of its own
// interface type.
func (a *Arch) BigEndian() bool { return a.Order == binary.ByteOrder(binary.BigEndian) }
