// Package object reads an image of machine code from a file or from a target: an executable, a shared object or an unlinked object, in ELF, Mach-O or
// COFF.
//
// Its main type is [Image]: sections at their loaded addresses, relocations applied where they are not applied yet, and symbols by name and by
// address. [Images] opens files that hold several images: archives and universal files.
//
// # Security
//
// An image is hostile. Every size is checked against the size of the image before memory is allocated. Decompressed data may take 256 MiB in all. The
// standard library's readers do not guarantee that they never panic, so they run under a recover. Data is read on demand: a lookup in a 100 MB library
// reads its headers and its symbol table.
package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/gotable"
)

// Error is the error type of every function of this package.
type Error struct {
	Image   string // name of the image
	Section string // "" if the error is about the whole image
	Offset  int64  // offset in the section or image; -1 if unknown
	Err     error
}

func (e *Error) Error() string {
	s := e.Image
	if e.Section != "" {
		s += ": " + e.Section
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf("+%#x", e.Offset)
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ErrNotObject is wrapped by errors about files in an unknown format.
var ErrNotObject = errors.New("not an object file")

// ErrCore is wrapped by errors about files that are a core dump.
var ErrCore = errors.New("a core")

// Image is one image. Its methods are not safe for concurrent use.
type Image struct {
	Name string // the path, or the name of the object in messages
	// Bias is the target's address minus the file's address; 0 for an object whose section headers hold loaded addresses.
	Bias machine.Addr
	// Registered reports whether a JIT registered the image.
	Registered bool

	format   format
	size     int64
	sections map[string]*Section
	all      []*Section
	laidOut  bool // an unlinked image whose sections have addresses with valid distances
	placed   bool
	tables   []*symbolTable // nil until a symbol is needed
	read     bool
	starts   []start // symbols by address; nil until one is needed
	// These are functions with a descriptor, by the address of their code; nil until one is needed.
	described []start
	separate  func(buildID []byte) *Image // opens debug; nil after it was called
	debug     *Image                      // the separate file with debug information, or nil

	// These cache the results of SymbolAt; coveredBytes is the size of their names.
	covered      map[machine.Addr]covering
	coveredBytes int64
	answers      map[asked]covering

	linked []linkedPlace // references to symbols without an address; nil until one is needed

	goTable *gotable.Table // the functions of a Go program; nil if goRead is not set, or if there are none
	goRead  bool

	// These cache the results of SymbolsStarting.
	named      map[machine.Addr][]Symbol
	namedBytes int64
}

// format is implemented once per file format (ELF, Mach-O, COFF).
type format interface {
	// kind implements [Image.Format].
	kind() string
	// arch returns the architecture, or an error that names it.
	arch() (*machine.Arch, error)
	// relocatable reports whether the image is an unlinked object.
	relocatable() bool
	// relocate relocates data, the bytes of s, as a linker or loader would.
	relocate(s *Section, data []byte) ([]Relocation, error)
	// symbolTables returns the readable symbol tables.
	symbolTables() []*symbolTable
	// relative reports whether symbol values are offsets in their section.
	relative() bool
	// fileAddr implements [Image.FileAddr].
	fileAddr(off uint64) (machine.Addr, bool)
	// stackMaps returns the name of the sections that hold stack maps.
	stackMaps() string
}

// Section is one section of an image.
type Section struct {
	Name  string
	Addr  machine.Addr // loaded address; meaningless if the section is not loaded
	Size  uint64
	Alloc bool // occupies memory when loaded
	Exec  bool // holds code
	Bits  bool // has bytes in the image

	elsewhere bool // the loaded address is unknown: see [Image.LoadAt]

	// These cache the result of [Section.Fixed] for [Image.Original].
	original    []byte
	fixed       []bool
	originalErr error

	data  io.ReaderAt // nil if the section is compressed although a section of its kind cannot be
	index int         // index in the image's sections, from 0
	image *Image
}

// maxImage is half of the address space. A 32-bit build cannot read larger files, because a section may be as large as its file.
const maxImage = math.MaxInt / 2

// New reads the headers of an image of size bytes.
func New(name string, r io.ReaderAt, size int64) (img *Image, err error) {
	defer func() {
		if p := recover(); p != nil {
			img, err = nil, &Error{name, "", -1, fmt.Errorf("malformed: %v", p)}
		}
	}()
	if size > maxImage {
		return nil, &Error{name, "", -1, fmt.Errorf("it has %d bytes; the limit of a 32-bit build of this program is %d", size, maxImage)}
	}
	var magic [4]byte
	if n, err := r.ReadAt(magic[:], 0); n < len(magic) && err != nil {
		return nil, &Error{name, "", 0, ErrNotObject}
	}
	img = &Image{Name: name, size: size, sections: map[string]*Section{}}
	whole := io.NewSectionReader(r, 0, size)
	switch {
	case isELF(magic):
		err = img.openELF(whole)
	case isMachO(magic):
		err = img.openMachO(whole)
	case isPE(magic):
		err = img.openPE(whole)
	default:
		err = img.openCOFF(whole) // COFF has no magic number, so it is tried last
	}
	if err != nil {
		return nil, &Error{name, "", -1, err}
	}
	return img, nil
}

// add adds a section. A lookup by name finds the first section with a name.
func (i *Image) add(s *Section) {
	s.image, s.index = i, len(i.all)
	i.all = append(i.all, s)
	if _, twice := i.sections[s.Name]; !twice {
		i.sections[s.Name] = s
	}
}

// Arch returns the architecture of the image, or an error that names it.
func (i *Image) Arch() (*machine.Arch, error) {
	arch, err := i.format.arch()
	if err != nil {
		return nil, &Error{i.Name, "", -1, err}
	}
	return arch, nil
}

// Relocatable reports whether the image is an unlinked object, whose bytes are not relocated.
func (i *Image) Relocatable() bool { return i.format.relocatable() }

// StackMaps returns the sections that hold stack maps, in the order of the image. There is at most one, unless the linker kept those of several objects
// separate (ld -r --unique).
func (i *Image) StackMaps() []*Section {
	var list []*Section
	for _, s := range i.all {
		if s.Name == i.format.stackMaps() {
			list = append(list, s)
		}
	}
	return list
}

// StackMapSection returns the name of the sections that [Image.StackMaps] looks for.
func (i *Image) StackMapSection() string { return i.format.stackMaps() }

// PlaceSections gives each section of an unlinked object a distinct address, as a loader would, so that an address identifies its section. The
// addresses are valid only within the image. It does not change a linked image.
func (i *Image) PlaceSections() {
	if !i.Relocatable() {
		return
	}
	const first, align = 0x1000, 0x1000
	if i.laidOut {
		// Keep the distances of the section headers: Mach-O assemblers write distances between sections as absolute numbers.
		for _, s := range i.all {
			if !i.placed {
				s.Addr += first
			}
		}
		i.placed = true
		return
	}
	i.placed = true
	next := machine.Addr(first)
	for _, s := range i.all {
		if s.Alloc {
			s.Addr = next
			next += machine.Addr((min(s.Size, uint64(i.size))/align + 1) * align)
		}
	}
}

// Placed reports whether PlaceSections assigned the addresses.
func (i *Image) Placed() bool { return i.placed }

// Section returns the first section of that name, or nil.
func (i *Image) Section(name string) *Section { return i.sections[name] }

// Loaded returns the address of the section in the target.
func (s *Section) Loaded() machine.Addr { return s.Addr + s.image.Bias }

// Contains reports whether addr lies in the loaded section.
func (s *Section) Contains(addr machine.Addr) bool {
	return addr >= s.Loaded() && uint64(addr-s.Loaded()) < s.Size
}

// ReadAt reads bytes of the section, decompressed but not relocated.
func (s *Section) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case !s.Bits:
		return 0, &Error{s.image.Name, s.Name, off, s.image.noBytes()}
	case s.data == nil:
		return 0, &Error{s.image.Name, s.Name, off, errors.New("is compressed")}
	}
	n, err := s.data.ReadAt(p, off)
	if _, ok := s.data.(*inflater); ok && err != nil && err != io.EOF {
		err = &Error{s.image.Name, s.Name, off, err}
	}
	return n, err
}

