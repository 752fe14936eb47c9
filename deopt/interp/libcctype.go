package interp

import "example.com/reframe/internal/machine"

// The character classes of <ctype.h> as glibc encodes them (bits/types of its ctype.h), in the byte order of x86-64.
const (
	classUpper  = 0x0100
	classLower  = 0x0200
	classAlpha  = 0x0400
	classDigit  = 0x0800
	classXDigit = 0x1000
	classSpace  = 0x2000
	classPrint  = 0x4000
	classGraph  = 0x8000
	classBlank  = 0x0001
	classCntrl  = 0x0002
	classPunct  = 0x0004
	classAlnum  = 0x0008
)

// class returns the classes of a character in the "C" locale (C17 7.4.1).
func class(b int) uint64 {
	within := func(low, high byte) bool { return b >= int(low) && b <= int(high) }
	var v uint64
	switch {
	case within('A', 'Z'):
		v = classUpper | classAlpha | classAlnum
	case within('a', 'z'):
		v = classLower | classAlpha | classAlnum
	case within('0', '9'):
		v = classDigit | classXDigit | classAlnum
	case within('!', '~'):
		v = classPunct
	}
	if within('A', 'F') || within('a', 'f') {
		v |= classXDigit
	}
	if b == ' ' || within('\t', '\r') {
		v |= classSpace
	}
	if b == ' ' || b == '\t' {
		v |= classBlank
	}
	if within(0, 31) || b == 127 {
		v |= classCntrl
	}
	if within('!', '~') {
		v |= classGraph
	}
	if within(' ', '~') {
		v |= classPrint
	}
	return v
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func upper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		return b - ('a' - 'A')
	}
	return b
}

// lowered converts s to lower case in place.
func lowered(s []byte) []byte {
	for k, b := range s {
		s[k] = lower(b)
	}
	return s
}

func isSpace(b byte) bool { return class(int(b))&classSpace != 0 }

// ctypeFuncs holds the functions of <ctype.h> (C17 7.4), and those that glibc's macros use.
var ctypeFuncs = ctypeTable()

func ctypeTable() map[string]Builtin {
	table := map[string]Builtin{
		"tolower": mapped(lower), "toupper": mapped(upper),
		"isascii": scalar(func(c *ccall) uint64 { return truth(c.uint(0)>>7 == 0) }),
		"toascii": scalar(func(c *ccall) uint64 { return c.uint(0) & 0x7f }),
		"__ctype_b_loc": ctypeTableOf(2, func(b int) uint64 {
			if b < 0 {
				return 0 // EOF and bytes above 127, which are negative as signed chars, have no class
			}
			return class(b)
		}),
		"__ctype_tolower_loc":    ctypeTableOf(4, func(b int) uint64 { return cased(b, lower) }),
		"__ctype_toupper_loc":    ctypeTableOf(4, func(b int) uint64 { return cased(b, upper) }),
		"__ctype_get_mb_cur_max": always(1),
	}
	for name, bit := range map[string]uint64{
		"isupper": classUpper, "islower": classLower, "isalpha": classAlpha, "isdigit": classDigit, "isxdigit": classXDigit,
		"isspace": classSpace, "isprint": classPrint, "isgraph": classGraph, "isblank": classBlank, "iscntrl": classCntrl,
		"ispunct": classPunct, "isalnum": classAlnum,
	} {
		table[name] = scalar(func(c *ccall) uint64 { return class(int(c.int(0))) & bit })
	}
	return table
}

func truth(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// mapped returns tolower or toupper, where as maps a byte. Values outside of unsigned char stay unchanged.
func mapped(as func(byte) byte) Builtin {
	return scalar(func(c *ccall) uint64 { return cased(int(c.int(0)), as) })
}

func cased(b int, as func(byte) byte) uint64 {
	if b < 0 || b > 255 {
		return uint64(int64(b))
	}
	return uint64(as(byte(b)))
}

// ctypeTableOf returns a function that returns the address of a pointer to a table. The pointer points to the entry for 0. The table has entries for
// -128 to 255, as glibc's ctype.h requires.
func ctypeTableOf(size int, entry func(b int) uint64) Builtin {
	return func(i *Invocation) (Value, error) {
		c := &ccall{Invocation: i}
		at, ok := c.in.clib.tables[c.Name]
		if !ok {
			at = c.own(uint64(c.longSize()))
			content := c.own(uint64(384 * size))
			for b := -128; b < 256; b++ {
				c.put(content+machine.Addr((b+128)*size), size, entry(b))
			}
			c.put(at, c.longSize(), uint64(content)+uint64(128*size))
			if c.err != nil {
				return Value{}, c.err
			}
			c.in.clib.keepTable(c.Name, at)
		}
		return i.Return(uint64(at))
	}
}
