package cfi

import (
	"errors"
	"fmt"

	"reframe/deopt/machine"
)

// Sections of Mach-O images that hold compact unwind, as segment and section.
const (
	compactUnwind = "__LD,__compact_unwind" // of an unlinked object
	unwindInfo    = "__TEXT,__unwind_info"  // of a linked image
)

// Compact is the compact unwind of one Mach-O image: 32 bits for each function
// that say what its frame looks like once its prologue has run. The encoding is
// that of mach-o/compact_unwind_encoding.h, in Apple's and LLVM's libunwind.
// Any number of goroutines may use it.
//
// Where it has no entry for a function, __eh_frame may: LLVM leaves out what has no
// frame, for x86-64, and linkers then refer to the FDE.
type Compact struct {
	arch *machine.Arch
	rows []CompactEntry // of an object, by Start; none overlaps another
	info *infoTable     // of a linked image; nil: rows
}

// CompactEntry is what compact unwind says of one range of code. In an object
// that is a function. Linkers make one range of neighbours that look alike, and
// count the padding behind a function to it.
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

// Find returns the entry that covers pc. Where there is none the error is
// [ErrNoFDE]; where the section is not sound enough to tell, a [*FormatError].
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

// AtCalls returns the row that holds at every call in the code of e: its prologue
// is done there and its epilogue not begun. That is all that compact unwind
// describes, so the row is right for a pc that is a return address, and may be
// wrong for frame 0 and for a frame that a signal interrupted: there CFI, or the
// code, has to say whether pc is between prologue and epilogue.
//
// On arm64 the row of a function without a frame has no rule for the return address, as its
// CFI has none: it is still in x30, so such a function calls nothing.
//
// The size of a frame of more than 2040 bytes without frame pointer is in the prologue, on x86-64; for that
// alone memory is read. LLVM's encoding is wrong where the prologue calls
// __chkstk_darwin: that is an error, since no size is where it should be.
//
// Errors are [ErrNoFDE] where the encoding says nothing, [ErrInFDE] where it refers to
// __eh_frame, and a [*FormatError] for bits that mean nothing, and for code that cannot
// be read or is not what the encoding says.
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

// ErrInFDE says that compact unwind could not describe a function: its rules
// are those of an FDE, which [CompactEntry.FDE] finds.
var ErrInFDE = errors.New("compact unwind refers to __eh_frame")

// FDE returns the FDE in t, the table of the __eh_frame of the same image, that
// holds the rules of e. The errors are those of [Table.Find], and a [*FormatError] where
// the encoding refers to none or to that of other code.
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