// Data returns the bytes of the section, decompressed but not relocated.
func (s *Section) Data() ([]byte, error) {
	if err := s.Readable(); err != nil {
		return nil, err
	}
	if z, ok := s.data.(*inflater); ok {
		data, err := z.bytes()
		if err != nil {
			return nil, &Error{s.image.Name, s.Name, 0, err}
		}
		return bytes.Clone(data), nil
	}
	b := make([]byte, s.Size)
	if _, err := s.data.ReadAt(b, 0); err != nil && !(err == io.EOF && s.Size == 0) {
		return nil, &Error{s.image.Name, s.Name, 0, err}
	}
	return b, nil
}

// Readable returns an error if the section header shows that the bytes of the section cannot be read.
func (s *Section) Readable() error {
	_, packed := s.data.(*inflater)
	switch {
	case !s.Bits:
		return &Error{s.image.Name, s.Name, 0, s.image.noBytes()}
	case s.data == nil:
		return &Error{s.image.Name, s.Name, 0, errors.New("is compressed")}
	case !packed && s.Size > uint64(s.image.size):
		return &Error{s.image.Name, s.Name, 0, fmt.Errorf("claims %d bytes in an image of %d", s.Size, s.image.size)}
	}
	return nil
}

// noBytes returns the error for a section without bytes. If code sections have none either, the file was reduced to debug information (objcopy
// --only-keep-debug, dsymutil).
func (i *Image) noBytes() error {
	for _, s := range i.all {
		if s.Alloc && s.Exec && s.Size > 0 && !s.Bits {
			return errors.New("has no bytes in the image: the file has only debug information")
		}
	}
	return errors.New("has no bytes in the image")
}

// Code returns the sections that hold loaded code. In an unlinked object a section at address 0 was not loaded: MCJIT of LLVM 19 and later leaves an
// empty .text there, in addition to the real .ltext.
func (i *Image) Code() []*Section {
	var code []*Section
	for _, s := range i.all {
		if s.Alloc && s.Exec && s.Size > 0 && !s.elsewhere && (s.Addr != 0 || !i.Relocatable()) {
			code = append(code, s)
		}
	}
	return code
}

// CodeAt returns the code section that contains addr, or nil.
func (i *Image) CodeAt(addr machine.Addr) *Section {
	for _, s := range i.all {
		if s.Alloc && s.Exec && !s.elsewhere && (s.Addr != 0 || !i.Relocatable()) && s.Contains(addr) {
			return s
		}
	}
	return nil
}

// FileAddr returns the image's address of the byte at file offset off, according to its loadable segments.
func (i *Image) FileAddr(off uint64) (machine.Addr, bool) { return i.format.fileAddr(off) }
