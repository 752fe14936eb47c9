// Package gotable reads the table in which Go's linker lists functions, source lines and inlined calls.
//
// Its main type is [Table]. The linker calls the table pclntab (runtime/symtab.go in Go's sources). Go's run time needs it, so a stripped program has it
// too. debug/gosym does not read inlined calls, and reads the names of all functions first.
//
// # Security
//
// The table is hostile. Offsets are checked when they are read. The caller bounds the bytes that a lookup reads.
package gotable

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sort"
)

// Magic is the number at the start of a table of Go 1.20 and newer.
const Magic = 0xfffffff1

// HeaderSize is the size of the header of a table on a 64-bit machine.
const HeaderSize = 8 + 8*8

// Header is the start of a table (runtime/symtab.go, pcHeader).
type Header struct {
	Text  uint64 // the start of the code, or 0 since Go 1.26
	Names uint64 // the offset of the names of functions in the table

	quantum                      uint64
	functions                    uint64 // the number of functions
	units, files, values, listed uint64 // offsets of other parts of the table
}

// ReadHeader decodes the header of a table for a 64-bit machine.
func ReadHeader(b []byte, order binary.ByteOrder) (h Header, ok bool) {
	if len(b) < HeaderSize || order.Uint32(b) != Magic || b[4] != 0 || b[5] != 0 || b[7] != 8 {
		return h, false
	}
	word := func(n int) uint64 { return order.Uint64(b[8+8*n:]) }
	h = Header{Text: word(2), Names: word(3), quantum: uint64(b[6]), functions: word(0), units: word(4), files: word(5), values: word(6), listed: word(7)}
	for _, off := range []uint64{h.Names, h.units, h.files, h.values, h.listed} {
		if off > math.MaxInt32<<8 { // so that sums of offsets do not overflow
			return h, false
		}
	}
	return h, h.functions > 0 && h.functions <= math.MaxInt32
}

// Table is the table of one program.
type Table struct {
	Header
	table, trees io.ReaderAt
	order        binary.ByteOrder
	text         uint64
}

// New returns the table that the reader table contains. text is the address at which the code starts. trees reads the inlined calls, the data that the
// linker calls go:func.*; it is nil if these are unknown.
func New(table, trees io.ReaderAt, text uint64, order binary.ByteOrder) (*Table, error) {
	b := make([]byte, HeaderSize)
	if _, err := table.ReadAt(b, 0); err != nil {
		return nil, err
	}
	h, ok := ReadHeader(b, order)
	if !ok {
		return nil, errors.New("its table of Go functions has an unknown format")
	}
	return &Table{h, table, trees, order, text}, nil
}

// Function is a function of the table.
type Function struct {
	Name       string
	Entry, End uint64

	offset uint64 // offset of the function's description (runtime/runtime2.go, _func)
}

// Call is a function with a position in its source.
type Call struct {
	Function string
	File     string
	Line     int
}

// words reads n words of 4 bytes.
func (t *Table) words(from io.ReaderAt, off uint64, n int) ([]uint32, error) {
	b := make([]byte, 4*n)
	if _, err := from.ReadAt(b, int64(off)); err != nil {
		return nil, err
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = t.order.Uint32(b[4*i:])
	}
	return out, nil
}

// maxName bounds the length of the name of a function or of a file.
const maxName = 1 << 14

// string reads a string that ends with a zero byte.
func (t *Table) string(off uint64) (string, error) {
	s, err := bufio.NewReaderSize(io.NewSectionReader(t.table, int64(off), maxName), 128).ReadString(0)
	if err != nil {
		return "", err
	}
	return s[:len(s)-1], nil
}

// At returns the function that contains an address. ok is false if there is none.
func (t *Table) At(pc uint64) (f Function, ok bool, err error) {
	if pc < t.text {
		return f, false, nil
	}
	entry := func(n int) uint64 {
		row, failed := t.words(t.table, t.listed+8*uint64(n), 1)
		if failed != nil {
			err = failed
			return math.MaxUint64
		}
		return t.text + uint64(row[0])
	}
	n := sort.Search(int(t.functions), func(i int) bool { return entry(i) > pc }) - 1
	if n < 0 || err != nil {
		return f, false, err
	}
	row, err := t.words(t.table, t.listed+8*uint64(n), 3) // the row, and the start of the next
	if err != nil {
		return f, false, err
	}
	f = Function{Entry: t.text + uint64(row[0]), End: t.text + uint64(row[2]), offset: t.listed + uint64(row[1])}
	if pc >= f.End {
		return f, false, nil
	}
	name, err := t.words(t.table, f.offset+4, 1)
	if err != nil {
		return f, false, err
	}
	f.Name, err = t.string(t.Names + uint64(name[0]))
	return f, err == nil, err
}

