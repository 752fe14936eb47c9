package cfi

import (
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
)

// Segments and sections of Mach-O images that hold compact unwind.
const (
	compactUnwind = "__LD,__compact_unwind" // in an unlinked object
	unwindInfo    = "__TEXT,__unwind_info"  // in a linked image
)

// Compact is the compact unwind information of one Mach-O image. It describes the frame of each function after its prologue in 32 bits. The encoding
// is that of mach-o/compact_unwind_encoding.h, in Apple's and LLVM's libunwind. Any number of goroutines may use it.
//
// A function without an entry may have an FDE in __eh_frame. For x86-64, LLVM omits functions without a frame, and linkers then refer to the FDE.
type Compact struct {
	arch *machine.Arch
	rows []CompactEntry // for an object: entries by Start, without overlaps
	info *infoTable     // for a linked image; otherwise nil
}

// CompactEntry is the compact unwind encoding of one code range. In an object the range is a function. Linkers merge adjacent functions with the same
// encoding into one range, which includes the padding between functions.
type CompactEntry struct {
	machine.Range
	Encoding uint32
	Section  string // section of the encoding
	Offset   int64  // offset of the encoding in the section

	arch *machine.Arch
}

// Bits that the encodings of all architectures share.
const (
	compactNotStart  = 0x80000000 // the range does not start at the start of a function
	compactOther     = 0x70000000 // for exceptions: the personality, and a bit for the exception table
	compactMode      = 0x0f000000
	compactFDEOffset = 0x00ffffff // offset in __eh_frame if the mode is DWARF
)

// checkCompactArch returns an error for an unsupported architecture.
func checkCompactArch(arch *machine.Arch) error {
	if arch != machine.AMD64 && arch != machine.ARM64 {
		title := "an unknown architecture"
		if arch != nil {
			title = arch.Title
		}
		return fmt.Errorf("unwind: compact unwind is not supported for %s", title)
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

// AtCalls returns the row for every call in the code of e, after its prologue and before its epilogue. Compact unwind describes only these
// places. So the row is right for a return address. For frame 0 and for a frame that a signal interrupted, the row may be wrong: use it only if
// CFI or the code shows that pc is between prologue and epilogue.
//
// On arm64 the row of a function without a frame has no rule for the return address, like its CFI: the address is still in x30, so such a function
// calls nothing.
//
// On x86-64 the prologue contains the size of a frame of more than 2040 bytes without frame pointer; memory is read only for that. LLVM's encoding is
// wrong if the prologue calls __chkstk_darwin. AtCalls then returns an error, because it does not find the size.
//
// AtCalls returns [ErrNoFDE] if the encoding describes nothing, and [ErrInFDE] if it refers to __eh_frame. It returns a [*FormatError] for undefined
// bits, and for code that cannot be read or does not match the encoding.
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

// ErrInFDE reports that compact unwind refers to an FDE for the rules of a function; [CompactEntry.FDE] finds it.
var ErrInFDE = errors.New("compact unwind refers to __eh_frame")

// FDE returns the FDE with the rules of e. t is the table of the __eh_frame of the same image. FDE returns the errors of [Table.Find], and a
// [*FormatError] if the encoding refers to no FDE or to that of other code.
func (e *CompactEntry) FDE(t *Table) (*FDE, error) {
	if !e.inFDE() {
		return nil, e.errorf("encoding %#08x does not refer to __eh_frame", e.Encoding)
	}
	if t == nil {
		return nil, e.errorf("encoding %#08x: the image has no __eh_frame", e.Encoding)
	}
	offset := int64(e.Encoding & compactFDEOffset)
	if offset == 0 {
		// The offset is 0 in an object, or if it needs more than 24 bits. It is never the offset of an FDE, because an FDE follows its CIE.
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

// inFDE reports whether the mode refers to an FDE.
func (e *CompactEntry) inFDE() bool {
	if e.arch == machine.ARM64 {
		return e.Encoding&compactMode == arm64DWARF
	}
	return e.Encoding&compactMode == amd64DWARF
}

// errorf returns an error about the encoding.
func (e *CompactEntry) errorf(format string, args ...any) error {
	return &FormatError{e.Section, e.Offset, fmt.Errorf(format, args...)}
}

// only returns an error if bits are set that are undefined in the mode of e.
func (e *CompactEntry) only(bits uint32) error {
	const all = compactNotStart | compactOther | compactMode
	if extra := e.Encoding &^ (all | bits); extra != 0 {
		return e.errorf("encoding %#08x: bits %#x are undefined in its mode", e.Encoding, extra)
	}
	return nil
}

// saved sets the rule that reg is saved at offset from the CFA.
func (r *Row) saved(reg machine.DWARFReg, offset int64) {
	r.columns.set(reg, RegisterRule{Kind: RuleOffset, Offset: offset})
}
