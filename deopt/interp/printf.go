package interp

import (
	"bytes"
	"strings"

	"example.com/reframe/internal/machine"
)

// maxField is the maximum width and precision of one conversion.
const maxField = 1 << 16

// printer describes one form of printf: where it writes, and the indices of its arguments.
type printer struct {
	to     sink
	dest   int // index of the stream, descriptor or buffer
	size   int // index of the buffer's size, -1 if there is no limit
	object int // index of the object's size for _FORTIFY_SOURCE, -1 for none
	format int
	list   bool // the function takes a va_list instead of variadic arguments
}

type sink uint8

const (
	toOutput sink = iota
	toStream
	toDescriptor
	toMemory
	toNewMemory
)

var printfFuncs = printfTable()

// printfTable returns the forms of printf in C17 7.21.6, POSIX and glibc. Those of _FORTIFY_SOURCE have an additional flag argument. Each form also
// has a variant with a va_list.
func printfTable() map[string]Builtin {
	table := map[string]Builtin{}
	for name, p := range map[string]printer{
		"printf":         {to: toOutput, size: -1, object: -1, format: 0},
		"fprintf":        {to: toStream, size: -1, object: -1, format: 1},
		"dprintf":        {to: toDescriptor, size: -1, object: -1, format: 1},
		"sprintf":        {to: toMemory, size: -1, object: -1, format: 1},
		"snprintf":       {to: toMemory, size: 1, object: -1, format: 2},
		"asprintf":       {to: toNewMemory, size: -1, object: -1, format: 1},
		"__printf_chk":   {to: toOutput, size: -1, object: -1, format: 1},
		"__fprintf_chk":  {to: toStream, size: -1, object: -1, format: 2},
		"__dprintf_chk":  {to: toDescriptor, size: -1, object: -1, format: 2},
		"__sprintf_chk":  {to: toMemory, size: -1, object: 2, format: 3},
		"__snprintf_chk": {to: toMemory, size: 1, object: 3, format: 4},
		"__asprintf_chk": {to: toNewMemory, size: -1, object: -1, format: 2},
	} {
		table[name] = scalar(func(c streamCall) uint64 { return p.print(c) })
		listed := p
		listed.list = true
		head := strings.TrimSuffix(name, strings.TrimLeft(name, "_"))
		table[head+"v"+name[len(head):]] = scalar(func(c streamCall) uint64 { return listed.print(c) })
	}
	return table
}

func (p printer) print(c streamCall) uint64 {
	fd := 1
	switch p.to {
	case toStream:
		fd = c.stream(p.dest)
	case toDescriptor:
		n := c.int(p.dest)
		if n != 1 && n != 2 {
			return c.failed(errBadFile)
		}
		fd = int(n)
	}
	f := &formatter{c: c.ccall, list: p.list, next: p.format + 1}
	out, ok := f.format(c.text(p.format))
	if c.err != nil || p.to == toNewMemory && !ok {
		return eof
	}
	switch p.to {
	case toMemory:
		p.store(c, out)
	case toNewMemory:
		c.put(c.addr(p.dest), c.longSize(), stringCall(c).duplicate(out))
	default:
		ok = c.print(fd, out) && ok
	}
	if !ok {
		return eof
	}
	return uint64(len(out))
}

func (p printer) store(c streamCall, out []byte) {
	limit := ^uint64(0)
	if p.size >= 0 {
		limit = c.uint(p.size)
	}
	if p.object >= 0 {
		if room := c.uint(p.object); p.size < 0 && room <= uint64(len(out)) || p.size >= 0 && room < limit {
			c.terminated("buffer overflow detected")
		}
	}
	c.truncated(c.addr(p.dest), out, limit)
}

// conversion is one % of a format (C17 7.21.6.1). Arguments count from 0; -1 means none.
type conversion struct {
	minus, plus, space, alt, zero bool
	width, precision              int // precision is -1 if not given
	widthArg, precisionArg, arg   int
	length                        string
	verb                          byte
	before                        []byte // text before the conversion
}

// formatter formats the arguments of a call or of a va_list.
type formatter struct {
	c    *ccall
	list bool
	next int          // index of the call's first argument after the format
	va   machine.Addr // address of the va_list, 0 before its first use
	args []argument
	out  []byte
}

// format returns the formatted text. It returns false if printf must return an error: then it has set errno, and the text ends before the failed
// conversion, because glibc prints that part.
func (f *formatter) format(format []byte) ([]byte, bool) {
	list, rest, err := parseFormat(format)
	f.c.fail(err)
	if f.c.err == nil {
		f.fetch(list)
	}
	for _, v := range list {
		if f.c.err != nil {
			return nil, false
		}
		f.add(v.before)
		if !f.convert(v) {
			return f.out, false
		}
	}
	f.add(rest)
	return f.out, f.c.err == nil
}

func (f *formatter) add(text []byte) {
	if f.c.err == nil && uint64(len(f.out)+len(text)) > f.c.in.view.limit {
		f.c.err = troublef(KindMemory, "formatted text of more than %d bytes", f.c.in.view.limit)
	}
	if f.c.err == nil {
		f.out = append(f.out, text...) // append before the next conversion, because %n stores the number of bytes in out
	}
}

