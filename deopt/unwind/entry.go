package unwind

import (
	"errors"
	"fmt"
	"strings"

	"reframe/deopt/machine"
)

// cie is a common information entry (DWARF 5 §6.4.1).
type cie struct {
	codeAlign    uint64
	dataAlign    int64
	returnColumn machine.DWARFReg
	encoding     uint8 // of the addresses in its FDEs
	augmented    bool  // its FDEs have augmentation data, with its length
	signal       bool  // its FDEs are those of signal trampolines
	initial      cursor
}

// FDE is a frame description entry: the unwind rules of one range of code
// (DWARF 5 §6.4.1).
type FDE struct {
	Start, End machine.Addr // the code that it covers; End is the first address past it
	Signal     bool         // it is the trampoline that the kernel makes signal handlers return to
	Offset     int64        // in .eh_frame

	cie     *cie
	program cursor
	bases   bases
}

// header is the start of an entry: its length and the field that tells a CIE
// (zero) from an FDE (how far before that field its CIE starts). The field has
// four bytes in both formats (Linux Standard Base, Core 5.0 §10.6.1).
type header struct {
	at   int64 // offset of the entry
	id   uint32
	idAt int64 // offset of the field
	end  int64 // offset of the next entry
}

// longestHeader is what the header of an entry in the 64-bit format takes.
const longestHeader = 4 + 8 + 4

var errTerminator = errors.New("the zero terminator where an entry should be")

// headerOf reads the header of the entry that starts at c, in a section of size bytes.
func headerOf(c *cursor, size int64) (header, error) {
	h := header{at: c.offset + int64(c.pos)}
	length := uint64(c.u32())
	switch {
	case c.err == nil && length == 0:
		return h, &FormatError{c.section, h.at, errTerminator}
	case length == 0xffffffff:
		length = c.u64()
	case length >= 0xfffffff0:
		c.failf("reserved length %#x", length)
	}
	h.idAt = c.offset + int64(c.pos)
	if c.err == nil {
		switch {
		case length > maxEntry:
			c.failf("an entry of %d bytes; the limit is %d", length, maxEntry)
		case int64(length) > size-h.idAt:
			c.failf("an entry of %d bytes where %d are left", length, size-h.idAt)
		case length < 4:
			c.failf("an entry of %d bytes", length)
		}
	}
	h.end = h.idAt + int64(length)
	h.id = c.u32()
	return h, c.err
}

// cieOffset is where the CIE of the FDE h lies.
func (h header) cieOffset() int64 { return h.idAt - int64(int32(h.id)) }

// parseCIE reads a CIE from c, which holds what follows its header.
func parseCIE(c cursor, arch *machine.Arch) (*cie, error) {
	var e cie
	version := c.u8()
	if c.err == nil && version != 1 && version != 3 && version != 4 {
		c.failf("CIE version %d", version)
	}
	augmentation := c.text()
	if version == 4 {
		if size := c.u8(); c.err == nil && int(size) != arch.Pointer {
			c.failf("addresses of %d bytes in an image for %s", size, arch.Title)
		}
		if size := c.u8(); size != 0 {
			c.failf("segment selectors of %d bytes", size)
		}
	}
	e.codeAlign, e.dataAlign = c.uleb(), c.sleb()
	if version == 1 {
		e.returnColumn = machine.DWARFReg(c.u8())
	} else {
		e.returnColumn = c.register()
	}
	e.augment(&c, augmentation)
	e.initial = c.sub(uint64(len(c.data) - c.pos))
	return &e, c.err
}

// augment reads the augmentation data of a CIE. A letter that is not known
// would leave the meaning of what follows open, so it is an error.
func (e *cie) augment(c *cursor, augmentation string) {
	if augmentation == "" || c.err != nil {
		return
	}
	letters, ok := strings.CutPrefix(augmentation, "z")
	if !ok {
		c.failf("augmentation %q", augmentation)
		return
	}
	e.augmented = true
	data := c.sub(c.uleb())
	for _, letter := range letters {
		switch letter {
		case 'R':
			e.encoding = data.u8()
		case 'P':
			data.skip(data.u8())
		case 'L': // how FDEs point to their exception tables, which nobody asks for
			data.u8()
		case 'S':
			e.signal = true
		case 'B': // which key signs return addresses on aarch64; no data
		default:
			data.failf("augmentation %q", augmentation)
		}
	}
	if c.err == nil {
		c.err = data.err
	}
}

// parseFDE reads an FDE from c, which holds what follows its header.
func parseFDE(c cursor, h header, e *cie, b bases) (*FDE, error) {
	f := &FDE{Signal: e.signal, Offset: h.at, cie: e, bases: b}
	f.Start = c.pointer(e.encoding, b)
	size := c.plain(e.encoding)
	f.End = f.Start + machine.Addr(size)
	if c.err == nil && f.End < f.Start {
		c.fail(fmt.Errorf("code at %v of %#x bytes", f.Start, size))
	}
	if e.augmented {
		c.bytes(c.uleb())
	}
	f.program = c.sub(uint64(len(c.data) - c.pos))
	return f, c.err
}
