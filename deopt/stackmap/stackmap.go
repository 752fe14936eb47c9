// Package stackmap reads and writes the stack maps of LLVM: the section .llvm_stackmaps, as defined in "Stack maps and patch points in LLVM"
// (llvm.org/docs/StackMaps.html, "Stack Map Format"), in all its versions and in the layouts of ykllvm (see [Dialect]).
//
// Its main type is [Map], one blob of the section. A Map is a view: its records stay in the bytes that it was parsed from and are decoded on demand,
// so those bytes must not change while it is in use. An [Index] finds the records of an address. The package does not depend on processes: it takes
// addresses from the bytes.
//
// # Security
//
// A section is hostile. Every count is checked against the remaining bytes before anything is allocated or walked, every error has an offset, and
// determining the layout reads each byte a bounded number of times.
package stackmap

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/machine"
)

// RecordID is the id that the code's author gave a site. It need not be unique: inlining and code duplication repeat it.
type RecordID uint64

// Kind is the kind of a location.
type Kind uint8

// The kinds of location, with the format's own numbers.
const (
	Register      Kind = 1 // the value is in the register, from bit Offset on
	Direct        Kind = 2 // the value is the address register + Offset, of a stack object
	Indirect      Kind = 3 // the value is in memory at register + Offset
	Constant      Kind = 4 // the value is Offset, sign-extended
	ConstantIndex Kind = 5 // the value is entry Offset of the constant table
)

var kindNames = [...]string{1: "Register", 2: "Direct", 3: "Indirect", 4: "Constant", 5: "ConstantIndex"}

// String returns the format's own name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Location describes where one recorded value is.
type Location struct {
	Kind   Kind
	Size   uint16 // bytes; 8 for every constant, whatever its type was
	Reg    machine.DWARFReg
	Offset int32 // meaning depends on Kind
}

// LiveOut is a register that is live after the site.
type LiveOut struct {
	Reg  machine.DWARFReg
	Size uint8 // bytes
}

// Record is one stack map record.
type Record struct {
	ID        RecordID
	Offset    uint32     // offset of the site from the start of its function; the kind of the site determines at which instruction that is
	Flags     uint16     // reserved by the format
	Locations []Location // nil for none
	LiveOuts  []LiveOut  // nil for none

	// Vars holds the number of Locations of each live variable, in order. It is nil except in the yk layouts.
	Vars []int
	// Extra holds the extra locations of each of Locations: more places that hold the same value. A non-negative number is a register's DWARF number;
	// a negative one is a slot's offset from the frame pointer (ykjit/yk, yksmp/src/lib.rs at 9ce25bcf, Location). It is nil except in layout Yk.
	Extra [][]int16

	Pos int64 // position of the record in the section; the writer ignores it
}

// Clone returns a deep copy.
func (r *Record) Clone() *Record {
	c := *r
	c.Locations, c.LiveOuts, c.Vars = slices.Clone(r.Locations), slices.Clone(r.LiveOuts), slices.Clone(r.Vars)
	c.Extra = slices.Clone(r.Extra)
	for i := range c.Extra {
		c.Extra[i] = slices.Clone(c.Extra[i])
	}
	return &c
}

// DynamicStack is the stack size of a function whose frame has no fixed size.
const DynamicStack = ^uint64(0)

// Function is one function of a map. [Map.Records] returns its records.
type Function struct {
	Addr      machine.Addr
	StackSize uint64 // bytes, or DynamicStack

	row     uint32 // row in the blob's table; not changed by deletions from Map.Functions
	records uint32
}

// Len returns the number of records of f. It is 0 in a map of layout V1 with several functions: see [Map.Unattributed].
func (f *Function) Len() int { return int(f.records) }

// Prologue lists the registers that a function of layout Yk saved on entry.
type Prologue struct {
	HasFramePointer bool
	Saved           []SavedRegister
}

// SavedRegister is a callee-saved register, and where the prologue saved it.
type SavedRegister struct {
	Reg machine.DWARFReg
	// Offset is the number of a spill slot, as ykllvm writes it. Multiplied by the size of a register it is a distance in bytes (ykjit/yk,
	// yksmp/src/lib.rs at 9ce25bcf, PrologueInfo).
	Offset int32
}

// Map is one blob of the section.
type Map struct {
	Version   int     // version in the header
	Dialect   Dialect // its layout
	Offset    int64   // offset of the blob in the section
	Size      int64   // size of the blob, without the padding after it
	Functions []Function

	data      []byte // the blob
	big       bool
	layout    *layout
	constants int
	loose     int      // number of unattributed records
	records   int      // offset of the first record
	first     []uint32 // first record of each row of the function table: its offset in units of 8 bytes
	tail      int      // offset of the prologue table
	prologues []uint32 // prologue of each row: its offset from tail in units of 2 bytes
}

// Len returns the number of records, including the unattributed ones.
func (m *Map) Len() int {
	n := m.loose
	for i := range m.Functions {
		n += m.Functions[i].Len()
	}
	return n
}

// Unattributed returns the number of records whose function is unknown. Layout V1 has no record counts, so in a blob with several functions all
// records are unattributed. The functions of such a blob have no records, no [Index] contains the records, and Records(nil) yields them.
func (m *Map) Unattributed() int { return m.loose }

// NumConstants returns the size of the constant table.
func (m *Map) NumConstants() int { return m.constants }

// ConstantAt returns entry i of the constant table. It panics if there is no such entry.
func (m *Map) ConstantAt(i int) uint64 {
	if i < 0 || i >= m.constants {
		panic(fmt.Sprintf("stackmap: constant index %d is out of range; the table has %d entries", i, m.constants))
	}
	return u64(m.data, headerSize+len(m.first)*m.layout.functionSize+i*constantSize, m.big)
}

// Constant returns the 64-bit value of a Constant or ConstantIndex location, or an error if the index is outside the table.
func (m *Map) Constant(l Location) (uint64, error) {
	switch {
	case l.Kind == Constant:
		return uint64(int64(l.Offset)), nil
	case l.Kind != ConstantIndex:
		return 0, fmt.Errorf("%v is not a constant", l.Kind)
	case l.Offset < 0 || int(l.Offset) >= m.constants:
		return 0, fmt.Errorf("constant index %d is out of range; the table has %d entries", l.Offset, m.constants)
	}
	return m.ConstantAt(int(l.Offset)), nil
}
