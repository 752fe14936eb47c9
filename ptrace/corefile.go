package ptrace

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// elfHeader is the header of an ELF file (System V ABI, chapter 4).
type elfHeader struct {
	raw      [elf64Header]byte
	class    elf.Class
	order    binary.ByteOrder
	kind     elf.Type
	phoff    uint64
	shoff    uint64
	rowSize  uint16
	programN uint16
}

const (
	elf32Header  = 52
	elf64Program = 56
	// pnXNum says that the number of program headers stands in sh_info of section
	// header 0, because it does not fit: PN_XNUM of elf(5).
	pnXNum = 0xffff
)

var errNoELF = errors.New("no ELF file")

// readELFHeader reads the header of an ELF file. Of a 32-bit one the class and the type are known.
func readELFHeader(r io.ReaderAt) (*elfHeader, error) {
	h := &elfHeader{}
	n, _ := r.ReadAt(h.raw[:], 0)
	b := h.raw[:]
	if string(b[:4]) != elf.ELFMAG {
		return nil, errNoELF
	}
	h.class = elf.Class(b[elf.EI_CLASS])
	if n < elf32Header || n < elf64Header && h.class != elf.ELFCLASS32 {
		return nil, errors.New("it ends inside its header")
	}
	switch elf.Data(b[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		h.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		h.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("its byte order is %d", b[elf.EI_DATA])
	}
	h.kind = elf.Type(h.order.Uint16(b[16:]))
	h.phoff, h.shoff = h.order.Uint64(b[32:]), h.order.Uint64(b[40:])
	h.rowSize, h.programN = h.order.Uint16(b[54:]), h.order.Uint16(b[56:])
	return h, nil
}

// programs reads the program headers of a 64-bit file that has size bytes.
func (h *elfHeader) programs(r io.ReaderAt, size, most uint64) ([]elf.Prog64, error) {
	count := uint64(h.programN)
	if count == pnXNum {
		var first [elf64Section]byte
		if h.shoff > size {
			return nil, fmt.Errorf("section header 0 lies at %#x of %#x bytes", h.shoff, size)
		}
		if n, err := r.ReadAt(first[:], int64(h.shoff)); n < len(first) {
			return nil, fmt.Errorf("section header 0, which holds the number of segments: %w", err)
		}
		count = uint64(h.order.Uint32(first[44:]))
	}
	switch {
	case count == 0:
		return nil, nil
	case h.rowSize != elf64Program:
		return nil, fmt.Errorf("program headers of %d bytes", h.rowSize)
	case count > most:
		return nil, fmt.Errorf("%d program headers; %d are read at most", count, most)
	case h.phoff > size || count*elf64Program > size-h.phoff:
		return nil, fmt.Errorf("it ends inside its %d program headers", count)
	}
	b := make([]byte, count*elf64Program)
	if n, err := r.ReadAt(b, int64(h.phoff)); n < len(b) {
		return nil, fmt.Errorf("its program headers: %w", err)
	}
	list := make([]elf.Prog64, count)
	for i := range list {
		row := b[i*elf64Program:]
		list[i] = elf.Prog64{
			Type: h.order.Uint32(row), Flags: h.order.Uint32(row[4:]), Off: h.order.Uint64(row[8:]), Vaddr: h.order.Uint64(row[16:]),
			Filesz: h.order.Uint64(row[32:]), Memsz: h.order.Uint64(row[40:]), Align: h.order.Uint64(row[48:]),
		}
	}
	return list, nil
}

// noteBudget is how many notes are looked at, of all segments together. A thread has
// some six.
type noteBudget int

const maxNotes = 1 << 22

// note is one note of a PT_NOTE segment.
type note struct {
	owner string
	kind  elf.NType
	desc  *io.SectionReader
	whole *io.SectionReader
}

// maxOwner is enough for the owners that matter: CORE, LINUX, GNU.
const maxOwner = 8

// each calls f with the notes of a segment (System V ABI, chapter 5, "Note Section") up to
// the first that does not fit into it or that the file does not hold whole; it returns whether
// all of them could be read.
func (budget *noteBudget) each(r io.ReaderAt, size uint64, order binary.ByteOrder, p elf.Prog64, f func(note)) bool {
	if p.Off > size {
		return p.Filesz == 0
	}
	end, align := min(p.Filesz, size-p.Off), uint64(4)
	if p.Align == 8 {
		align = 8 // .note.gnu.property, the only one that is
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
			owner = string(head[12 : 12+nameSize-1]) // it ends with a zero byte
		}
		f(note{owner, elf.NType(order.Uint32(head[8:])), io.NewSectionReader(r, int64(p.Off+desc), int64(descSize)), io.NewSectionReader(r, int64(p.Off+at), int64(desc+descSize-at))})
		at = padded(desc + descSize)
	}
	return end == p.Filesz
}

// read returns the first bytes of what the note holds, at least least and at most most.
func (n note) read(least, most int64) ([]byte, bool) {
	if n.desc.Size() < least {
		return nil, false
	}
	b := make([]byte, min(n.desc.Size(), most))
	got, _ := n.desc.ReadAt(b, 0)
	return b, got == len(b)
}
