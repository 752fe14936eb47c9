package object

import (
	"io"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/gotable"
)

// CompiledByGo reports whether Go's linker made the image, or the objects from which another linker made it.
func (i *Image) CompiledByGo() bool {
	return i.Section(goTableSection) != nil || i.Section(".data.rel.ro"+goTableSection) != nil || i.Section(".go.buildinfo") != nil
}

// goTableSection contains the table of the functions of a Go program. In a position-independent executable of Go 1.25 and older, it is writable and
// has another name, or is part of .data.rel.ro.
const goTableSection = ".gopclntab"

// These are word offsets in Go's moduledata (runtime/symtab.go). The slices with the parts of the table begin at moduleNames.
const (
	moduleHeader = 0 // the address of the table
	moduleNames  = 1
	moduleText   = 22 // the start of Go's code
	moduleEnd    = 23
	moduleTrees  = 40 // the address of go:func.*, up to Go 1.26
	moduleTrees2 = 43 // the address of go:func.* since Go 1.27; since Go 1.26 the end of the table follows that address
	moduleWords  = 45
)

// GoTable returns the table of functions of a Go program, with addresses of the file, or nil if the image has none that can be read.
func (i *Image) GoTable() *gotable.Table {
	if !i.goRead {
		i.goRead, i.goTable = true, i.readGoTable()
	}
	return i.goTable
}

// goFunctionAt returns the Go function that contains addr. Go programs keep their table even if they are stripped: the run time needs it.
func (i *Image) goFunctionAt(addr machine.Addr) (Symbol, bool) {
	t := i.GoTable()
	if t == nil {
		return Symbol{}, false
	}
	f, ok, err := t.At(uint64(addr - i.Bias))
	if !ok || err != nil {
		return Symbol{}, false
	}
	return Symbol{Name: f.Name, Addr: machine.Addr(f.Entry) + i.Bias, Size: f.End - f.Entry}, true
}

// goModule is a moduledata whose words are relocated.
type goModule struct {
	words []uint64
	named bool // the moduledata has its own section
}

// maxModule bounds the size of the section that contains Go's moduledata.
const maxModule = 64 << 20

// readGoTable finds the table, or returns nil.
func (i *Image) readGoTable() *gotable.Table {
	f, ok := i.format.(*elfFormat)
	if !ok || f.relocatable() || f.word() != 8 || !i.CompiledByGo() {
		return nil
	}
	order := f.file.ByteOrder
	m, table, ok := i.goModule(f)
	if !ok { // up to Go 1.25 the table without moduledata gives everything except the inlined calls
		s := i.Section(goTableSection)
		if s == nil {
			return nil
		}
		header, ok := headerOf(s, 0, f)
		if !ok || header.Text == 0 {
			return nil
		}
		t, _ := gotable.New(s, nil, header.Text, order)
		return t
	}
	var trees io.ReaderAt
	for _, n := range []int{moduleTrees, moduleTrees2} {
		end := m.words[n+1]
		if in := i.dataAt(m.words[n]); in != nil && (!m.named && n == moduleTrees || m.named && end == uint64(table.Addr)+table.Size) {
			off := m.words[n] - uint64(in.Addr)
			trees = io.NewSectionReader(in, int64(off), int64(in.Size-off))
		}
	}
	from := m.words[moduleHeader] - uint64(table.Addr)
	t, _ := gotable.New(io.NewSectionReader(table, int64(from), int64(table.Size-from)), trees, m.words[moduleText], order)
	return t
}

// dataAt returns the section with the bytes at an address of the file, or nil.
func (i *Image) dataAt(addr uint64) *Section {
	for _, s := range i.all {
		if s.Alloc && s.Bits && addr >= uint64(s.Addr) && addr-uint64(s.Addr) < s.Size {
			return s
		}
	}
	return nil
}

// headerOf reads the header of a table at an offset of a section.
func headerOf(s *Section, off uint64, f *elfFormat) (gotable.Header, bool) {
	var b [gotable.HeaderSize]byte
	if _, err := s.ReadAt(b[:], int64(off)); err != nil {
		return gotable.Header{}, false
	}
	return gotable.ReadHeader(b[:], f.file.ByteOrder)
}

// goModule finds the moduledata of the program, and the section with its table. Up to Go 1.25 the moduledata is among other data and has no section
// of its own. goModule recognizes it by the addresses of the table and of the table's names.
func (i *Image) goModule(f *elfFormat) (m goModule, table *Section, ok bool) {
	s := i.Section(".go.module")
	m.named = s != nil
	if s == nil {
		s = i.Section(".noptrdata")
	}
	if s == nil || s.Size > maxModule {
		return m, nil, false
	}
	data, _, err := s.Relocated()
	if err != nil {
		return m, nil, false
	}
	word := func(at int) uint64 { return f.file.ByteOrder.Uint64(data[at:]) }
	for at := 0; at+8*moduleWords <= len(data); at += 8 {
		header := word(at)
		table = i.dataAt(header)
		if table == nil {
			continue
		}
		found, ok := headerOf(table, header-uint64(table.Addr), f)
		if !ok || word(at+8*moduleNames) != header+found.Names || word(at+8*moduleText) >= word(at+8*moduleEnd) {
			continue
		}
		for n := range moduleWords {
			m.words = append(m.words, word(at+8*n))
		}
		return m, table, true
	}
	return m, nil, false
}
