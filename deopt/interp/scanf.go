package interp

import (
	"bytes"

	"reframe/deopt/machine"
)

// scanfFuncs are the forms of scanf (C17 7.21.6.2), each also with a va_list and
// under the names that glibc gives them for C99 and C23.
var scanfFuncs = scanfTable()

func scanfTable() map[string]Builtin {
	table := map[string]Builtin{}
	for _, prefix := range []string{"", "__isoc99_", "__isoc23_"} {
		for _, list := range []bool{false, true} {
			name := prefix
			if list {
				name += "v"
			}
			table[name+"scanf"] = scalar(func(c *ccall) uint64 {
				return (&scanner{c: c, list: list, next: 1}).scan(c.text(0))
			})
			table[name+"fscanf"] = scalar(func(c *ccall) uint64 {
				return (&scanner{c: c, fd: c.stream(0), list: list, next: 2}).scan(c.text(1))
			})
			table[name+"sscanf"] = scalar(func(c *ccall) uint64 {
				return (&scanner{c: c, str: c.from(c.addr(0)), list: list, next: 2}).scan(c.text(1))
			})
		}
	}
	return table
}

// scanner reads a stream or a string by a format.
type scanner struct {
	c     *ccall
	fd    int          // of the stream
	str   *cursor      // instead of a stream
	list  bool         // argument next is a va_list
	next  int          // the argument that the next conversion stores to
	va    machine.Addr // of the va_list, once it is read
	read  int          // bytes
	done  int          // conversions that stored
	held  []byte       // of a string: what was put back
	ended bool         // of a string: its end was read
}

// scanned is the outcome of a directive.
type scanned uint8

const (
	matched scanned = iota
	mismatched
	noInput
)

// scan is scanf; as in glibc, input that ends before anything was stored is EOF.
func (s *scanner) scan(format []byte) uint64 {
	for len(format) > 0 && s.c.err == nil {
		var r scanned
		switch {
		case isSpace(format[0]):
			s.skipSpace()
			format = format[1:]
		case format[0] != '%':
			r = s.literal(format[0])
			format = format[1:]
		default:
			var d directive
			d, format = s.directive(format[1:])
			r = s.convert(d)
		}
		if r == noInput && s.done == 0 {
			return eof
		}
		if r != matched {
			break
		}
	}
	return uint64(s.done)
}

// take reads a byte; false at the end, and after an error.
func (s *scanner) take() (byte, bool) {
	var b byte
	ok := false
	switch {
	case s.str == nil && s.c.err == nil:
		b, ok = s.c.next(s.fd)
	case len(s.held) > 0:
		b, ok = s.held[0], true
		s.held = nil
	case !s.ended:
		b = s.str.next()
		ok = s.c.err == nil && b != 0
		s.ended = !ok
	}
	if ok {
		s.read++
	}
	return b, ok && s.c.err == nil
}

// back undoes a take.
func (s *scanner) back(b byte) {
	s.read--
	if s.str != nil {
		s.held = []byte{b}
		return
	}
	s.c.back(s.fd, b)
}

// skipSpace reports whether there is anything after it.
func (s *scanner) skipSpace() bool {
	for {
		b, ok := s.take()
		if !ok {
			return false
		}
		if !isSpace(b) {
			s.back(b)
			return true
		}
	}
}

func (s *scanner) literal(want byte) scanned {
	b, ok := s.take()
	switch {
	case !ok:
		return noInput
	case b != want:
		s.back(b)
		return mismatched
	}
	return matched
}

// directive is one % of a format.
type directive struct {
	discard bool
	width   int // 0: not given
	length  string
	verb    byte
	set     [256]bool
}

