package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// coffSymbols locates the symbol table of a COFF file. The string table follows it.
type coffSymbols struct {
	at    int64 // file offset of the table; 0 if there is none
	count uint32
	row   int64 // size of a row in bytes: 18, or 20 with 32-bit section numbers
}

func (c coffSymbols) size() int64 { return int64(c.count) * c.row }

// fit reports whether the table lies within a file of size bytes.
func (c coffSymbols) fit(size int64) bool { return c.at == 0 || c.at+c.size() <= size }

// strings reads the string table. It begins with its length in 4 bytes, which the length includes.
func (c coffSymbols) strings(r io.ReaderAt, size int64) ([]byte, error) {
	if c.at == 0 {
		return nil, nil
	}
	start := c.at + c.size()
	var b [4]byte
	if n, _ := r.ReadAt(b[:], start); n < len(b) {
		return nil, nil // a file without long names needs no string table
	}
	length := int64(binary.LittleEndian.Uint32(b[:]))
	if length > size-start {
		return nil, fmt.Errorf("it is cut short or damaged: its string table has %d bytes, but the image has only %d", length, size)
	}
	text := make([]byte, length)
	if _, err := r.ReadAt(text, start); err != nil && length > 0 {
		return nil, fmt.Errorf("it is cut short or damaged: its string table is at %#x, but the image has only %#x bytes", start, size)
	}
	return text, nil
}

const (
	coffStatic      = 3    // IMAGE_SYM_CLASS_STATIC
	coffFile        = 0x67 // IMAGE_SYM_CLASS_FILE
	coffWeak        = 0x69 // IMAGE_SYM_CLASS_WEAK_EXTERNAL
	coffFunction    = 2    // IMAGE_SYM_DTYPE_FUNCTION
	coffFirstString = 4
)

// coffWeakDefault is the prefix of the names that assemblers give the default definition of a weak external: .weak.f.default.g. The last part is a global
// name of the object, which keeps the names unique for the linker.
var coffWeakDefault = []byte(".weak.")

func (f *coffFormat) symbolTables() []*symbolTable {
	t, err := f.table()
	if err != nil || t == nil {
		return nil
	}
	return []*symbolTable{t}
}

// table reads the symbol table, or returns nil if there is none. A row may be followed by auxiliary rows: it holds their count, and each of them has
// a symbol number too. A name of up to 8 characters is in the row itself and need not end with a zero byte. table appends these names to the string
// table with a zero byte.
func (f *coffFormat) table() (*symbolTable, error) {
	if f.read != nil {
		return f.read, nil
	}
	c, order := f.symbols, binary.LittleEndian
	if c.at == 0 || c.count == 0 {
		return nil, nil
	}
	rows := make([]byte, c.size())
	if _, err := f.file.ReadAt(rows, c.at); err != nil {
		return nil, &Error{f.image.Name, "", c.at, errors.New("it ends inside its symbol table")}
	}
	text, err := c.strings(f.file, f.image.size)
	if err != nil {
		return nil, &Error{f.image.Name, "", c.at, err}
	}
	names := make([]uint32, c.count)
	symbols := make([]bool, c.count)
	for n := 0; n < len(names); n++ {
		b := rows[int64(n)*c.row:]
		symbols[n] = true
		if order.Uint32(b) == 0 {
			if at := order.Uint32(b[4:]); at >= coffFirstString {
				names[n] = at
			}
		} else {
			name, _, _ := bytes.Cut(b[:8], []byte{0})
			if len(text) < coffFirstString {
				text = make([]byte, coffFirstString)
			}
			names[n] = uint32(len(text))
			text = append(append(text, name...), 0)
		}
		n += int(b[c.row-1])
	}
	f.read = &symbolTable{rows: uint64(c.count), strings: text, row: func(n uint64) rawSymbol {
		if !symbols[n] {
			return rawSymbol{kind: placeless, section: undefined}
		}
		sym := f.symbol(names[n], rows[int64(n)*c.row:])
		sym.label = uint64(sym.name) < uint64(len(text)) && bytes.HasPrefix(text[sym.name:], coffWeakDefault)
		if tag, ok := f.weak(rows[int64(n)*c.row:]); ok && tag < uint64(len(symbols)) && symbols[tag] {
			other := f.symbol(0, rows[int64(tag)*c.row:])
			sym.section, sym.value = other.section, other.value
		}
		return sym
	}}
	return f.read, nil
}

// weak returns the number of the symbol that defines a weak external if no other image defines it (PE Format, "Auxiliary Format 3: Weak Externals"). b
// starts with the symbol's row.
func (f *coffFormat) weak(b []byte) (tag uint64, ok bool) {
	row := f.symbols.row
	if sym := f.symbol(0, b); b[row-2] != coffWeak || b[row-1] == 0 || sym.section != undefined || int64(len(b)) < 2*row {
		return 0, false
	}
	return uint64(binary.LittleEndian.Uint32(b[row:])), true
}

func (f *coffFormat) symbol(name uint32, b []byte) rawSymbol {
	order := binary.LittleEndian
	value, number, rest := order.Uint32(b[8:]), int64(int16(order.Uint16(b[12:]))), b[14:]
	if f.symbols.row == 20 {
		number, rest = int64(int32(order.Uint32(b[12:]))), b[16:]
	}
	class, more := rest[2], rest[3] // the storage class and the number of auxiliary rows follow the type
	sym := rawSymbol{name: name, section: undefined, value: uint64(value)}
	sym.code = order.Uint16(rest)>>4&3 == coffFunction
	switch class {
	case coffStatic:
		sym.binding = local
	case coffWeak:
		sym.binding = weak
	}
	switch {
	case number > 0 && number <= int64(len(f.headers)):
		sym.section = int(number - 1)
	case number == -1:
		sym.section = absolute
	}
	switch {
	case class == coffFile || number < 0: // the value of a symbol such as @feat.00 is a number and not an address
		sym.kind = placeless
	case class == coffStatic && sym.value == 0 && more > 0:
		sym.kind = sectionSymbol
	}
	return sym
}
