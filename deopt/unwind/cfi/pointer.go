package cfi

import (
	"errors"

	"example.com/reframe/internal/machine"
)

// Encodings of a pointer, in one byte: the low four bits are the form, the next three the base that it is relative to, and the top bit an indirection
// (Linux Standard Base, Core 5.0 §10.5).
const (
	peAbsptr  = 0x00
	peULEB    = 0x01
	peUdata2  = 0x02
	peUdata4  = 0x03
	peUdata8  = 0x04
	peSigned  = 0x08
	peSLEB    = 0x09
	peSdata2  = 0x0a
	peSdata4  = 0x0b
	peSdata8  = 0x0c
	peForm    = 0x0f
	pePCRel   = 0x10
	peTextRel = 0x20
	peDataRel = 0x30
	peFuncRel = 0x40
	peAligned = 0x50
	peBase    = 0x70

	peIndirect = 0x80
	peOmit     = 0xff
)

// bases holds the base addresses of the relative pointers in one section.
type bases struct {
	abs        machine.Addr // the load bias, added to absolute pointers
	text, data machine.Addr // zero if unknown
}

// plain reads a number in the form of enc and ignores its base.
func (c *cursor) plain(enc uint8) uint64 {
	switch enc & peForm {
	case peAbsptr, peSigned, peUdata8, peSdata8:
		return c.u64()
	case peULEB:
		return c.uleb()
	case peSLEB:
		return uint64(c.sleb())
	case peUdata2:
		return uint64(c.u16())
	case peUdata4:
		return uint64(c.u32())
	case peSdata2:
		return uint64(int16(c.u16()))
	case peSdata4:
		return uint64(int32(c.u32()))
	}
	c.failf("unsupported pointer encoding %#02x", enc)
	return 0
}

// skip skips an unused pointer, such as the personality routine. Its base and its indirection do not matter.
func (c *cursor) skip(enc uint8) {
	if enc == peOmit {
		return
	}
	c.align(enc)
	c.plain(enc)
}

// align skips to the next address that is a multiple of 8, if enc says that the pointer is aligned.
func (c *cursor) align(enc uint8) {
	if enc&peBase == peAligned {
		c.bytes(uint64(-(c.addr + machine.Addr(c.pos)) & 7))
	}
}

// pointer reads an address encoded as enc.
func (c *cursor) pointer(enc uint8, b bases) machine.Addr {
	value, base := c.encoded(enc, b)
	return machine.Addr(value) + base
}

// encoded reads an address encoded as enc: the stored value, and its base.
func (c *cursor) encoded(enc uint8, b bases) (value uint64, base machine.Addr) {
	switch {
	case enc == peOmit:
		c.fail(errors.New("a required pointer is omitted"))
	case enc&peIndirect != 0:
		c.failf("pointer encoding %#02x: a code address cannot be indirect", enc)
	}
	c.align(enc)
	at := c.addr + machine.Addr(c.pos)
	value = c.plain(enc)
	switch enc & peBase {
	case 0, peAligned:
		return value, b.abs
	case pePCRel:
		return value, at
	case peTextRel:
		return value, c.known("text", b.text)
	case peDataRel:
		return value, c.known("data", b.data)
	}
	// The remaining encodings are relative to the function whose start is read here, or undefined.
	c.failf("unsupported pointer encoding %#02x", enc)
	return 0, 0
}

func (c *cursor) known(name string, base machine.Addr) machine.Addr {
	if base == 0 {
		c.failf("a pointer is relative to an unknown %s base", name)
	}
	return base
}
