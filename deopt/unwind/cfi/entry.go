package cfi

import (
	"errors"
	"strings"

	"example.com/reframe/internal/machine"
)

// cie is a common information entry (DWARF 5 §6.4.1).
type cie struct {
	codeAlign    uint64
	dataAlign    int64
	returnColumn machine.DWARFReg
	encoding     uint8 // encoding of the addresses in its FDEs
	augmented    bool  // its FDEs have augmentation data, preceded by its length
	signal       bool  // its FDEs describe signal trampolines
	pads         bool  // its FDEs may have exception tables
	signs        bool  // return addresses may be signed, as marked by an instruction
	initial      state // state after its own instructions
}

// FDE is a frame description entry: the unwind rules of one range of code
// (DWARF 5 §6.4.1).
type FDE struct {
	machine.Range        // code range
	Signal        bool   // describes the trampoline to which the kernel makes signal handlers return
	Section       string // .eh_frame or .debug_frame
	Offset        int64  // offset in the section

	cie     *cie
	program cursor
	bases   bases
}

// Debugging reports whether the FDE is in .debug_frame, which is written for debuggers: the calling convention's defaults for omitted registers may
// not hold.
func (f *FDE) Debugging() bool { return f.Section == debugFrame }

// Pads reports whether the code may have landing pads: the FDE may have an exception table. A .debug_frame does not show that.
func (f *FDE) Pads() bool { return f.cie.pads || f.Debugging() }

// header is the start of an entry: its length, and the id field that distinguishes a CIE from an FDE.
type header struct {
	at    int64 // offset of the entry
	isCIE bool
	cie   int64 // offset of the CIE of an FDE
	idAt  int64 // offset of the id field
	end   int64 // offset of the next entry
}

// maxEntry bounds the length of one CIE or FDE. The longest in libLLVM has a few kilobytes.
const maxEntry = 1 << 20

var errTerminator = errors.New("found the zero terminator; expected an entry")

// header reads the header of the entry at c.
//
// In .debug_frame the id field has the size of an offset (4 bytes, or 8 in the 64-bit format). It is all ones in a CIE, and otherwise the offset of
// the CIE (DWARF 5 §6.4.1, §7.4). In .eh_frame it has 4 bytes in both formats. It is zero in a CIE, and otherwise the distance from the start of the
// CIE to the field (Linux Standard Base, Core 5.0 §10.6.1).
func (s *frames) header(c *cursor) (header, error) {
	h := header{at: c.offset + int64(c.pos)}
	length, wide := uint64(c.u32()), false
	switch {
	case c.err == nil && length == 0:
		h.idAt = c.offset + int64(c.pos)
		return h, &FormatError{c.section, h.at, errTerminator}
	case length == 0xffffffff:
		length, wide = c.u64(), true
	case length >= 0xfffffff0:
		c.failf("reserved length %#x", length)
	}
	h.idAt = c.offset + int64(c.pos)
	size := uint64(4)
	if wide && !s.eh {
		size = 8
	}
	if c.err == nil {
		switch {
		case length > maxEntry:
			c.failf("an entry of %d bytes; the limit is %d", length, maxEntry)
		case int64(length) > s.Size-h.idAt:
			c.failf("an entry of %d bytes, but the section has only %d left", length, s.Size-h.idAt)
		case length < size:
			c.failf("an entry of %d bytes is too short", length)
		}
	}
	h.end = h.idAt + int64(length)
	switch {
	case s.eh:
		id := c.u32()
		h.isCIE, h.cie = id == 0, h.idAt-int64(int32(id))
	case wide:
		id := c.u64()
		h.isCIE, h.cie = id == 1<<64-1, int64(id)
	default:
		id := c.u32()
		h.isCIE, h.cie = id == 1<<32-1, int64(id)
	}
	return h, c.err
}

// parseCIE reads a CIE from c, which starts after its header.
func parseCIE(c cursor, arch *machine.Arch) (*cie, error) {
	e, err := cieHead(&c, arch)
	if err != nil {
		return nil, err
	}
	return e, e.run(&c)
}

// cieHead reads a CIE up to its instructions, and leaves c there.
func cieHead(c *cursor, arch *machine.Arch) (*cie, error) {
	e := &cie{signs: arch.Code != 0}
	version := c.u8()
	if c.err == nil && version != 1 && version != 3 && version != 4 {
		c.failf("unsupported CIE version %d", version)
	}
	augmentation := c.text()
	if rest, ok := strings.CutPrefix(augmentation, "eh"); ok {
		c.u64() // written by gcc 2: the address of its exception table
		augmentation = rest
	}
	if version == 4 {
		if size := c.u8(); c.err == nil && int(size) != arch.Pointer {
			c.failf("addresses of %d bytes in an image for %s", size, arch.Title)
		}
		if size := c.u8(); size != 0 {
			c.failf("segment selectors of %d bytes are not supported", size)
		}
	}
	e.codeAlign, e.dataAlign = c.uleb(), c.sleb()
	if version == 1 {
		e.returnColumn = machine.DWARFReg(c.u8())
	} else {
		e.returnColumn = c.register()
	}
	e.augment(c, augmentation)
	return e, c.err
}

// augment reads the augmentation of a CIE: letters, and after a z their data. An unknown letter is an error, because it may change the meaning of the
// bytes after it.
func (e *cie) augment(c *cursor, augmentation string) {
	if c.err != nil {
		return
	}
	letters, augmented := strings.CutPrefix(augmentation, "z")
	e.augmented = augmented
	var data cursor
	if augmented {
		data = c.sub(c.uleb())
	}
	for _, letter := range letters {
		switch {
		case letter == 'S':
			e.signal = true
		case letter == 'B': // the key that signs return addresses on aarch64
		case letter == 'G': // the function tags its stack frame (aarch64's MTE)
		case letter == 'R' && augmented:
			e.encoding = data.u8()
		case letter == 'P' && augmented:
			data.skip(data.u8())
		case letter == 'L' && augmented: // encoding of pointers to exception tables, which are ignored
			data.u8()
			e.pads = true
		default:
			c.failf("unsupported augmentation %q", augmentation)
		}
	}
	if c.err == nil {
		c.err = data.err
	}
}

// codeRange reads the code range that an FDE covers. If the linker dropped the code but kept the FDE, the start is zero or one of the highest numbers
// (lld). The range is then empty.
func (c *cursor) codeRange(encoding uint8, b bases) (start, end machine.Addr) {
	value, base := c.encoded(encoding, b)
	size := c.plain(encoding)
	if value == 0 || value >= 1<<64-2 {
		return 0, 0
	}
	start = machine.Addr(value) + base
	end = start + machine.Addr(size)
	if end < start {
		c.failf("invalid code range: %#x bytes at %v", size, start)
	}
	return start, end
}
