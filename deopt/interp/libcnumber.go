package interp

import (
	"math/bits"

	"example.com/reframe/internal/machine"
)

// numberCall converts and computes numbers.
type numberCall struct{ *ccall }

// numberFuncs are the integer and float functions of <stdlib.h> and <inttypes.h> (C17 7.22.1, 7.22.6, 7.8.2).
var numberFuncs = numberTable()

func numberTable() map[string]Builtin {
	table := map[string]Builtin{
		"abs":  scalar(func(c numberCall) uint64 { v := c.int(0); return uint64(max(v, -v)) }),
		"labs": scalar(func(c numberCall) uint64 { v := c.int(0); return uint64(max(v, -v)) }),
		"div":  division, "ldiv": division, "lldiv": division, "imaxdiv": division,
		"atof":   floating(func(c numberCall) float64 { return c.double(c.text(0), 0) }),
		"strtod": floating(func(c numberCall) float64 { return c.double(c.text(0), c.addr(1)) }),
		"strtof": floating(func(c numberCall) float64 { return c.single(c.text(0), c.addr(1)) }), "strtold": strtold,
	}
	table["llabs"], table["imaxabs"] = table["labs"], table["labs"]
	for _, name := range []string{"atoi", "atol", "atoll"} { // glibc defines these by strtol
		table[name] = scalar(func(c numberCall) uint64 {
			v, _ := parseInteger(c.text(0), 10, false).signed(c.resultBits())
			return v
		})
	}
	for _, prefix := range []string{"", "__isoc23_"} {
		binary := prefix != "" // C23: 0b for base 2
		for _, name := range []string{"strtol", "strtoll", "strtoimax"} {
			table[prefix+name] = scalar(func(c numberCall) uint64 { return c.integer(integer.signed, binary) })
		}
		for _, name := range []string{"strtoul", "strtoull", "strtoumax"} {
			table[prefix+name] = scalar(func(c numberCall) uint64 { return c.integer(integer.unsigned, binary) })
		}
	}
	for from, to := range map[string]string{"strtoq": "strtol", "strtouq": "strtoul", "__strtol_internal": "strtol", "__strtoul_internal": "strtoul",
		"__strtod_internal": "strtod"} {
		table[from] = table[to]
	}
	return table
}

// integer is the number that strtol has read: its magnitude, and the number of bytes read.
type integer struct {
	v        uint64
	negative bool
	overflow bool // the magnitude does not fit in 64 bits
	n        int
}

// signed clamps the number to a signed integer of width bits. unsigned clamps to an unsigned integer, and then negates it after a minus sign. clamped
// reports whether the number did not fit.
func (i integer) signed(width int) (v uint64, clamped bool) {
	lowest := uint64(1) << (width - 1)
	switch {
	case i.negative && (i.overflow || i.v > lowest):
		return -lowest, true
	case i.negative:
		return -i.v, false
	case i.overflow || i.v >= lowest:
		return lowest - 1, true
	}
	return i.v, false
}

func (i integer) unsigned(width int) (v uint64, clamped bool) {
	switch {
	case i.overflow || i.v > maskAt(width, 0):
		return maskAt(width, 0), true
	case i.negative:
		return -i.v, false
	}
	return i.v, false
}

// integer implements strtol and related functions; result converts the number. It sets errno if the number was clamped.
func (c numberCall) integer(result func(i integer, width int) (uint64, bool), binary bool) uint64 {
	s, base := c.text(0), c.int(2)
	if c.err == nil && (base < 0 || base == 1 || base > 36) {
		c.setErrno(errInvalid)
		return 0
	}
	v := parseInteger(s, int(base), binary)
	c.endedAt(c.addr(1), v.n)
	r, clamped := result(v, c.resultBits())
	if clamped {
		c.setErrno(errRange)
	}
	return r
}

// endedAt stores the address after the number through strtol's second argument, unless that is null.
func (c numberCall) endedAt(end machine.Addr, n int) {
	if end != 0 {
		c.put(end, c.longSize(), c.uint(0)+uint64(n))
	}
}

// parseInteger reads a number as strtol does (C17 7.22.1.4), for a valid base.
func parseInteger(s []byte, base int, binary bool) integer {
	k := 0
	for k < len(s) && isSpace(s[k]) {
		k++
	}
	var v integer
	v.negative = k < len(s) && s[k] == '-'
	if k < len(s) && (s[k] == '-' || s[k] == '+') {
		k++
	}
	prefixed := func(letter byte, as int) bool {
		return (base == 0 || base == as) && k+2 < len(s) && s[k] == '0' && s[k+1]|0x20 == letter && digit(s[k+2]) < as
	}
	switch {
	case prefixed('x', 16):
		k, base = k+2, 16
	case binary && prefixed('b', 2):
		k, base = k+2, 2
	case base == 0 && k < len(s) && s[k] == '0':
		base = 8
	case base == 0:
		base = 10
	}
	first := k
	for ; k < len(s) && digit(s[k]) < base; k++ {
		high, low := bits.Mul64(v.v, uint64(base))
		sum, carry := bits.Add64(low, uint64(digit(s[k])), 0)
		v.overflow = v.overflow || high|carry != 0
		v.v = sum
	}
	if k == first {
		return integer{}
	}
	v.n = k
	return v
}

func digit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b|0x20 >= 'a' && b|0x20 <= 'z':
		return int(b|0x20-'a') + 10
	}
	return 99
}

// division implements div and ldiv (C17 7.22.6.2). The ABI returns {quot, rem} in one integer of 64 bits, in two of them, or in memory (i386 psABI,
// §2.2.4, "Returning Structures and Unions").
func division(i *Invocation) (Value, error) {
	c := &ccall{Invocation: i}
	first := 0
	if len(c.Args) == 3 {
		first = 1 // the first argument is the address of the result
	}
	a, b := c.int(first), c.int(first+1)
	switch {
	case c.err != nil:
		return Value{}, c.err
	case b == 0:
		return Value{}, troublef(KindDivision, "@%s by zero", c.Name)
	case b == -1 && a == minOf(c.Args[first].s.bits):
		return Value{}, troublef(KindDivision, "@%s of the lowest value by -1", c.Name)
	}
	if first == 1 {
		size := c.Args[first].s.bits / 8
		c.put(c.addr(0), size, uint64(a/b))
		c.put(c.addr(0)+machine.Addr(size), size, uint64(a%b))
		return Value{}, c.err
	}
	if c.ret.bits == 64 {
		return c.Return(uint64(uint32(a/b)) | uint64(a%b)<<32)
	}
	if c.ret.n != 2 || c.ret.words != 2 {
		return Value{}, c.mistyped()
	}
	w := make([]word, 2)
	for k, v := range []int64{a / b, a % b} {
		part, _, _ := c.ret.part(k)
		w[k] = word{v: uint64(v) & maskAt(part.bits, 0)}
	}
	return Value{c.ret, w}, nil
}

func minOf(bits int) int64 { return -1 << (bits - 1) }
