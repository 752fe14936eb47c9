// Package stackmap reads the stack maps that LLVM writes: the section
// .llvm_stackmaps of format version 3, as "Stack maps and patch points in LLVM"
// (llvm.org/docs/StackMaps.html, "Stack Map Format") lays it out.
//
// Its main type is [Map], one blob of the section; an [Index] finds the records
// of an address. It knows nothing of processes: the addresses in a map are as
// the bytes give them.
//
// # Security
//
// A section is hostile. Every count is held against the bytes that are left
// before anything is allocated, and every error tells the offset.
package stackmap

import (
	"encoding/binary"
	"errors"
	"fmt"

	"reframe/deopt/machine"
)

// RecordID is the number that the author of the code gave a site. It need not
// be unique: inlining and code duplication repeat it.
type RecordID uint64

// Kind says where one value lives.
type Kind uint8

// The kinds of location, with the format's own numbers.
const (
	Register      Kind = 1 // in a register, Offset bits into it
	Direct        Kind = 2 // the value is register + Offset: a stack object's address
	Indirect      Kind = 3 // in memory at register + Offset
	Constant      Kind = 4 // Offset itself, sign-extended
	ConstantIndex Kind = 5 // entry Offset of the constant table
)

var kindNames = [...]string{1: "Register", 2: "Direct", 3: "Indirect", 4: "Constant", 5: "ConstantIndex"}

// String returns the format's own name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Location is one recorded value.
type Location struct {
	Kind   Kind
	Size   uint16 // bytes; 8 for every constant, whatever its type was
	Reg    machine.DWARFReg
	Offset int32 // what it means depends on Kind
}

// LiveOut is a register that is live after the site.
type LiveOut struct {
	Reg  machine.DWARFReg
	Size uint8 // bytes
}

// Record is one stack map record.
type Record struct {
	ID        RecordID
	Offset    uint32 // of the site in its function, by the convention of the kind of site
	Flags     uint16 // reserved by the format
	Locations []Location
	LiveOuts  []LiveOut
}

// DynamicStack is the stack size of a function whose frame has no fixed size.
const DynamicStack = ^uint64(0)

// Function is one function and its records.
type Function struct {
	Addr      machine.Addr
	StackSize uint64 // bytes, or DynamicStack
	Records   []Record
}

// Map is one blob of the section.
type Map struct {
	Version   int
	Functions []Function
	Constants []uint64
}

// Records counts the records of all functions.
func (m *Map) Records() int {
	n := 0
	for i := range m.Functions {
		n += len(m.Functions[i].Records)
	}
	return n
}

// Constant returns the value of a Constant or ConstantIndex location as 64
// bits, or an error where the index lies outside the table.
func (m *Map) Constant(l Location) (uint64, error) {
	switch {
	case l.Kind == Constant:
		return uint64(int64(l.Offset)), nil
	case l.Kind != ConstantIndex:
		return 0, fmt.Errorf("%v is no constant", l.Kind)
	case l.Offset < 0 || int(l.Offset) >= len(m.Constants):
		return 0, fmt.Errorf("constant %d of a table of %d", l.Offset, len(m.Constants))
	}
	return m.Constants[l.Offset], nil
}

