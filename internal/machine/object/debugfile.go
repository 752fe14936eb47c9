package object

import (
	"bytes"

	"example.com/reframe/internal/machine"
)

// maxBuildID limits the size of a build id. Linkers make build ids of 8 to 32 bytes.
const maxBuildID = 64

// BuildID returns the build id, which identifies a linked image, or nil if it has none. It is the note NT_GNU_BUILD_ID with the owner GNU, for which GNU ld
// and lld make a separate section.
func (i *Image) BuildID() []byte {
	s := i.Section(".note.gnu.build-id")
	f, ok := i.format.(*elfFormat)
	if !ok || s == nil || s.Size > maxBuildID+16 {
		return nil
	}
	b, err := s.Data()
	if err != nil || len(b) < 16 {
		return nil
	}
	order := f.file.ByteOrder
	size := order.Uint32(b[4:])
	if order.Uint32(b) != 4 || order.Uint32(b[8:]) != 3 || string(b[12:16]) != "GNU\x00" || size == 0 || uint64(size) > uint64(len(b)-16) {
		return nil
	}
	return b[16:][:size]
}

// DebugFrom provides a separate file for an image whose symbol table or debug information was stripped (objcopy --only-keep-debug). If the image has
// a build id, open is called when the first symbol or debug information is needed that the image lacks. It is called at most once. If its
// result has another build id, it is ignored. open returns nil if it finds no file.
//
// Only the symbol table and the debug information of the file are used; it has no bytes of loaded sections.
func (i *Image) DebugFrom(open func(buildID []byte) *Image) {
	if !i.Relocatable() {
		i.separate = open
	}
}

// debugFile returns the separate file, or nil.
func (i *Image) debugFile() *Image {
	if open := i.separate; open != nil {
		i.separate = nil
		if id := i.BuildID(); id != nil {
			if other := open(id); other != nil && bytes.Equal(other.BuildID(), id) {
				i.debug = other
			}
		}
	}
	return i.debug
}

// Debug returns the image that holds the DWARF of this one: itself, its separate file, or nil. The Bias of a separate file is not set: its addresses are
// those in the file.
func (i *Image) Debug() *Image {
	has := func(i *Image) bool {
		s := i.Section(".debug_info")
		return s != nil && s.Bits && s.Size > 0
	}
	if has(i) {
		return i
	}
	if other := i.debugFile(); other != nil && has(other) {
		return other
	}
	return nil
}

// separateTables returns the symbol tables of the separate file if the image itself has none.
func (i *Image) separateTables() []*symbolTable {
	if i.Section(".symtab") != nil {
		return nil
	}
	other := i.debugFile()
	if other == nil {
		return nil
	}
	f, ok := other.format.(*elfFormat)
	table := other.Section(".symtab")
	if !ok || table == nil {
		return nil
	}
	t, _, err := f.openTable(table)
	if err != nil {
		return nil
	}
	// The numbers of sections may differ: tools that strip a file may renumber them.
	type place struct {
		name string
		addr machine.Addr
	}
	own, numbers := map[place]int{}, make([]int, len(other.all))
	for n, s := range i.all {
		if s.Alloc {
			own[place{s.Name, s.Addr}] = n
		}
	}
	for n, s := range other.all {
		at, ok := own[place{s.Name, s.Addr}]
		if numbers[n] = undefined; ok && s.Alloc {
			numbers[n] = at
		}
	}
	row := t.row
	t.row = func(n uint64) rawSymbol {
		s := row(n)
		if s.section >= 0 && s.section < len(numbers) {
			s.section = numbers[s.section]
		} else if s.section >= 0 {
			s.section = undefined
		}
		return s
	}
	return []*symbolTable{t}
}