// parseFormat returns the conversions of a format, and the text after the last one.
func parseFormat(format []byte) (list []conversion, rest []byte, err error) {
	next := 0
	for {
		percent := bytes.IndexByte(format, '%')
		if percent < 0 {
			return list, format, nil
		}
		p := formatParser{rest: format[percent+1:], next: &next}
		v, err := p.conversion()
		if err != nil {
			return nil, nil, err
		}
		v.before = format[:percent]
		list = append(list, v)
		format = p.rest
	}
}

type formatParser struct {
	rest []byte
	next *int // the next argument for a conversion without an argument number
}

func (p *formatParser) at() byte {
	if len(p.rest) == 0 {
		return 0
	}
	return p.rest[0]
}

func (p *formatParser) take() { p.rest = p.rest[1:] }

// number reads digits. Above maxField it only records that the number is too large.
func (p *formatParser) number() (n int) {
	for ; p.at() >= '0' && p.at() <= '9'; p.take() {
		n = min(10*n+int(p.at()-'0'), maxField+1)
	}
	return n
}

// position reads the n$ of a numbered argument (POSIX), or returns the next one.
func (p *formatParser) position() int {
	saved := p.rest
	if n := p.number(); n > 0 && p.at() == '$' {
		p.take()
		return n - 1
	}
	p.rest = saved
	*p.next++
	return *p.next - 1
}

func (p *formatParser) conversion() (v conversion, err error) {
	v = conversion{precision: -1, widthArg: -1, precisionArg: -1, arg: -1}
	saved := p.rest
	if n := p.number(); n > 0 && p.at() == '$' {
		p.take()
		v.arg = n - 1
	} else {
		p.rest = saved
	}
	for flags := map[byte]*bool{'-': &v.minus, '+': &v.plus, ' ': &v.space, '#': &v.alt, '0': &v.zero, '\'': new(bool), 'I': new(bool)}; flags[p.at()] != nil; p.take() {
		*flags[p.at()] = true // ' and I have no effect in the "C" locale
	}
	if p.at() == '*' {
		p.take()
		v.widthArg = p.position()
	} else {
		v.width = p.number()
	}
	if p.at() == '.' {
		p.take()
		if p.at() == '*' {
			p.take()
			v.precisionArg = p.position()
		} else {
			v.precision = p.number()
		}
	}
	start := p.rest
	for bytes.IndexByte([]byte("hlLqjztZ"), p.at()) >= 0 && p.at() != 0 {
		p.take()
	}
	v.length = string(start[:len(start)-len(p.rest)])
	if v.verb = p.at(); v.verb == 0 {
		return v, troublef(KindModule, "a format that ends inside a conversion")
	}
	p.take()
	switch v.verb {
	case '%', 'm':
		v.arg = -1
	default:
		if v.arg < 0 {
			v.arg = *p.next
			*p.next++
		}
	}
	if max(v.arg, v.widthArg, v.precisionArg) >= maxPositions {
		return v, unsupported("", "a format with more than %d arguments", maxPositions)
	}
	return v, v.bounded()
}

// maxPositions is the maximum number of arguments of one format; C guarantees 127.
const maxPositions = 4096

func (v conversion) bounded() error {
	if v.width > maxField || v.precision > maxField {
		return unsupported("", "a format with a field of more than %d bytes", maxField)
	}
	return nil
}

// convert formats one conversion.
func (f *formatter) convert(v conversion) bool {
	if !f.stars(&v) {
		return false
	}
	if f.c.fail(f.c.in.work(64)); f.c.err != nil {
		return false
	}
	switch v.verb {
	case '%':
		f.add([]byte{'%'})
	case 'd', 'i', 'u', 'x', 'X', 'o':
		f.add([]byte(v.integer(v.fit(f.args[v.arg].low, f.c.longSize()))))
	case 'p':
		f.add([]byte(v.pointer(f.args[v.arg].low)))
	case 'c', 'C':
		return f.character(v)
	case 's', 'S':
		return f.str(v)
	case 'm':
		f.add([]byte(v.clipped(errorText(int64(int32(f.c.get(f.c.errnoAddr(), 4)))))))
	case 'n':
		f.c.put(machine.Addr(f.args[v.arg].low), v.size(f.c.longSize())/8, uint64(len(f.out)))
	default: // parse and fetch accept nothing else
		x := f.args[v.arg].number(v.length == "L")
		if f.c.fail(f.c.in.work(x.cost())); f.c.err == nil {
			f.add([]byte(v.float(x)))
		}
	}
	return f.c.err == nil
}

// stars sets a width or precision of * from its argument.
func (f *formatter) stars(v *conversion) bool {
	if v.widthArg >= 0 {
		v.width = int(int32(f.args[v.widthArg].low))
		if v.width < 0 {
			v.minus, v.width = true, -v.width
		}
	}
	if v.precisionArg >= 0 {
		v.precision = max(int(int32(f.args[v.precisionArg].low)), -1)
	}
	f.c.fail(v.bounded())
	return f.c.err == nil
}
