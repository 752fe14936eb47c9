package lines

import (
	"encoding/binary"
	"errors"
)

var errTruncated = errors.New("ends in the middle of a value")

// buf decodes a slice of bytes. After the first error all reads return zero, so callers check err once at the end.
type buf struct {
	data  []byte
	base  uint64 // offset of data[0] in its section
	pos   int
	order binary.ByteOrder
	err   error
}

func (b *buf) fail(err error) {
	if b.err == nil {
		b.err = err
	}
	b.pos = len(b.data)
}

func (b *buf) more() bool { return b.pos < len(b.data) }

func (b *buf) skip(n uint64) {
	if n > uint64(len(b.data)-b.pos) {
		b.fail(errTruncated)
		return
	}
	b.pos += int(n)
}

// uint reads an unsigned number of size bytes.
func (b *buf) uint(size int) uint64 {
	if size > len(b.data)-b.pos {
		b.fail(errTruncated)
		return 0
	}
	p := b.data[b.pos:]
	b.pos += size
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(b.order.Uint16(p))
	case 3: // DW_FORM_strx3 and DW_FORM_addrx3
		if b.order == binary.ByteOrder(binary.BigEndian) {
			return uint64(p[0])<<16 | uint64(p[1])<<8 | uint64(p[2])
		}
		return uint64(p[2])<<16 | uint64(p[1])<<8 | uint64(p[0])
	case 4:
		return uint64(b.order.Uint32(p))
	case 8:
		return b.order.Uint64(p)
	}
	b.fail(errors.New("a number of unsupported size"))
	return 0
}

// uleb reads an unsigned LEB128 (DWARF 5, 7.6) and drops bits above the 64th.
func (b *buf) uleb() uint64 {
	var v uint64
	for shift := uint(0); b.pos < len(b.data); shift += 7 {
		c := b.data[b.pos]
		b.pos++
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		if c < 0x80 {
			return v
		}
	}
	b.fail(errTruncated)
	return 0
}

// sleb reads a signed LEB128.
func (b *buf) sleb() int64 {
	var v int64
	for shift := uint(0); b.pos < len(b.data); {
		c := b.data[b.pos]
		b.pos++
		if shift < 64 {
			v |= int64(c&0x7f) << shift
		}
		shift += 7
		if c < 0x80 {
			if c&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
	b.fail(errTruncated)
	return 0
}

// skipString skips a string and its zero byte.
func (b *buf) skipString() {
	for b.pos < len(b.data) {
		b.pos++
		if b.data[b.pos-1] == 0 {
			return
		}
	}
	b.fail(errTruncated)
}

// length reads the length of the data that follows, and reports whether offsets in it have 8 bytes (DWARF 5, 7.4).
func (b *buf) length() (n uint64, wide bool) {
	n = b.uint(4)
	if n == 0xffffffff {
		return b.uint(8), true
	}
	if n >= 0xfffffff0 {
		b.fail(errors.New("a reserved length"))
		return 0, false
	}
	return n, false
}