func (s *scanner) directive(f []byte) (d directive, rest []byte) {
	p := formatParser{rest: f}
	if p.at() == '*' {
		d.discard = true
		p.take()
	}
	for p.at() == '\'' || p.at() == 'I' {
		p.take()
	}
	d.width = p.number()
	if p.at() == '$' || d.width > maxField {
		s.c.fail(unsupported("", "a format of @%s with arguments by number, or a field of more than %d bytes,", s.c.Name, maxField))
	}
	start := p.rest
	for p.at() != 0 && bytes.IndexByte([]byte("hlLqjzt"), p.at()) >= 0 {
		p.take()
	}
	d.length = string(start[:len(start)-len(p.rest)])
	if d.verb = p.at(); d.verb == 0 {
		s.c.fail(troublef(KindModule, "a format that ends inside of a conversion"))
		return d, nil
	}
	p.take()
	if d.verb == '[' {
		p.rest = d.scanset(p.rest)
	}
	return d, p.rest
}

// scanset reads the bytes between [ and ], with ranges as glibc has them.
func (d *directive) scanset(f []byte) []byte {
	invert := len(f) > 0 && f[0] == '^'
	if invert {
		f = f[1:]
	}
	for k := 0; k < len(f); k++ {
		switch {
		case f[k] == ']' && k > 0:
			if invert {
				for b := range d.set {
					d.set[b] = !d.set[b]
				}
			}
			return f[k+1:]
		case f[k] == '-' && k > 0 && k+1 < len(f) && f[k+1] != ']' && f[k-1] <= f[k+1]:
			for b := int(f[k-1]); b <= int(f[k+1]); b++ {
				d.set[b] = true
			}
			k++
		default:
			d.set[f[k]] = true
		}
	}
	return nil
}

func (s *scanner) convert(d directive) scanned {
	if s.c.fail(s.c.in.work(64)); s.c.err != nil {
		return mismatched
	}
	switch d.verb {
	case 'n':
		if !d.discard {
			s.c.put(s.target(), conversion{length: d.length}.size(s.c.longSize())/8, uint64(s.read))
		}
		return matched
	case '%':
		if !s.skipSpace() {
			return noInput
		}
		return s.literal('%')
	case 'c':
		return s.chars(d, max(d.width, 1), func(byte) bool { return true })
	case '[':
		return s.chars(d, d.width, func(b byte) bool { return d.set[b] })
	}
	if !s.skipSpace() {
		return noInput
	}
	switch d.verb {
	case 's':
		return s.chars(d, d.width, func(b byte) bool { return !isSpace(b) })
	case 'd', 'i', 'u', 'x', 'X', 'o', 'p':
		return s.integer(d)
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		return s.float(d)
	}
	s.c.err = unsupported("", "the conversion %%%s%c of @%s", d.length, d.verb, s.c.Name)
	return mismatched
}

// target is the address that the next conversion stores to.
func (s *scanner) target() machine.Addr {
	if s.list {
		if s.va == 0 {
			s.va = s.c.addr(s.next)
		}
		low, _ := s.c.vaArg(&s.va, argPtr)
		return machine.Addr(low)
	}
	s.next++
	return s.c.addr(s.next - 1)
}

// chars implements %c, %s and %[: it takes bytes as long as they fit. The memory that is written bounds what it stores.
func (s *scanner) chars(d directive, width int, fits func(byte) bool) scanned {
	if d.length != "" {
		s.c.err = unsupported("", "the conversion %%%s%c of @%s", d.length, d.verb, s.c.Name)
		return mismatched
	}
	var text []byte
	for width == 0 || len(text) < width {
		b, ok := s.take()
		if !ok && len(text) == 0 {
			return noInput
		}
		if !ok {
			break
		}
		if !fits(b) {
			s.back(b)
			break
		}
		if text = append(text, b); uint64(len(text)) > s.c.in.view.limit {
			s.c.err = troublef(KindMemory, "@%s reads a field of more than %d bytes", s.c.Name, s.c.in.view.limit)
		}
	}
	if len(text) == 0 {
		return mismatched
	}
	if !d.discard {
		if d.verb != 'c' {
			text = append(text, 0)
		}
		s.c.write(s.target(), text)
		s.done++
	}
	return matched
}
