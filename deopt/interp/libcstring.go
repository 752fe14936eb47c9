package interp

import (
	"bytes"
	"math"

	"example.com/reframe/internal/machine"
)

// stringCall compares, copies and searches strings and memory.
type stringCall struct{ *ccall }

// stringFuncs holds the functions of <string.h> that copy and compare strings (C17 7.24.2 to 7.24.4), and those of POSIX.
var stringFuncs = map[string]Builtin{
	"strlen":  scalar(func(c stringCall) uint64 { return uint64(len(c.text(0))) }),
	"strnlen": scalar(func(c stringCall) uint64 { return uint64(len(c.textAt(c.addr(0), c.uint(1)))) }),
	"strdup":  scalar(func(c stringCall) uint64 { return c.duplicate(c.text(0)) }), "__strdup": scalar(func(c stringCall) uint64 { return c.duplicate(c.text(0)) }),
	"strndup": scalar(func(c stringCall) uint64 { return c.duplicate(c.textAt(c.addr(0), c.uint(1))) }),

	"strcmp":      scalar(func(c stringCall) uint64 { return c.compare(math.MaxUint64, same8) }),
	"strcoll":     scalar(func(c stringCall) uint64 { return c.compare(math.MaxUint64, same8) }), // the "C" locale
	"strncmp":     scalar(func(c stringCall) uint64 { return c.compare(c.uint(2), same8) }),
	"strcasecmp":  scalar(func(c stringCall) uint64 { return c.compare(math.MaxUint64, lower) }),
	"strncasecmp": scalar(func(c stringCall) uint64 { return c.compare(c.uint(2), lower) }),
	"strxfrm":     scalar(strxfrm),

	"strcpy":  scalar(func(c stringCall) uint64 { return c.copyText(c.addr(0), c.text(1)) }),
	"stpcpy":  scalar(stpcpy),
	"strncpy": scalar(func(c stringCall) uint64 { c.copyPadded(); return c.uint(0) }),
	"stpncpy": scalar(func(c stringCall) uint64 { return c.uint(0) + c.copyPadded() }),
	"strcat":  scalar(func(c stringCall) uint64 { return c.appendText(c.text(1)) }),
	"strncat": scalar(func(c stringCall) uint64 { return c.appendText(c.textAt(c.addr(1), c.uint(2))) }),
	"strlcpy": scalar(strlcpy), "strlcat": scalar(strlcat),
}

func same8(b byte) byte { return b }

// compare compares two strings of at most limit bytes, after as has mapped each byte. It reads no bytes after the first difference.
func (c stringCall) compare(limit uint64, as func(byte) byte) uint64 {
	a, b := c.from(c.addr(0)), c.from(c.addr(1))
	for ; limit > 0 && c.err == nil; limit-- {
		x, y := as(a.next()), as(b.next())
		if x != y {
			return uint64(int64(x) - int64(y))
		}
		if x == 0 {
			break
		}
	}
	return 0
}

func (c stringCall) duplicate(s []byte) uint64 {
	a := heapCall(c).allocate(uint64(len(s))+1, 16, false)
	if c.err != nil {
		return 0
	}
	return c.copyText(machine.Addr(a), s)
}

func stpcpy(c stringCall) uint64 {
	s := c.text(1)
	return c.copyText(c.addr(0), s) + uint64(len(s))
}

// copyPadded implements strncpy, and returns the number of bytes before the zeros with which it pads.
func (c stringCall) copyPadded() uint64 {
	to, limit := c.addr(0), c.uint(2)
	s := c.textAt(c.addr(1), limit)
	n := uint64(len(s))
	c.write(to, s)
	c.fill(to+machine.Addr(n), 0, limit-n)
	return n
}

func (c stringCall) appendText(s []byte) uint64 {
	head := c.text(0)
	c.copyText(c.addr(0)+machine.Addr(len(head)), s)
	return c.uint(0)
}

// strlcpy and strlcat are BSD functions that glibc has since 2.38. They truncate, and return the length of the string before truncation.
func strlcpy(c stringCall) uint64 {
	s, size := c.text(1), c.uint(2)
	c.truncated(c.addr(0), s, size)
	return uint64(len(s))
}

func strlcat(c stringCall) uint64 {
	size := c.uint(2)
	head, tail := uint64(len(c.textAt(c.addr(0), size))), c.text(1)
	if head < size {
		c.truncated(c.addr(0)+machine.Addr(head), tail, size-head)
	}
	return head + uint64(len(tail))
}

// strxfrm copies as much as fits, because the "C" locale transforms nothing.
func strxfrm(c stringCall) uint64 {
	s, size := c.text(1), c.uint(2)
	c.truncated(c.addr(0), s, size)
	return uint64(len(s))
}