// Error says what is wrong with a section, and where.
type Error struct {
	Offset int64 // in the section
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf(".llvm_stackmaps+%#x: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ErrTruncated is wrapped where the section ends before its own counts say it should.
var ErrTruncated = errors.New("the section ends inside a map")

// Sizes in bytes, "Stack Map Format".
const (
	headerSize   = 16
	functionSize = 24
	constantSize = 8
	recordSize   = 16 // header alone
	locationSize = 12
	liveOutSize  = 4
	liveOutHead  = 4 // padding and count
)

// Parse reads the one map that data starts with and returns how many bytes it
// takes.
func Parse(data []byte, order binary.ByteOrder) (*Map, int, error) {
	r := &reader{data: data, order: order}
	version := r.uint8()
	if r.err == nil && version != 3 {
		return nil, 0, &Error{0, fmt.Errorf("version %d is not known; version 3 is", version)}
	}
	r.zero(3, "the header's reserved bytes")
	functions, constants, records := r.uint32(), r.uint32(), r.uint32()
	r.fits(uint64(functions), functionSize, "functions")
	r.fits(uint64(constants), constantSize, "constants")
	r.fits(uint64(records), recordSize+liveOutHead, "records")
	if r.err != nil {
		return nil, 0, r.err
	}
	m := &Map{Version: 3, Functions: make([]Function, functions)}
	counts := make([]uint64, functions)
	var sum uint64
	for i := range m.Functions {
		m.Functions[i].Addr, m.Functions[i].StackSize = machine.Addr(r.uint64()), r.uint64()
		counts[i] = r.uint64()
		if counts[i] > uint64(records) {
			r.fail("function %d claims %d of %d records", i, counts[i], records)
			break
		}
		sum += counts[i]
	}
	if r.err == nil && sum != uint64(records) {
		r.fail("the functions claim %d records, the header %d", sum, records)
	}
	r.fits(uint64(constants), constantSize, "constants")
	if r.err != nil {
		return nil, 0, r.err
	}
	m.Constants = make([]uint64, constants)
	for i := range m.Constants {
		m.Constants[i] = r.uint64()
	}
	for i := range m.Functions {
		m.Functions[i].Records = r.records(counts[i])
	}
	if r.err != nil {
		return nil, 0, r.err
	}
	return m, r.off, nil
}

func (r *reader) records(count uint64) []Record {
	r.fits(count, recordSize+liveOutHead, "records")
	if r.err != nil {
		return nil
	}
	list := make([]Record, count)
	for i := range list {
		rec := &list[i]
		rec.ID, rec.Offset, rec.Flags = RecordID(r.uint64()), r.uint32(), r.uint16()
		rec.Locations = r.locations(r.uint16())
		r.align(8)
		r.uint16()
		rec.LiveOuts = r.liveOuts(r.uint16())
		r.align(8)
		if r.err != nil {
			return nil
		}
	}
	return list
}

func (r *reader) locations(count uint16) []Location {
	r.fits(uint64(count), locationSize, "locations")
	if r.err != nil || count == 0 {
		return nil
	}
	list := make([]Location, count)
	for i := range list {
		l := &list[i]
		l.Kind = Kind(r.uint8())
		if r.err == nil && (l.Kind < Register || l.Kind > ConstantIndex) {
			r.fail("location of unknown kind %d", l.Kind)
			return nil
		}
		r.uint8()
		l.Size, l.Reg = r.uint16(), machine.DWARFReg(r.uint16())
		r.uint16()
		l.Offset = int32(r.uint32())
	}
	return list
}

func (r *reader) liveOuts(count uint16) []LiveOut {
	r.fits(uint64(count), liveOutSize, "live-outs")
	if r.err != nil || count == 0 {
		return nil
	}
	list := make([]LiveOut, count)
	for i := range list {
		list[i].Reg = machine.DWARFReg(r.uint16())
		r.uint8()
		list[i].Size = r.uint8()
	}
	return list
}

// ParseAll reads a whole section. A linker lays the maps of all its objects one
// after the other, each with its own header; zero bytes may fill the gaps up to
// the alignment of 8 and the end.
func ParseAll(data []byte, order binary.ByteOrder) ([]*Map, error) {
	var maps []*Map
	for off := 0; ; {
		for off < len(data) && data[off] == 0 {
			off++
		}
		if off == len(data) {
			return maps, nil
		}
		if off%8 != 0 {
			return maps, &Error{int64(off), errors.New("a map that is not aligned to 8 bytes")}
		}
		m, n, err := Parse(data[off:], order)
		if err != nil {
			var e *Error
			if errors.As(err, &e) {
				e.Offset += int64(off)
			}
			return maps, err
		}
		maps = append(maps, m)
		off += n
	}
}
