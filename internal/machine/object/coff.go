package object

import (
	"bytes"
	"debug/pe"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"example.com/reframe/internal/machine"
)

// coffFormat is a COFF object, or a PE image that was linked from such objects (Microsoft, PE Format).
//
// debug/pe is not used: it does not support objects of more than 65,279 sections (/bigobj), and it allocates a Go value for every symbol and relocation
// when it opens a file.
type coffFormat struct {
	image   *Image
	file    io.ReaderAt
	machine uint16
	linked  bool // a PE image
	base    uint64
	headers []coffSection
	symbols coffSymbols
	read    *symbolTable // nil until a symbol is needed
}

// coffSection is a section header, 40 bytes.
type coffSection struct {
	Name                                      [8]byte
	VirtualSize, VirtualAddress, RawSize, Raw uint32
	Relocations, Lines                        uint32
	RelocationCount, LineCount                uint16
	Flags                                     uint32
}

const (
	coffHeaderSize  = 20
	bigHeaderSize   = 56
	coffSectionSize = 40

	coffNoLoad     = 0x00000200 | 0x00000800 | pe.IMAGE_SCN_MEM_DISCARDABLE // LNK_INFO, LNK_REMOVE
	coffManyRelocs = 0x01000000                                             // LNK_NRELOC_OVFL
)

// coffMachines names the machines whose objects are recognized. COFF has no magic number, so a file that begins with such a number must also have a valid
// header.
var coffMachines = map[uint16]string{
	pe.IMAGE_FILE_MACHINE_AMD64: "x86-64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
	0xa641: "arm64ec", 0xa64e: "arm64x",
	pe.IMAGE_FILE_MACHINE_I386: "i386", pe.IMAGE_FILE_MACHINE_ARMNT: "armnt",
}

// bigObject is the class ID of an object with 32-bit counts (winnt.h, ANON_OBJECT_HEADER_BIGOBJ).
var bigObject = [16]byte{0xc7, 0xa1, 0xba, 0xd1, 0xee, 0xba, 0xa9, 0x4b, 0xaf, 0x20, 0xfa, 0xf6, 0x6a, 0xa4, 0xdc, 0xb8}

// coffHeader holds the fields that the three kinds of headers have in common.
type coffHeader struct {
	machine  uint16
	sections uint32
	table    int64 // offset of the section headers
	symbols  coffSymbols
	optional uint16 // size of the optional header; 0 in objects
}

func isPE(magic [4]byte) bool { return magic[0] == 'M' && magic[1] == 'Z' }

// readCOFFHeader reads the header of an object; ok is false if the file is not an object.
func readCOFFHeader(r io.ReaderAt, size int64) (h coffHeader, ok bool) {
	var b [bigHeaderSize]byte
	n, _ := r.ReadAt(b[:], 0)
	order := binary.LittleEndian
	switch {
	case n >= bigHeaderSize && order.Uint32(b[:]) == 0xffff0000 && order.Uint16(b[4:]) >= 2 && [16]byte(b[12:28]) == bigObject:
		h = coffHeader{machine: order.Uint16(b[6:]), sections: order.Uint32(b[44:]), table: bigHeaderSize,
			symbols: coffSymbols{at: int64(order.Uint32(b[48:])), count: order.Uint32(b[52:]), row: 20}}
	case n >= coffHeaderSize:
		h = coffSmallHeader(b[:], 0)
		const executable = 0x2
		if h.optional != 0 || order.Uint16(b[18:])&executable != 0 {
			return h, false
		}
	}
	if _, known := coffMachines[h.machine]; !known || h.sections == 0 {
		return h, false
	}
	return h, h.table+int64(h.sections)*coffSectionSize <= size && h.symbols.fit(size)
}

// coffSmallHeader decodes the 20-byte header that starts at file offset at.
func coffSmallHeader(b []byte, at int64) coffHeader {
	order := binary.LittleEndian
	optional := order.Uint16(b[16:])
	return coffHeader{machine: order.Uint16(b), sections: uint32(order.Uint16(b[2:])),
		table: at + coffHeaderSize + int64(optional), optional: optional,
		symbols: coffSymbols{at: int64(order.Uint32(b[8:])), count: order.Uint32(b[12:]), row: 18}}
}

// openCOFF opens a COFF object, or returns ErrNotObject.
func (i *Image) openCOFF(r *io.SectionReader) error {
	h, ok := readCOFFHeader(r, i.size)
	if !ok {
		return ErrNotObject
	}
	return i.openCOFFSections(&coffFormat{image: i, file: r}, h)
}

// openPE opens a PE image: a COFF header after a DOS program.
func (i *Image) openPE(r *io.SectionReader) error {
	order := binary.LittleEndian
	var dos [64]byte
	if _, err := r.ReadAt(dos[:], 0); err != nil {
		return ErrNotObject
	}
	at := int64(order.Uint32(dos[60:]))
	var b [4 + coffHeaderSize]byte
	if _, err := r.ReadAt(b[:], at); err != nil || string(b[:4]) != "PE\x00\x00" {
		return ErrNotObject // a DOS program without a PE header
	}
	h := coffSmallHeader(b[4:], at+4)
	f := &coffFormat{image: i, file: r, linked: true}
	var optional [32]byte
	if _, err := r.ReadAt(optional[:min(len(optional), int(h.optional))], at+int64(len(b))); err != nil {
		return errors.New("it ends inside its optional header")
	}
	switch magic := order.Uint16(optional[:]); magic {
	case 0x20b:
		f.base = order.Uint64(optional[24:])
	case 0x10b:
		f.base = uint64(order.Uint32(optional[28:]))
	default:
		return fmt.Errorf("its optional header is of kind %#x", magic)
	}
	switch {
	case h.table+int64(h.sections)*coffSectionSize > i.size:
		return fmt.Errorf("its %d section headers lie outside of it", h.sections)
	case !h.symbols.fit(i.size):
		return fmt.Errorf("its %d symbols lie outside of it", h.symbols.count)
	}
	return i.openCOFFSections(f, h)
}

