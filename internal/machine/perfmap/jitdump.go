package perfmap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"example.com/reframe/internal/machine"
)

// Header is the header of a jitdump.
type Header struct {
	Machine uint32 // e_machine of ELF
	PID     uint32 // the process id in the namespace of the process

	order binary.ByteOrder
}

// Header returns the header of a jitdump; ok is false if it has not been read yet.
func (m *Map) Header() (h Header, ok bool) { return m.header, m.header.order != nil }

// These are sizes in bytes and kinds of records (sections III to IX of the specification).
const (
	headerSize = 40
	recordHead = 16
	loadSize   = 40
	moveSize   = 48

	codeLoad = 0
	codeMove = 1
)

var magic = []byte("JiTD")

// readDump reads records. It skips records without names (debug information, unwind tables, the end of the runtime) and unknown kinds by their length.
func (m *Map) readDump(r io.ReaderAt, size int64) error {
	if m.header.order == nil {
		if size < headerSize {
			return nil
		}
		if err := m.readHeader(r, size); err != nil {
			return err
		}
		if m.header.order == nil {
			return nil
		}
	}
	for {
		var head [recordHead]byte
		if size-m.at < recordHead {
			return nil
		}
		if err := readFull(r, head[:], m.at); err != nil {
			return err
		}
		kind, total := m.header.order.Uint32(head[:]), int64(m.header.order.Uint32(head[4:]))
		switch {
		case total < recordHead:
			return &Error{m.at, fmt.Errorf("a record of %d bytes", total)}
		case total > size-m.at:
			return nil // the JIT has not written the rest yet
		case m.records == maxRecords:
			return &Error{m.at, fmt.Errorf("%w: over %d records", ErrTooLarge, maxRecords)}
		}
		m.records++
		var err error
		switch kind {
		case codeLoad:
			err = m.load(r, total)
		case codeMove:
			err = m.move(r, total)
		}
		if err != nil {
			return err
		}
		m.at += total
	}
}

func (m *Map) readHeader(r io.ReaderAt, size int64) error {
	var b [headerSize]byte
	if err := readFull(r, b[:], 0); err != nil {
		return err
	}
	var order binary.ByteOrder
	switch {
	case bytes.Equal(b[:4], magic): // 0x4A695444, most significant byte first
		order = binary.BigEndian
	case b[3] == magic[0] && b[2] == magic[1] && b[1] == magic[2] && b[0] == magic[3]:
		order = binary.LittleEndian
	default:
		return &Error{0, errors.New("not a jitdump: it does not begin with the magic number")}
	}
	if v := order.Uint32(b[4:]); v != 1 {
		return &Error{4, fmt.Errorf("format version %d; expected 1", v)}
	}
	total := int64(order.Uint32(b[8:]))
	if total < headerSize {
		return &Error{8, fmt.Errorf("a header of %d bytes; expected at least %d", total, headerSize)}
	}
	if total > size {
		return nil // the JIT has not written the rest yet
	}
	m.header = Header{Machine: order.Uint32(b[12:]), PID: order.Uint32(b[20:]), order: order}
	m.at, m.moved = total, map[uint64]int{}
	return nil
}

// load reads a JIT_CODE_LOAD record: pid, tid, vma, code_addr, code_size, code_index, the name with its zero byte, and the code. The address is code_addr, as
// in perf: LLVM 14 writes 0 for vma.
func (m *Map) load(r io.ReaderAt, total int64) error {
	if total < recordHead+loadSize+1 {
		return &Error{m.at, fmt.Errorf("a JIT_CODE_LOAD record of %d bytes", total)}
	}
	var b []byte
	for _, much := range []int64{shortName, maxName} { // the first read holds most names
		b = m.room(min(total-recordHead, loadSize+much+1))
		if err := readFull(r, b, m.at+recordHead); err != nil {
			return err
		}
		if bytes.IndexByte(b[loadSize:], 0) >= 0 {
			break
		}
	}
	order := m.header.order
	f := Function{Start: machine.Addr(order.Uint64(b[16:])), Size: order.Uint64(b[24:]), index: order.Uint64(b[32:])}
	name, _, ended := bytes.Cut(b[loadSize:], []byte{0})
	if !ended && len(name) <= maxName {
		return &Error{m.at + recordHead + loadSize, errors.New("a name without an end")}
	}
	f.Name = string(name)
	if code := total - recordHead - loadSize - int64(len(name)) - 1; ended && f.Size <= uint64(code) {
		f.Code = m.at + recordHead + loadSize + int64(len(name)) + 1
	}
	return m.take(f)
}

// shortName is a length in bytes that few names exceed.
const shortName = 256

// room returns n bytes; it reuses the same buffer.
func (m *Map) room(n int64) []byte {
	if int64(cap(m.buffer)) < n {
		m.buffer = make([]byte, n)
	}
	return m.buffer[:n]
}

// take adds a function and its code index.
func (m *Map) take(f Function) error {
	before := len(m.all)
	if err := m.add(f); err != nil {
		return &Error{m.at, err}
	}
	if len(m.all) > before {
		m.moved[f.index] = before
	}
	return nil
}

// move reads a JIT_CODE_MOVE record: pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index. It removes the function from its old address. A
// function with an unknown index is added without a name: it overwrites the functions at its new address.
func (m *Map) move(r io.ReaderAt, total int64) error {
	var b [moveSize]byte
	if total < recordHead+moveSize {
		return &Error{m.at, fmt.Errorf("a JIT_CODE_MOVE record of %d bytes", total)}
	}
	if err := readFull(r, b[:], m.at+recordHead); err != nil {
		return err
	}
	order := m.header.order
	f := Function{Start: machine.Addr(order.Uint64(b[24:])), Size: order.Uint64(b[32:]), index: order.Uint64(b[40:])}
	if old, known := m.moved[f.index]; known {
		was := &m.all[old]
		f.Name, f.Size, f.Code = was.Name, was.Size, was.Code
		was.Name, m.fresh = "", false
	}
	return m.take(f)
}

// readFull reads all of b. It fails if the file is shorter than the size that the caller gave.
func readFull(r io.ReaderAt, b []byte, at int64) error {
	if n, err := r.ReadAt(b, at); n < len(b) {
		return &Error{at + int64(n), fmt.Errorf("it ends before its size: %w", err)}
	}
	return nil
}