// Words of the description of a function (runtime/runtime2.go, _func), and the numbers of tables that follow it (internal/abi/symtab.go).
const (
	wordFiles  = 5 // offset of the table that maps addresses to files
	wordLines  = 6
	wordTables = 7 // number of the function's other tables
	wordUnit   = 8
	wordCounts = 10 // its last byte is nfuncdata, the number of rows of funcdata
	fixedWords = 11

	treeIndex = 2 // number of the table that maps addresses to inlined calls
	treeData  = 3
)

// ErrLimit is the error for a lookup that would read more than its limit.
var ErrLimit = errors.New("its table of Go functions takes long to read")

// limited is a reader that counts down the bytes that may be read.
type limited struct {
	io.ReaderAt
	left *int64
}

// ReadAt implements [io.ReaderAt].
func (l limited) ReadAt(p []byte, off int64) (int, error) {
	if *l.left -= int64(len(p)); *l.left < 0 {
		return 0, ErrLimit
	}
	return l.ReaderAt.ReadAt(p, off)
}

// Calls returns the source lines of an address in a function: inlined functions, the innermost first, then the function itself. It subtracts from
// left the bytes that it reads, and fails with [ErrLimit] if it must read more.
func (t *Table) Calls(f Function, pc uint64, left *int64) ([]Call, error) {
	within := *t
	within.table = limited{t.table, left}
	if t.trees != nil {
		within.trees = limited{t.trees, left}
	}
	return within.calls(f, pc)
}

func (t *Table) calls(f Function, pc uint64) (calls []Call, err error) {
	w, err := t.words(t.table, f.offset, fixedWords)
	if err != nil {
		return nil, err
	}
	index, tree := uint32(0), uint32(math.MaxUint32)
	var last [4]byte
	t.order.PutUint32(last[:], w[wordCounts])
	if count := w[wordTables]; t.trees != nil && count > treeIndex && last[3] > treeData {
		following := f.offset + 4*fixedWords
		one, err := t.words(t.table, following+4*treeIndex, 1)
		if err != nil {
			return nil, err
		}
		data, err := t.words(t.table, following+4*(uint64(count)+treeData), 1)
		if err != nil {
			return nil, err
		}
		index, tree = one[0], data[0]
	}
	for {
		c := Call{Function: f.Name}
		file, err := t.value(w[wordFiles], f.Entry, pc)
		if err != nil {
			return nil, err
		}
		line, err := t.value(w[wordLines], f.Entry, pc)
		if err != nil {
			return nil, err
		}
		if file >= 0 && line > 0 {
			at, err := t.words(t.table, t.units+4*(uint64(w[wordUnit])+uint64(file)), 1)
			if err != nil {
				return nil, err
			}
			if c.Line = int(line); at[0] != math.MaxUint32 { // MaxUint32: the linker has left the file out
				if c.File, err = t.string(t.files + uint64(at[0])); err != nil {
					return nil, err
				}
			}
		}
		inlined := int32(-1)
		if index != 0 && tree != math.MaxUint32 {
			if inlined, err = t.value(index, f.Entry, pc); err != nil {
				return nil, err
			}
		}
		if inlined < 0 {
			return append(calls, c), nil
		}
		// runtime/symtabinl.go, inlinedCall: the name and the place of the call
		call, err := t.words(t.trees, uint64(tree)+16*uint64(inlined)+4, 2)
		if err != nil {
			return nil, err
		}
		if c.Function, err = t.string(t.Names + uint64(call[0])); err != nil {
			return nil, err
		}
		calls = append(calls, c)
		pc = f.Entry + uint64(call[1])
	}
}

// maxValues bounds the size of a table of values by address. The table of the largest function in Go's library has some ten thousand bytes.
const maxValues = 1 << 20

// value returns the value for an address in the table at an offset, or -1 if it has none (runtime/symtab.go, pcvalue).
func (t *Table) value(off uint32, entry, target uint64) (int32, error) {
	if off == 0 {
		return -1, nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(t.table, int64(t.values)+int64(off), maxValues), 128)
	for pc, value, first := entry, int32(-1), true; ; first = false {
		change, err := binary.ReadUvarint(r)
		if err != nil {
			return 0, err
		}
		if change == 0 && !first {
			return -1, nil
		}
		value += int32(-(change & 1) ^ (change >> 1))
		length, err := binary.ReadUvarint(r)
		if err != nil {
			return 0, err
		}
		if pc += length * t.quantum; target < pc {
			return value, nil
		}
	}
}
