package cfi

import (
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
)

// Sections of Mach-O images that hold compact unwind, as segment and section.
const (
	compactUnwind = "__LD,__compact_unwind" // of an unlinked object
	unwindInfo    = "__TEXT,__unwind_info"  // of a linked image
)

// Compact is the compact unwind information of one Mach-O image: 32 bits for each function that describe its frame after its prologue. The encoding
// is that of mach-o/compact_unwind_encoding.h, in Apple's and LLVM's libunwind. Any number of goroutines may use it.
//
// A function without an entry may be described by __eh_frame: for x86-64, LLVM leaves out functions without a frame, and linkers then refer to the
// FDE.
type Compact struct {
	arch *machine.Arch
	rows []CompactEntry // of an object, by Start; none overlaps another
	info *infoTable     // of a linked image; nil: rows
}

// CompactEntry is the compact unwind encoding of one range of code. In an object, that is a function. Linkers merge adjacent functions with the
// same encoding into one range, which includes the padding after a function.
type CompactEntry struct {
	machine.Range
	Encoding uint32
	Section  string // that the encoding is in
	Offset   int64  // of the encoding in it

	arch *machine.Arch
}

// Bits that the encodings of all architectures share.
const (
	compactNotStart  = 0x80000000 // the range starts inside of a function
	compactOther     = 0x70000000 // for the language: which personality, and whether it has a table
	compactMode      = 0x0f000000
	compactFDEOffset = 0x00ffffff // in __eh_frame, where the mode is DWARF
)

// checkCompactArch refuses the architectures whose encodings are not known here.
func checkCompactArch(arch *machine.Arch) error {
	if arch != machine.AMD64 && arch != machine.ARM64 {
		title := "an unknown architecture"
		if arch != nil {
			title = arch.Title
		}
		return fmt.Errorf("unwind: no compact unwind is known for %s", title)
	}
	return nil
}

// Find returns the entry that covers pc. It returns [ErrNoFDE] if there is none, and a [*FormatError] if the section is malformed.
func (c *Compact) Find(pc machine.Addr) (*CompactEntry, error) {
	if c.info == nil {
		return c.findRow(pc)
	}
	e, err := c.info.find(pc)
	if err != nil {
		return nil, err
	}
	e.arch = c.arch
	return e, nil
}

// AtCalls returns the row that holds at every call in the code of e, after its prologue and before its epilogue. Compact unwind describes nothing
// else, so the row is right for a pc that is a return address, and may be wrong for frame 0 and for a frame that a signal interrupted: there, CFI
// or the code must show whether pc is between prologue and epilogue.
//
// On arm64 the row of a function without a frame has no rule for the return address, as its
// CFI has none: it is still in x30, so such a function calls nothing.
//
// On x86-64, the size of a frame of more than 2040 bytes without frame pointer is in the prologue; memory is read only for that. LLVM's encoding is
// wrong where the prologue calls __chkstk_darwin: AtCalls returns an error, since the size is not where it should be.
//
// Errors are [ErrNoFDE] if the encoding describes nothing, [ErrInFDE] if it refers to __eh_frame, and a [*FormatError] for undefined bits, and for
// code that cannot be read or does not match the encoding.
func (e *CompactEntry) AtCalls(memory machine.Memory) (*Row, error) {
	row := &Row{Range: machine.Range{Start: e.Start, End: e.End}, ReturnAddress: e.arch.Link}
	var err error
	if e.arch == machine.ARM64 {
		err = e.arm64(row)
	} else {
		err = e.amd64(row, memory)
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// ErrInFDE reports that compact unwind could not describe a function: its rules are those of an FDE, which [CompactEntry.FDE] finds.
var ErrInFDE = errors.New("compact unwind refers to __eh_frame")

// FDE returns the FDE in t, the table of the __eh_frame of the same image, that holds the rules of e. The errors are those of [Table.Find], and a
// [*FormatError] if the encoding refers to no FDE or to that of other code.
func (e *CompactEntry) FDE(t *Table) (*FDE, error) {
	if !e.inFDE() {
		return nil, e.errorf("encoding %#08x does not refer to __eh_frame", e.Encoding)
	}
	if t == nil {
		return nil, e.errorf("encoding %#08x: there is no __eh_frame for it", e.Encoding)
	}
	offset := int64(e.Encoding & compactFDEOffset)
	if offset == 0 {
		// In an object, and where 24 bits were too few. No FDE is at 0: its CIE is before it.
		return t.Find(e.Start)
	}
	f, err := t.fdeAt(offset)
	if err != nil {
		return nil, err
	}
	if !f.Contains(e.Start) {
		return nil, e.errorf("the FDE at offset %#x of __eh_frame is that of %v, not of %v", offset, f.Start, e.Start)
	}
	return f, nil
}

// inFDE reports whether the mode is the one that refers to an FDE.
func (e *CompactEntry) inFDE() bool {
	if e.arch == machine.ARM64 {
		return e.Encoding&compactMode == arm64DWARF
	}
	return e.Encoding&compactMode == amd64DWARF
}

// errorf is an error of the encoding.
func (e *CompactEntry) errorf(format string, args ...any) error {
	return &FormatError{e.Section, e.Offset, fmt.Errorf(format, args...)}
}

// only fails where bits are set that mean nothing in the mode of e.
func (e *CompactEntry) only(bits uint32) error {
	const all = compactNotStart | compactOther | compactMode
	if extra := e.Encoding &^ (all | bits); extra != 0 {
		return e.errorf("encoding %#08x: bits %#x mean nothing in its mode", e.Encoding, extra)
	}
	return nil
}

// saved gives reg the rule that it is at offset from the CFA.
func (r *Row) saved(reg machine.DWARFReg, offset int64) {
	r.columns.set(reg, RegisterRule{Kind: RuleOffset, Offset: offset})
}
