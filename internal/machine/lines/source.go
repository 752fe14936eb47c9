// Package lines maps addresses of machine code to source locations: file, line and inlined functions. It reads the DWARF of an image (versions 2 to 5), and
// the table of a Go program if there is no DWARF for the address or if reading it takes long.
//
// Its main type is [Reader]. For an address it reads only the unit that contains the address and the first entries of other units. It does not use
// debug/dwarf, which requires all sections in memory, reads the header and the abbreviations of every unit first, and allocates as much as the counts
// in a line table's header claim.
//
// # Security
//
// An image is hostile. Every offset and size is checked against its section. References are followed only a few times. A [Budget] limits the bytes
// that are read and the memory that is allocated.
package lines

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Error describes malformed debug information.
type Error struct {
	Image   string
	Section string
	Offset  int64 // offset in the section
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s+%#x: %v", e.Image, e.Section, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrCostly is wrapped by the error of a lookup that would exceed the [Budget].
var ErrCostly = errors.New("its debug information takes long to read")

// Budget limits the bytes that lookups of addresses may read, and the memory that they may allocate. It does not limit the time, so that an image
// gives the same results on every machine. A processor reads some 500 million bytes in a second.
type Budget struct {
	left  int64
	room  int64 // bytes of memory that may still be allocated
	table int64 // bytes of tables of Go functions that may still be read
}

// maxHeld is the greatest number of bytes of memory that a Budget allows for data.
const maxHeld = 512 << 20

// NewBudget returns a budget of this many bytes to read.
func NewBudget(bytes int64) *Budget { return &Budget{bytes, maxHeld, max(bytes, minTable)} }

// minTable is the least number of bytes of tables of Go functions that a Budget allows. A lookup reads some hundred bytes to some kilobytes.
const minTable = 64 << 20

// hold reserves n bytes of memory, and returns false if fewer are left.
func (b *Budget) hold(n int64) bool {
	b.room -= n
	return b.room >= 0
}

// take subtracts n bytes from the budget, and returns false if fewer are left.
func (b *Budget) take(n int64) bool {
	if n < 0 || n > b.left {
		return false
	}
	b.left -= n
	return true
}

// inflating is the number of bytes that decompressing one byte takes from the [Budget].
const inflating = 4

// Reader looks up addresses in one image. Its methods are not safe for concurrent use.
type Reader struct {
	image  *object.Image // the image with the debug information, or nil
	code   *object.Image // the image with the code
	bias   machine.Addr
	budget *Budget
	order  binary.ByteOrder
	atZero bool // the file may have code at address 0

	sections map[string]*section
	abbrevs  map[uint64]*abbrevTable
	heads    map[uint64]*unit // units by the offset of their header
	aranges  []arange
	arranged map[uint64]bool // offsets of the units that .debug_aranges describes; nil until it is read
	units    []*unit         // the first units of .debug_info, as many as lookups have needed
	lines    map[uint64]*lineTable
	known    map[machine.Addr]answer
}

type answer struct {
	place Place
	err   error
}

// Place is the source location of an address.
type Place struct {
	// Lines lists the source locations, innermost first: those of inlined functions, then that of the function that contains the code. It is empty if the
	// image has no information about the address. Functions have their symbol name, or else their name in the source.
	Lines []frame.Source
	// Missing describes the information that is in another file; "" if nothing is missing.
	Missing string
}

// maxKnown limits the results that are cached.
const maxKnown = 1 << 14

// New returns a reader of an image, or of the separate file that holds its debug information. New reads no debug information.
func New(img *object.Image, b *Budget) *Reader {
	r := &Reader{code: img, bias: img.Bias, budget: b, sections: map[string]*section{}, abbrevs: map[uint64]*abbrevTable{},
		heads: map[uint64]*unit{}, lines: map[uint64]*lineTable{}, known: map[machine.Addr]answer{}}
	if r.image = img.Debug(); r.image == nil {
		return r
	}
	arch, err := r.image.Arch()
	if err != nil {
		r.image = nil
		return r
	}
	r.order = arch.Order
	for _, s := range img.Code() {
		r.atZero = r.atZero || s.Addr == 0
	}
	return r
}

// At returns the source location of the instruction at an address of the target; the address may also lie inside the instruction. For a return address
// pass an address inside the call instruction, such as that of its last byte. If the debug information is broken, the error is an [*Error] or one of
// package object. If the budget is exceeded, it wraps [ErrCostly].
func (r *Reader) At(addr machine.Addr) (Place, error) {
	if r.image == nil && !r.code.CompiledByGo() {
		return Place{}, nil
	}
	known, ok := r.known[addr]
	if !ok {
		known.place, known.err = r.at(uint64(addr - r.bias))
		if len(known.place.Lines) == 0 && (known.err == nil || errors.Is(known.err, ErrCostly)) {
			if lines := r.byGoTable(uint64(addr - r.bias)); lines != nil {
				known = answer{place: Place{Lines: lines}}
			}
		}
		if len(r.known) < maxKnown && !errors.Is(known.err, ErrCostly) {
			r.known[addr] = known
		}
	}
	return known.place, known.err
}

// byGoTable returns the source locations that the table of a Go program has for an address of the file. It returns nil if the table is malformed.
func (r *Reader) byGoTable(pc uint64) (list []frame.Source) {
	t := r.code.GoTable()
	if t == nil {
		return nil
	}
	f, ok, err := t.At(pc)
	if !ok || err != nil {
		return nil
	}
	calls, err := t.Calls(f, pc, &r.budget.table)
	if err != nil || calls[0].Line == 0 {
		return nil
	}
	for n, c := range calls {
		list = append(list, frame.Source{Function: c.Function, File: c.File, Line: c.Line, Inlined: n < len(calls)-1})
	}
	return list
}

func (r *Reader) at(pc uint64) (Place, error) {
	if r.image == nil {
		return Place{}, nil
	}
	u, err := r.unitOf(pc)
	if u == nil || err != nil {
		return Place{}, err
	}
	place, err := u.at(pc)
	if err != nil {
		return Place{}, err // do not return a partial result
	}
	return place, nil
}

// section is one section of debug information.
type section struct {
	name   string
	reader *Reader
	size   uint64
	from   io.ReaderAt
}

// section returns the section with a name. It is empty if the image does not have it.
func (r *Reader) section(name string) (*section, error) {
	if s := r.sections[name]; s != nil {
		return s, nil
	}
	s := &section{name: name, reader: r}
	if in := r.image.Section(name); in != nil && in.Bits {
		s.size, s.from = in.Size, in
		costs := uint64(0)
		if !in.Compressed() {
			if err := in.Readable(); err != nil {
				return nil, err
			}
			if r.image.Relocatable() {
				costs = in.Size
			}
		} else if costs = inflating * in.Size; in.Size > 1<<40 {
			costs = 1 << 42
		}
		if !r.budget.take(int64(costs)) {
			return nil, s.costly()
		}
		if r.image.Relocatable() {
			data, _, err := in.Relocated()
			if err != nil {
				return nil, err
			}
			s.size, s.from = uint64(len(data)), bytesAt(data)
		}
	}
	r.sections[name] = s
	return s, nil
}

// bytesAt is a slice of bytes that implements [io.ReaderAt].
type bytesAt []byte

// ReadAt implements [io.ReaderAt].
func (b bytesAt) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, b[min(off, int64(len(b))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *section) fail(off uint64, format string, args ...any) error {
	return &Error{s.reader.image.Name, s.name, int64(off), fmt.Errorf(format, args...)}
}

func (s *section) costly() error { return &Error{s.reader.image.Name, s.name, 0, ErrCostly} }

// bytes returns n bytes of the section. The caller must not change them.
func (s *section) bytes(off, n uint64) ([]byte, error) {
	if off > s.size || n > s.size-off {
		return nil, s.fail(off, "%d bytes of a section of %d", n, s.size)
	}
	if !s.reader.budget.take(int64(n)) {
		return nil, s.costly()
	}
	if b, ok := s.from.(bytesAt); ok {
		return b[off:][:n], nil
	}
	if n > maxHeld {
		return nil, s.costly()
	}
	b := make([]byte, n)
	if n > 0 {
		if _, err := s.from.ReadAt(b, int64(off)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// upTo returns n bytes, or fewer at the end of the section.
func (s *section) upTo(off, n uint64) ([]byte, error) {
	if off > s.size {
		return nil, s.fail(off, "behind its end")
	}
	return s.bytes(off, min(n, s.size-off))
}

// maxString is the greatest length of a name or a path in bytes. The names of C++ templates have some thousand bytes.
const maxString = 64 << 10

// string returns the string that starts at off and ends with a zero byte.
func (s *section) string(off uint64) (string, error) {
	for n := uint64(256); ; n *= 16 {
		b, err := s.upTo(off, n)
		if err != nil {
			return "", err
		}
		for i, c := range b {
			if c == 0 {
				return string(b[:i]), nil
			}
		}
		if uint64(len(b)) < n || n > maxString {
			return "", s.fail(off, "a string without an end")
		}
	}
}

// word reads an unsigned number of size bytes: 1, 2, 4 or 8.
func (s *section) word(off uint64, size int) (uint64, error) {
	b, err := s.bytes(off, uint64(size))
	if err != nil {
		return 0, err
	}
	c := buf{data: b, order: s.reader.order}
	return c.uint(size), nil
}