// searchFuncs search a string for a byte, for a byte of a set, or for a string.
var searchFuncs = map[string]Builtin{
	"strchr": scalar(func(c stringCall) uint64 { return c.find(bytes.IndexByte) }), "index": scalar(func(c stringCall) uint64 { return c.find(bytes.IndexByte) }),
	"strrchr": scalar(func(c stringCall) uint64 { return c.find(bytes.LastIndexByte) }), "rindex": scalar(func(c stringCall) uint64 { return c.find(bytes.LastIndexByte) }),
	"strchrnul": scalar(strchrnul),
	"strspn":    scalar(func(c stringCall) uint64 { return uint64(spanOf(c.text(0), c.text(1), true)) }),
	"strcspn":   scalar(func(c stringCall) uint64 { return uint64(spanOf(c.text(0), c.text(1), false)) }),
	"strpbrk":   scalar(strpbrk),
	"strstr":    scalar(func(c stringCall) uint64 { return c.locate(c.text(0), c.text(1)) }),
	"strcasestr": scalar(func(c stringCall) uint64 {
		return c.locate(lowered(c.text(0)), lowered(c.text(1)))
	}),
}

func (c stringCall) find(search func([]byte, byte) int) uint64 {
	s, b := c.text(0), c.uint(1)
	k := search(append(s, 0), byte(b))
	if k < 0 {
		return 0
	}
	return c.uint(0) + uint64(k)
}

func strchrnul(c stringCall) uint64 {
	s, b := c.text(0), c.uint(1)
	k := bytes.IndexByte(s, byte(b))
	if k < 0 {
		k = len(s)
	}
	return c.uint(0) + uint64(k)
}

// spanOf counts the bytes at the start of s that are in the set, or with in false those that are not.
func spanOf(s, set []byte, in bool) int {
	var has [256]bool // a table, because the set may be as long as s
	for _, b := range set {
		has[b] = true
	}
	for k, b := range s {
		if has[b] != in {
			return k
		}
	}
	return len(s)
}

func strpbrk(c stringCall) uint64 {
	s := c.text(0)
	k := spanOf(s, c.text(1), false)
	if k == len(s) {
		return 0
	}
	return c.uint(0) + uint64(k)
}

func (c stringCall) locate(s, part []byte) uint64 {
	k := c.index(s, part)
	if k < 0 {
		return 0
	}
	return c.uint(0) + uint64(k)
}

// index returns the position of part in s, or -1. It counts the search as bulk work.
func (c stringCall) index(s, part []byte) int {
	if c.err == nil {
		c.err = c.in.work(uint64(len(s)))
	}
	return bytes.Index(s, part)
}

// tokenFuncs split strings into tokens.
var tokenFuncs = map[string]Builtin{
	"strtok": scalar(strtok), "strtok_r": scalar(strtokR), "__strtok_r": scalar(strtokR), "strsep": scalar(strsep),
}

func strtok(c stringCall) uint64 {
	token, rest := c.token(c.addr(0), c.in.clib.token)
	if c.err == nil {
		c.in.clib.token = rest
	}
	return token
}

func strtokR(c stringCall) uint64 {
	var saved machine.Addr
	if c.uint(0) == 0 {
		saved = machine.Addr(c.get(c.addr(2), c.longSize()))
	}
	token, rest := c.token(c.addr(0), saved)
	c.put(c.addr(2), c.longSize(), uint64(rest))
	return token
}

// token implements strtok_r (POSIX). It returns the address of the next token, and the address at which the next search continues.
func (c stringCall) token(s, saved machine.Addr) (uint64, machine.Addr) {
	if s == 0 {
		s = saved
	}
	text, set := c.textAt(s, math.MaxUint64), c.text(1)
	skip := spanOf(text, set, true)
	text, s = text[skip:], s+machine.Addr(skip)
	if len(text) == 0 {
		return 0, s
	}
	n := spanOf(text, set, false)
	rest := s + machine.Addr(n)
	if n < len(text) {
		c.write(rest, []byte{0})
		rest++
	}
	return uint64(s), rest
}

func strsep(c stringCall) uint64 {
	s := machine.Addr(c.get(c.addr(0), c.longSize()))
	if s == 0 {
		return 0
	}
	text := c.textAt(s, math.MaxUint64)
	n := spanOf(text, c.text(1), false)
	rest := uint64(0)
	if n < len(text) {
		c.write(s+machine.Addr(n), []byte{0})
		rest = uint64(s) + uint64(n) + 1
	}
	c.put(c.addr(0), c.longSize(), rest)
	return uint64(s)
}