func (i *Image) openCOFFSections(f *coffFormat, h coffHeader) error {
	f.machine, f.symbols = h.machine, h.symbols
	i.format = f
	if h.sections > maxSections {
		return fmt.Errorf("%d sections", h.sections)
	}
	strings, err := h.symbols.strings(f.file, i.size)
	if err != nil {
		return err
	}
	table := make([]byte, h.sections*coffSectionSize)
	if _, err := f.file.ReadAt(table, h.table); err != nil {
		return errors.New("it ends inside its section headers")
	}
	f.headers = make([]coffSection, h.sections)
	if _, err := binary.Decode(table, binary.LittleEndian, f.headers); err != nil {
		return err
	}
	names := 0
	for n, s := range f.headers {
		name, err := coffSectionName(s.Name, strings)
		if err != nil {
			return fmt.Errorf("section %d: %w", n+1, err)
		}
		if names += len(name); names > 4*int(i.size)+maxSectionName {
			return errors.New("its section names overlap")
		}
		const uninitialized = pe.IMAGE_SCN_CNT_UNINITIALIZED_DATA
		sec := &Section{
			Name: name, Size: uint64(s.RawSize), Alloc: s.Flags&coffNoLoad == 0,
			Exec: s.Flags&(pe.IMAGE_SCN_MEM_EXECUTE|pe.IMAGE_SCN_CNT_CODE) != 0,
			Bits: s.Flags&uninitialized == 0 && s.Raw != 0,
			data: io.NewSectionReader(f.file, int64(s.Raw), int64(s.RawSize)),
		}
		if f.linked {
			sec.Addr = machine.Addr(f.base + uint64(s.VirtualAddress))
			// On disk a section is padded, or it is cut off if only zeros follow.
			if s.VirtualSize != 0 && (s.VirtualSize < s.RawSize || !sec.Bits) {
				sec.Size = uint64(s.VirtualSize)
			}
		}
		i.add(sec)
	}
	return nil
}

// coffSectionName returns the name of a section. A name longer than 8 characters is in the string table; the header holds its offset, in decimal after a
// slash or in base 64 after two slashes.
func coffSectionName(field [8]byte, strings []byte) (string, error) {
	short, _, _ := bytes.Cut(field[:], []byte{0})
	var at uint64
	var err error
	switch {
	case bytes.HasPrefix(short, []byte("//")):
		// Six digits are 36 bits. Prepend two digits, because the decoder needs whole bytes: 48 bits.
		var b []byte
		if b, err = base64.StdEncoding.DecodeString("AA" + string(short[2:])); err == nil && len(b) == 6 {
			at = binary.BigEndian.Uint64(append([]byte{0, 0}, b...))
		}
	case bytes.HasPrefix(short, []byte("/")):
		at, err = strconv.ParseUint(string(short[1:]), 10, 32)
	default:
		return string(short), nil
	}
	if err != nil || at >= uint64(len(strings)) || at < 4 {
		return "", fmt.Errorf("its name %q lies outside the string table of %d bytes", short, len(strings))
	}
	name := strings[at:]
	end := bytes.IndexByte(name[:min(len(name), maxSectionName)], 0)
	if end < 0 {
		return "", errors.New("its name does not end")
	}
	return string(name[:end]), nil
}

func (f *coffFormat) arch() (*machine.Arch, error) {
	switch f.machine {
	case pe.IMAGE_FILE_MACHINE_AMD64:
		return machine.AMD64, nil
	case pe.IMAGE_FILE_MACHINE_ARM64:
		return machine.ARM64, nil
	}
	name, ok := coffMachines[f.machine]
	if !ok {
		name = fmt.Sprintf("machine %#x", f.machine)
	}
	return nil, fmt.Errorf("COFF for %s is not supported", name)
}

func (f *coffFormat) relocatable() bool { return !f.linked }

// relative returns true: the value of a symbol is an offset in its section, also in linked images.
func (f *coffFormat) relative() bool { return true }

// stackMaps returns the full section name if the linker kept it. lld-link cuts the names of loaded sections to 8 characters.
func (f *coffFormat) stackMaps() string {
	if short := StackMapSection[:8]; f.linked && f.image.sections[StackMapSection] == nil && f.image.sections[short] != nil {
		return short
	}
	return StackMapSection
}

func (f *coffFormat) fileAddr(off uint64) (machine.Addr, bool) {
	if !f.linked {
		return 0, false
	}
	for n, s := range f.headers {
		if start := uint64(s.Raw); f.image.all[n].Bits && off >= start && off-start < uint64(s.RawSize) {
			return f.image.all[n].Addr + machine.Addr(off-start), true
		}
	}
	return 0, false
}
