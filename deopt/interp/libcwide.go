package interp

import (
	"bytes"
	"math/bits"

	"reframe/deopt/machine"
)

// wideFuncs holds the functions of <wchar.h> (C17 7.29.4) that work on memory, which std::wstring uses. A wchar_t has 4 bytes and a sign, as on
// Linux.
var wideFuncs = map[string]Builtin{
	"wmemset": scalar(wmemset), "wmemcpy": scalar(wmemmove), "wmemmove": scalar(wmemmove),
	"wcslen":  scalar(func(c *ccall) uint64 { return c.wideLength(c.addr(0)) }),
	"wmemcmp": scalar(wmemcmp), "wmemchr": scalar(wmemchr),
}

const wideSize = 4

// wideBytes returns the size in bytes of argument i, a number of wide characters.
func (c *ccall) wideBytes(i int) uint64 {
	high, low := bits.Mul64(c.uint(i), wideSize)
	if high != 0 || c.longSize() == 4 && low>>32 != 0 {
		c.fail(troublef(KindFault, "@%s of %d wide characters", c.Name, c.uint(i)))
		return 0
	}
	return low
}

func wmemset(c *ccall) uint64 {
	to, left := c.addr(0), c.wideBytes(2)
	var one [8]byte
	c.in.opt.Arch.Order.PutUint64(one[:], c.uint(1))
	block := bytes.Repeat(one[:wideSize], 256)
	if c.in.layout.BigEndian {
		block = bytes.Repeat(one[wideSize:], 256)
	}
	for left > 0 && c.err == nil {
		n := min(left, uint64(len(block)))
		c.write(to, block[:n])
		to, left = to+machine.Addr(n), left-n
	}
	return c.uint(0)
}

func wmemmove(c *ccall) uint64 {
	c.move(c.addr(0), c.addr(1), c.wideBytes(2))
	return c.uint(0)
}

func (c *ccall) wideLength(a machine.Addr) (n uint64) {
	for c.err == nil && c.get(a, wideSize) != 0 {
		a, n = a+wideSize, n+1
	}
	return n
}

// wmemcmp compares as signed numbers; glibc returns 1 and -1.
func wmemcmp(c *ccall) uint64 {
	a, b, left := c.addr(0), c.addr(1), c.wideBytes(2)
	for ; left > 0 && c.err == nil; a, b, left = a+wideSize, b+wideSize, left-wideSize {
		x, y := int32(c.get(a, wideSize)), int32(c.get(b, wideSize))
		switch {
		case x < y:
			return eof
		case x > y:
			return 1
		}
	}
	return 0
}

func wmemchr(c *ccall) uint64 {
	a, left, want := c.addr(0), c.wideBytes(2), c.uint(1)
	for ; left > 0 && c.err == nil; a, left = a+wideSize, left-wideSize {
		if c.get(a, wideSize) == want {
			return uint64(a)
		}
	}
	return 0
}
