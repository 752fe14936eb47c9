package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"example.com/reframe/internal/machine"
)

// cursor reads consecutive bytes of a section. After its first error it returns zeros, so the caller checks err once, at the end.
type cursor struct {
	section string
	offset  int64        // section offset of data[0]
	addr    machine.Addr // load address of data[0]
	order   binary.ByteOrder
	data    []byte
	pos     int
	err     error
}

// fail records the first error, with the current offset.
func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = &FormatError{c.section, c.offset + int64(c.pos), err}
	}
}

func (c *cursor) failf(format string, args ...any) { c.fail(fmt.Errorf(format, args...)) }

// failAt does the same as failf for an item at position at.
func (c *cursor) failAt(at int, format string, args ...any) {
	if c.err == nil {
		c.pos = at
		c.failf(format, args...)
	}
}

// more reports whether bytes are left and no error occurred.
func (c *cursor) more() bool { return c.err == nil && c.pos < len(c.data) }

// bytes returns the next n bytes, not copied; nil after an error.
func (c *cursor) bytes(n uint64) []byte {
	if c.err != nil {
		return nil
	}
	if n > uint64(len(c.data)-c.pos) {
		c.fail(errTruncated)
		return nil
	}
	b := c.data[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b
}

// sub returns a cursor over the next n bytes, and skips them.
func (c *cursor) sub(n uint64) cursor {
	at := c.pos
	s := *c
	s.data, s.pos = c.bytes(n), 0
	s.offset, s.addr, s.err = c.offset+int64(at), c.addr+machine.Addr(at), c.err
	return s
}

// rest returns a cursor over all remaining bytes.
func (c *cursor) rest() cursor { return c.sub(uint64(len(c.data) - c.pos)) }

func (c *cursor) u8() uint8 {
	if c.err != nil {
		return 0
	}
	if c.pos == len(c.data) {
		c.fail(errTruncated)
		return 0
	}
	b := c.data[c.pos]
	c.pos++
	return b
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return c.order.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return c.order.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return c.order.Uint64(b)
	}
	return 0
}

// text reads a string up to its terminating zero byte.
func (c *cursor) text() string {
	start := c.pos
	for c.more() {
		if c.u8() == 0 {
			return string(c.data[start : c.pos-1])
		}
	}
	c.fail(errTruncated)
	return ""
}

var errLEBRange = errors.New("LEB128 number does not fit in 64 bits")

// uleb reads an unsigned LEB128 number (DWARF 5 §7.6).
func (c *cursor) uleb() uint64 {
	if c.err == nil && c.pos < len(c.data) && c.data[c.pos] < 0x80 { // the common case
		c.pos++
		return uint64(c.data[c.pos-1])
	}
	var v uint64
	for shift := 0; ; shift += 7 {
		b := c.u8()
		if c.err != nil {
			return 0
		}
		digit := uint64(b & 0x7f)
		if shift >= 64 && digit != 0 || shift < 64 && digit<<shift>>shift != digit {
			c.fail(errLEBRange)
			return 0
		}
		if shift < 64 {
			v |= digit << shift
		}
		if b&0x80 == 0 {
			return v
		}
	}
}

// sleb reads a signed LEB128 number (DWARF 5 §7.6).
func (c *cursor) sleb() int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		b := c.u8()
		if c.err != nil {
			return 0
		}
		digit := int64(b & 0x7f)
		switch {
		case shift < 63:
			v |= digit << shift
		case shift == 63 && (digit == 0 || digit == 0x7f):
			v |= digit << shift
		case shift > 63 && digit == v>>63&0x7f: // padding repeats the sign
		default:
			c.fail(errLEBRange)
			return 0
		}
		if b&0x80 == 0 {
			if unused := 64 - shift - 7; unused > 0 {
				v = v << unused >> unused
			}
			return v
		}
	}
}

// register reads a register number.
func (c *cursor) register() machine.DWARFReg {
	v := c.uleb()
	if v > 0xffff {
		c.failf("register number %d is too large", v)
		return 0
	}
	return machine.DWARFReg(v)
}

// times multiplies a factored operand, and fails if the product overflows.
func (c *cursor) times(a, b int64) int64 {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > 1<<63-1 {
		c.failf("operand %d times factor %d overflows", a, b)
		return 0
	}
	if (a < 0) != (b < 0) {
		return -int64(lo)
	}
	return int64(lo)
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
