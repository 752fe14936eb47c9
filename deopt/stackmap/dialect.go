package stackmap

import "fmt"

// Dialect names a layout of the section. The version in a map's header does not identify the layout: three layouts have version 3, and llc
// -stackmap-version=1 or 2 writes layout v3 with another version.
type Dialect string

// The layouts, with the source that defines each.
const (
	// V1 is the layout of LLVM 3.5 to 3.9: functions without a count of their records, locations of 8 bytes with an 8-bit size (docs/StackMaps.rst,
	// "Stack Map Format", and lib/CodeGen/StackMaps.cpp of those releases).
	V1 Dialect = "v1"
	// V2 is the layout of LLVM 4: V1 with a record count for each function.
	V2 Dialect = "v2"
	// V3 is the layout of LLVM 5 and later: locations of 12 bytes with a 16-bit size, and padding to 8 bytes before the live-outs.
	V3 Dialect = "v3"
	// Yk is the current layout of ykllvm (ykjit/ykllvm, llvm/lib/CodeGen/StackMaps.cpp at 126a0def, emitCallsiteEntries and emitCSRInfo, with
	// YkStackMapAdditionalLocs). A record holds live variables, each with an 8-bit count of locations and the locations. A location is that of V3, with
	// two more fields before its offset: a 16-bit count of extra locations, and 16 bits for each. At the end of the map is a table of prologues, one for
	// each function, without padding.
	Yk Dialect = "yk"
	// YkOld is V3 with live variables: the layout of ykllvm before it had the prologue table and extra locations (vext01/llvm-project, the same file at
	// 16975b81), and the current layout without YkStackMapAdditionalLocs.
	YkOld Dialect = "yk-old"
)

// layout holds the sizes and parts of a Dialect.
type layout struct {
	dialect      Dialect
	first, last  int // first and last version in headers of this layout
	functionSize int
	locationSize int // without extra locations
	counted      bool
	variables    bool // locations are grouped into live variables
	extended     bool // locations have extra locations, functions a prologue
}

// layouts lists the layouts in the order in which to try them. Yk comes before YkOld because it fits fewer sections. Data in layout YkOld has no
// prologue table, so it fits Yk only by chance and if zeros follow. Data in layout Yk also fits YkOld if its prologue table consists of zeros, which
// look like padding.
//
// Only V3 occurs with another version than its own: ykllvm writes only version 3, and no LLVM writes an old layout with a newer version.
var layouts = [...]layout{
	{dialect: V1, first: 1, last: 1, functionSize: 16, locationSize: 8},
	{dialect: V2, first: 2, last: 2, functionSize: 24, locationSize: 8, counted: true},
	{dialect: V3, first: 1, last: 3, functionSize: 24, locationSize: 12, counted: true},
	{dialect: Yk, first: 3, last: 3, functionSize: 24, locationSize: 14, counted: true, variables: true, extended: true},
	{dialect: YkOld, first: 3, last: 3, functionSize: 24, locationSize: 12, counted: true, variables: true},
}

const lastVersion = 3

// Dialects returns the layouts in the order in which they are tried.
func Dialects() []Dialect {
	list := make([]Dialect, len(layouts))
	for i := range layouts {
		list[i] = layouts[i].dialect
	}
	return list
}

// find returns the layout with this name.
func (d Dialect) find() (*layout, error) {
	for i := range layouts {
		if layouts[i].dialect == d {
			return &layouts[i], nil
		}
	}
	return nil, fmt.Errorf("unknown layout %q; expected one of %v", string(d), Dialects())
}

// named returns the layout that a version in a header names, or nil.
func named(version byte) *layout {
	if version < 1 || version > lastVersion {
		return nil
	}
	return &layouts[version-1]
}

func (l *layout) has(version int) bool { return l.first <= version && version <= l.last }

// Sizes in bytes, the same in every layout ("Stack Map Format").
const (
	headerSize    = 16
	constantSize  = 8
	recordHead    = 16 // id, offset, flags, number of locations or live variables
	liveOutHead   = 4  // padding and count
	liveOutSize   = 4
	smallestEntry = 24 // a record without locations and live-outs, padded
	prologueHead  = 6
	savedSize     = 8
	alignment     = 8
)

func align(n int) int { return (n + alignment - 1) &^ (alignment - 1) }
