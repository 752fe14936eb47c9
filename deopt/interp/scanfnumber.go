package interp

import (
	"math"
	"slices"

	"reframe/deopt/ir"
)

// field collects the bytes of a number, of which there may be left more.
type field struct {
	s    *scanner
	left int
	text []byte
	last byte
	have bool // last was read and is not in text
}

func (s *scanner) field(width int) *field {
	if width == 0 {
		width = math.MaxInt32
	}
	f := &field{s: s, left: width}
	f.peek()
	return f
}

func (f *field) peek() {
	f.have = false
	if f.left > 0 && len(f.text) <= maxNumber {
		f.last, f.have = f.s.take()
	}
}

// maxNumber bounds the text of a number, which glibc does not.
const maxNumber = 1 << 20

// is reports whether the next byte is one of these.
func (f *field) is(list string) bool { return f.have && slices.Contains([]byte(list), f.last) }

// keep takes the next byte into the text.
func (f *field) keep() {
	f.text = append(f.text, f.last)
	f.drop()
}

// drop takes the next byte and leaves it out.
func (f *field) drop() {
	f.left--
	f.peek()
}

func (f *field) end() {
	if f.have {
		f.s.back(f.last)
		f.have = false
	}
}

var bases = map[byte]int{'d': 10, 'u': 10, 'i': 0, 'x': 16, 'X': 16, 'p': 16, 'o': 8}

// integer takes as many bytes as glibc: of 0x with no digit after it, both.
func (s *scanner) integer(d directive) scanned {
	f := s.field(d.width)
	base := bases[d.verb]
	if d.verb == 'p' && f.is("(") {
		return s.null(d, f)
	}
	if f.is("+-") {
		f.keep()
	}
	if f.is("0") {
		f.keep()
		switch {
		case f.is("xX") && (base == 0 || base == 16):
			base = 16
			f.drop()
		case base == 0:
			base = 8
		}
	}
	if base == 0 {
		base = 10
	}
	for f.have && digit(f.last) < base {
		f.keep()
	}
	f.end()
	v := parseInteger(f.text, base, false)
	if v.n == 0 {
		return mismatched
	}
	// As a long, or as a long long where the length asks for one (glibc).
	width := max(conversion{length: d.length}.size(s.c.longSize()), 8*s.c.longSize())
	n, _ := v.unsigned(width)
	if d.verb == 'd' || d.verb == 'i' {
		n, _ = v.signed(width)
	}
	s.storeInteger(d, n)
	return matched
}

func (s *scanner) storeInteger(d directive, n uint64) {
	if d.discard {
		return
	}
	size := conversion{length: d.length}.size(s.c.longSize()) / 8
	if d.verb == 'p' {
		size = s.c.longSize()
	}
	if size == 0 {
		s.c.err = unsupported("", "the conversion %%%s%c of @%s", d.length, d.verb, s.c.Name)
		return
	}
	s.c.put(s.target(), size, n)
	s.done++
}

// null reads the (nil) that printf writes.
func (s *scanner) null(d directive, f *field) scanned {
	for _, b := range []byte("(nil)") {
		if !f.have || lower(f.last) != b {
			f.end()
			return mismatched
		}
		f.keep()
	}
	f.end()
	s.storeInteger(d, 0)
	return matched
}

// float takes as many bytes as glibc, which reads 1e+ and makes 1 of it.
func (s *scanner) float(d directive) scanned {
	f := s.field(d.width)
	if f.is("+-") {
		f.keep()
	}
	ok := true
	switch {
	case f.is("nN"):
		ok = f.word("nan")
	case f.is("iI"):
		if ok = f.word("inf"); ok && f.is("iI") {
			ok = f.word("inity")
		}
	default:
		ok = f.digits()
	}
	f.end()
	if !ok {
		return mismatched
	}
	return s.storeFloat(d, f.text)
}

func (f *field) word(w string) bool {
	for _, b := range []byte(w) {
		if !f.have || lower(f.last) != b {
			return false
		}
		f.keep()
	}
	return true
}

// digits takes the characters of a decimal or hexadecimal number; it returns false for 0x alone. As in glibc, an x that ends the field is not part of
// it, and 0x before a point is the number 0.
func (f *field) digits() bool {
	radix, mark := 10, "eE"
	any, point, exponent := false, false, false
	if f.is("0") {
		f.keep()
		if f.is("xX") && f.left > 1 {
			f.keep()
			radix, mark = 16, "pP"
		} else {
			any = true
		}
	}
	start := len(f.text)
	for ; f.have; f.keep() {
		switch {
		case digit(f.last) < 10 || !exponent && digit(f.last) < radix:
			any = true
		case any && !exponent && f.is(mark):
			exponent, point = true, true
		case exponent && f.is("+-") && slices.Contains([]byte(mark), f.text[len(f.text)-1]):
		case !point && f.is("."):
			point = true
		default:
			return radix == 10 || len(f.text) > start
		}
	}
	return radix == 10 || len(f.text) > start
}

func (s *scanner) storeFloat(d directive, text []byte) scanned {
	if parseFloat(text).n == 0 {
		return mismatched
	}
	if d.discard {
		return matched
	}
	switch d.length {
	case "":
		s.c.put(s.target(), 4, floatBits(ir.FloatKind, s.c.single(text, 0)))
	case "l":
		s.c.put(s.target(), 8, math.Float64bits(s.c.double(text, 0)))
	case "L":
		a := s.target()
		low, high := s.c.x87(text, 0)
		s.c.put(a, 8, low)
		s.c.put(a+8, 2, high)
	default:
		s.c.err = unsupported("", "the conversion %%%s%c of @%s", d.length, d.verb, s.c.Name)
	}
	s.done++
	return matched
}
