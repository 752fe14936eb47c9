// Package elfcore reads and writes the headers and notes of ELF cores, including cores that zstd compressed. Callers interpret the notes, and assign
// addresses to the memory in a core.
//
// Its main types are [Header] and [Note].
//
// # Security
//
// A core is not trusted. Numbers in it are checked against limits and against the size of the file before any allocation. The size of decompressed
// data is bounded relative to the size of the core.
package elfcore

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Header is the header of an ELF file (System V ABI, chapter 4). Raw holds its bytes.
type Header struct {
	Raw      [HeaderSize]byte
	Class    elf.Class
	Order    binary.ByteOrder
	Kind     elf.Type
	Phoff    uint64
	shoff    uint64
	rowSize  uint16
	programN uint16
}

// Sizes in 64-bit files, in bytes.
const (
	HeaderSize  = 64
	ProgramSize = 56
	SectionSize = 64
)

// header32 is the size of the header in 32-bit files.
const header32 = 52

// ManyPrograms means that the number of program headers does not fit into the header, and is in sh_info of section header 0: PN_XNUM of elf(5).
const ManyPrograms = 0xffff

// ErrNoELF reports that a file does not begin like an ELF file.
var ErrNoELF = errors.New("no ELF file")

// ReadHeader reads the header of an ELF file. For a 32-bit file it reads only the class and the type.
func ReadHeader(r io.ReaderAt) (*Header, error) {
	h := &Header{}
	n, _ := r.ReadAt(h.Raw[:], 0)
	b := h.Raw[:]
	if string(b[:4]) != elf.ELFMAG {
		return nil, ErrNoELF
	}
	h.Class = elf.Class(b[elf.EI_CLASS])
	if n < header32 || n < HeaderSize && h.Class != elf.ELFCLASS32 {
		return nil, errors.New("it ends inside its header")
	}
	switch elf.Data(b[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		h.Order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		h.Order = binary.BigEndian
	default:
		return nil, fmt.Errorf("its byte order is %d", b[elf.EI_DATA])
	}
	h.Kind = elf.Type(h.Order.Uint16(b[16:]))
	h.Phoff, h.shoff = h.Order.Uint64(b[32:]), h.Order.Uint64(b[40:])
	h.rowSize, h.programN = h.Order.Uint16(b[54:]), h.Order.Uint16(b[56:])
	return h, nil
}

// Programs reads at most most program headers of a 64-bit file of size bytes.
func (h *Header) Programs(r io.ReaderAt, size, most uint64) ([]elf.Prog64, error) {
	count := uint64(h.programN)
	if count == ManyPrograms {
		var first [SectionSize]byte
		if h.shoff > size {
			return nil, fmt.Errorf("section header 0 lies at %#x of %#x bytes", h.shoff, size)
		}
		if n, err := r.ReadAt(first[:], int64(h.shoff)); n < len(first) {
			return nil, fmt.Errorf("section header 0, which holds the number of segments: %w", err)
		}
		count = uint64(h.Order.Uint32(first[44:]))
	}
	switch {
	case count == 0:
		return nil, nil
	case h.rowSize != ProgramSize:
		return nil, fmt.Errorf("program headers of %d bytes", h.rowSize)
	case count > most:
		return nil, fmt.Errorf("%d program headers; at most %d are supported", count, most)
	case h.Phoff > size || count*ProgramSize > size-h.Phoff:
		return nil, fmt.Errorf("it ends inside its %d program headers", count)
	}
	b := make([]byte, count*ProgramSize)
	if n, err := r.ReadAt(b, int64(h.Phoff)); n < len(b) {
		return nil, fmt.Errorf("its program headers: %w", err)
	}
	list := make([]elf.Prog64, count)
	for i := range list {
		row := b[i*ProgramSize:]
		list[i] = elf.Prog64{
			Type: h.Order.Uint32(row), Flags: h.Order.Uint32(row[4:]), Off: h.Order.Uint64(row[8:]), Vaddr: h.Order.Uint64(row[16:]),
			Filesz: h.Order.Uint64(row[32:]), Memsz: h.Order.Uint64(row[40:]), Align: h.Order.Uint64(row[48:]),
		}
	}
	return list, nil
}

// Budget bounds the number of notes that are read, for all segments together. A thread has about six.
type Budget int

// MaxNotes is the budget for a core.
const MaxNotes Budget = 1 << 22

// Note is one note of a PT_NOTE segment.
type Note struct {
	Owner string
	Kind  elf.NType
	Desc  *io.SectionReader
	Whole *io.SectionReader // including its header
}

// maxOwner bounds the length of an owner's name. It is enough for CORE, LINUX, GNU and Delve Header.
const maxOwner = 16

// Each calls f with the notes of a segment (System V ABI, chapter 5, "Note Section"), up to the first note that does not fit into the segment or the
// file. It reports whether it read all notes.
func (budget *Budget) Each(r io.ReaderAt, size uint64, order binary.ByteOrder, p elf.Prog64, f func(Note)) bool {
	if p.Off > size {
		return p.Filesz == 0
	}
	end, align := min(p.Filesz, size-p.Off), uint64(4)
	if p.Align == 8 {
		align = 8 // only .note.gnu.property has this alignment
	}
	padded := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	var head [12 + maxOwner]byte
	for at := uint64(0); at+12 <= end; {
		if *budget--; *budget < 0 {
			return false
		}
		n, _ := r.ReadAt(head[:], int64(p.Off+at))
		if n < 12 {
			return false
		}
		nameSize, descSize := uint64(order.Uint32(head[:])), uint64(order.Uint32(head[4:]))
		desc := at + padded(12+nameSize)
		if desc+descSize > end {
			return false
		}
		owner := ""
		if nameSize > 0 && nameSize <= maxOwner && 12+int(nameSize) <= n {
			owner = strings.TrimSuffix(string(head[12:12+nameSize]), "\x00") // the owner that Delve writes has no zero byte
		}
		f(Note{owner, elf.NType(order.Uint32(head[8:])), io.NewSectionReader(r, int64(p.Off+desc), int64(descSize)), io.NewSectionReader(r, int64(p.Off+at), int64(desc+descSize-at))})
		at = padded(desc + descSize)
	}
	return end == p.Filesz
}

// Read returns the first bytes of the note's content: at least least bytes, and at most most.
func (n Note) Read(least, most int64) ([]byte, bool) {
	if n.Desc.Size() < least {
		return nil, false
	}
	b := make([]byte, min(n.Desc.Size(), most))
	got, _ := n.Desc.ReadAt(b, 0)
	return b, got == len(b)
}

// Owners of the notes of cores.
const (
	OwnerCore  = "CORE"
	OwnerLinux = "LINUX"
)

// NoteList is a list of encoded notes (System V ABI, chapter 5, "Note Section").
type NoteList struct {
	Order binary.ByteOrder
	Bytes []byte
}

// Add adds a note.
func (n *NoteList) Add(owner string, kind elf.NType, desc []byte) {
	n.Bytes, _ = binary.Append(n.Bytes, n.Order, [3]uint32{uint32(len(owner) + 1), uint32(len(desc)), uint32(kind)})
	for _, part := range [][]byte{append([]byte(owner), 0), desc} {
		n.Bytes = append(n.Bytes, part...)
		n.Bytes = append(n.Bytes, make([]byte, -len(part)&3)...)
	}
}
