package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// These limit the claims of an image's headers.
const (
	maxSections    = 1 << 17 // the largest image seen, a -ffunction-sections object, has some 60,000
	maxSectionName = 1 << 14
)

// checkHeader checks the fields that debug/elf uses unchecked: the number of sections and their names. debug/elf allocates a string for each name, up
// to the next zero byte, at any distance. It also decompresses a compressed string table to any size that the table claims. Layouts are those of the
// System V ABI, chapter 4.
func checkHeader(r io.ReaderAt, size int64) error {
	var h [64]byte
	if n, err := r.ReadAt(h[:], 0); err != nil && n < binary.Size(elf.Header32{}) {
		return errors.New("it ends inside its header")
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(h[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	var table, row, count, names uint64
	wide := elf.Class(h[elf.EI_CLASS]) == elf.ELFCLASS64
	if wide {
		if size < int64(len(h)) {
			return errors.New("it ends inside its header")
		}
		table, row = order.Uint64(h[40:]), uint64(order.Uint16(h[58:]))
		count, names = uint64(order.Uint16(h[60:])), uint64(order.Uint16(h[62:]))
	} else { // ELFCLASS32; debug/elf rejects other classes
		table, row = uint64(order.Uint32(h[32:])), uint64(order.Uint16(h[46:]))
		count, names = uint64(order.Uint16(h[48:])), uint64(order.Uint16(h[50:]))
	}
	if table == 0 {
		return nil
	}
	section := func(n uint64) (*elf.Section64, error) {
		s, narrow := new(elf.Section64), new(elf.Section32)
		length := binary.Size(narrow)
		if wide {
			length = binary.Size(s)
		}
		var b [64]byte
		at := table + n*row
		if row < uint64(length) || at < table || at > uint64(size) {
			return nil, fmt.Errorf("it is cut short or damaged: section header %d is at %#x, after its end at %#x", n, at, size)
		}
		if _, err := r.ReadAt(b[:length], int64(at)); err != nil {
			return nil, fmt.Errorf("it is cut short or damaged: section header %d is at %#x, after its end at %#x", n, at, size)
		}
		if wide {
			_, err := binary.Decode(b[:], order, s)
			return s, err
		}
		if _, err := binary.Decode(b[:], order, narrow); err != nil {
			return nil, err
		}
		return &elf.Section64{Name: narrow.Name, Type: narrow.Type, Flags: uint64(narrow.Flags),
			Off: uint64(narrow.Off), Size: uint64(narrow.Size), Link: narrow.Link}, nil
	}
	// Counts that do not fit are in section header 0.
	if count == 0 || names == uint64(elf.SHN_XINDEX) {
		first, err := section(0)
		if err != nil {
			return err
		}
		if count == 0 {
			count = first.Size
		}
		if names == uint64(elf.SHN_XINDEX) {
			names = uint64(first.Link)
		}
	}
	if count > maxSections {
		return fmt.Errorf("%d sections", count)
	}
	if names == 0 || names >= count {
		return nil // the image has no names, or an error that debug/elf reports
	}
	strings, err := section(names)
	switch {
	case err != nil:
		return err
	case elf.SectionFlag(strings.Flags)&elf.SHF_COMPRESSED != 0:
		return errors.New("its section names are compressed")
	case elf.SectionType(strings.Type) == elf.SHT_NOBITS:
		return nil
	case strings.Size > uint64(size):
		return fmt.Errorf("it is cut short or damaged: its section names have %d bytes, but the image has only %d", strings.Size, size)
	}
	text := make([]byte, strings.Size)
	if n, err := r.ReadAt(text, int64(strings.Off)); err != nil && n < len(text) {
		return fmt.Errorf("it is cut short or damaged: its section names are at %#x, after its end at %#x", strings.Off, size)
	}
	total := 0
	for n := range count {
		s, err := section(n)
		if err != nil {
			return err
		}
		if uint64(s.Name) >= strings.Size {
			return fmt.Errorf("the name of section %d lies outside of the section names", n)
		}
		name := text[s.Name:]
		end := bytes.IndexByte(name[:min(len(name), maxSectionName)], 0)
		if end < 0 {
			return fmt.Errorf("the name of section %d does not end", n)
		}
		// One name may be a suffix of another and share its bytes, so all names together may be longer than the table.
		if total += end; total > 4*len(text)+maxSectionName {
			return errors.New("its section names overlap")
		}
	}
	return nil
}
