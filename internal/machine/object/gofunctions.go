package object

import (
	"debug/gosym"
	"encoding/binary"
	"slices"

	"example.com/reframe/internal/machine"
)

// maxFunctionTable bounds the size of the table of functions of a Go program.
const maxFunctionTable = 256 << 20

// Words of Go's moduledata (runtime/symtab.go), which has a section of its own since Go 1.26.
const (
	moduleHeader = 0  // the address of the table
	moduleText   = 22 // the start of Go's code
	moduleEnd    = 23
)

// goTableSection holds the functions of a Go program. In a position-independent executable of an older release it is writable, and has another name.
const goTableSection = ".gopclntab"

// GoFunctions returns the section with the functions of a Go program, or nil if Go's linker has not made the image.
func (i *Image) GoFunctions() *Section {
	if s := i.Section(goTableSection); s != nil {
		return s
	}
	return i.Section(".data.rel.ro" + goTableSection)
}

// goFunctionAt returns the Go function that contains addr. Go programs keep this table even if they are stripped: the run time needs it.
func (i *Image) goFunctionAt(addr machine.Addr) (Symbol, bool) {
	if !i.goRead {
		i.goRead, i.goTable = true, i.readGoFunctions()
	}
	if i.goTable == nil {
		return Symbol{}, false
	}
	at := uint64(addr - i.Bias)
	n, found := slices.BinarySearchFunc(i.goTable.Funcs, at, func(f gosym.Func, at uint64) int {
		switch {
		case f.End <= at:
			return -1
		case f.Entry > at:
			return 1
		}
		return 0
	})
	if !found {
		return Symbol{}, false
	}
	f := &i.goTable.Funcs[n]
	return Symbol{Name: f.Name, Addr: machine.Addr(f.Entry) + i.Bias, Size: f.End - f.Entry}, true
}

// readGoFunctions reads the table, or returns nil if it cannot. Package gosym turns its own panics on wrong tables into short results.
func (i *Image) readGoFunctions() *gosym.Table {
	s := i.GoFunctions()
	f, ok := i.format.(*elfFormat)
	if s == nil || !ok || s.Size > maxFunctionTable {
		return nil
	}
	data, _, err := s.Fixed()
	if err != nil {
		return nil
	}
	text := i.goText(s, data, f.file.ByteOrder)
	if text == 0 {
		return nil
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text))
	if err != nil {
		return nil
	}
	return table
}

// goText returns the file address of the start of Go's code, or 0. Up to Go 1.25 it is in the header of the table, after the numbers of functions and files
// (runtime/symtab.go, pcHeader).
func (i *Image) goText(table *Section, data []byte, order binary.ByteOrder) uint64 {
	const header = 8 + 2*8
	if len(data) < header+8 {
		return 0
	}
	if text := order.Uint64(data[header:]); text != 0 {
		return text
	}
	s := i.Section(".go.module")
	if s == nil || s.Size > maxFunctionTable {
		return 0
	}
	module, _, err := s.Fixed()
	if err != nil || len(module) < 8*(moduleEnd+1) {
		return 0
	}
	word := func(n int) uint64 { return order.Uint64(module[8*n:]) }
	if word(moduleHeader) != uint64(table.Addr) || word(moduleText) >= word(moduleEnd) {
		return 0
	}
	return word(moduleText)
}
