package interp

import (
	"bytes"
	"fmt"
	"strings"

	"reframe/deopt/machine"
)

// strftime is C17 7.27.3.5 in the locale "C", with what POSIX and GNU add: flags and a width before a conversion, and
// %G %g %k %l %P %s %+. Of a buffer that is too small it stores nothing.
func strftime(c *ccall) uint64 {
	to, size, format := c.addr(0), c.uint(1), c.text(2)
	f := dateText{date: date{c, c.addr(3)}, limit: size}
	f.text(format, 0)
	if c.err != nil || uint64(f.out.Len()) >= size {
		return 0
	}
	n := uint64(f.out.Len())
	c.write(to, append(f.out.Bytes(), 0))
	return n
}

type dateText struct {
	date
	out   bytes.Buffer
	limit uint64 // there is no need to go on from here
}

// A dateSpec holds the flags and the width between the percent sign and the letter.
type dateSpec struct {
	pad   byte // '_', '-', '0', '+', or 0 where none is given
	upper bool // ^
	swap  bool // #
	width int  // -1 where none is given
}

// unmodified are the conversions that glibc does not know with a modifier.
var unmodified = map[byte]string{'E': "aAbBdDeFgGhHIjklmMSUVwW", 'O': "aAcDFxXY"}

// maxDateFormats bounds the nesting of conversions that expand to formats.
const maxDateFormats = 2

func (f *dateText) text(format []byte, depth int) {
	for k := 0; k < len(format) && f.c.err == nil && uint64(f.out.Len()) < f.limit; k++ {
		if format[k] != '%' {
			f.out.WriteByte(format[k])
			continue
		}
		start := k
		v := dateSpec{width: -1}
		for k++; k < len(format) && strings.IndexByte("_-0+^#", format[k]) >= 0; k++ {
			switch format[k] {
			case '^':
				v.upper = true
			case '#':
				v.swap = true
			default:
				v.pad = format[k]
			}
		}
		for ; k < len(format) && format[k] >= '0' && format[k] <= '9'; k++ {
			v.width = min(max(v.width, 0)*10+int(format[k]-'0'), 1<<20)
		}
		modifier := byte(0)
		if k < len(format) && (format[k] == 'E' || format[k] == 'O') {
			modifier, k = format[k], k+1
		}
		if k >= len(format) || strings.IndexByte(unmodified[modifier], format[k]) >= 0 || !f.convert(v, format[k], depth) {
			f.words(dateSpec{pad: v.pad, width: v.width}, string(format[start:min(k+1, len(format))])) // one that is none stands for itself
		}
	}
}

// convert writes one conversion. It returns false for an unknown letter.
func (f *dateText) convert(v dateSpec, letter byte, depth int) bool {
	nested := map[byte]string{
		'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'x': "%m/%d/%y", 'F': "%Y-%m-%d", 'r': "%I:%M:%S %p", 'R': "%H:%M", 'T': "%H:%M:%S",
		'X': "%H:%M:%S",
	}
	switch letter {
	case '%':
		f.words(v, "%")
	case 'n':
		f.words(v, "\n")
	case 't':
		f.words(v, "\t")
	case 'a':
		f.words(v, short(nameOf(dayNames[:], f.field(tmWday))))
	case 'A':
		f.words(v, nameOf(dayNames[:], f.field(tmWday)))
	case 'b', 'h':
		f.words(v, short(nameOf(monthNames[:], f.field(tmMon))))
	case 'B':
		f.words(v, nameOf(monthNames[:], f.field(tmMon)))
	case 'p', 'P':
		f.noon(v, letter)
	case 'Z':
		f.zone(v)
	case 'c', 'D', 'x', 'F', 'r', 'R', 'T', 'X':
		v.swap = false
		if letter == 'F' && (v.pad != 0 || v.width >= 0) {
			f.c.fail(unsupported("", "@%s with flags or a width for %%F", f.c.Name))
		}
		inner := dateText{date: f.date, limit: f.limit}
		if depth < maxDateFormats {
			inner.text([]byte(nested[letter]), depth+1)
		}
		f.words(v, inner.out.String())
	default:
		return f.number(v, letter)
	}
	return true
}

// words writes text in its width, spaces before it.
func (f *dateText) words(v dateSpec, s string) {
	switch {
	case v.upper:
		s = strings.ToUpper(s)
	case v.swap:
		s = strings.ToUpper(s) // of names; what has no lower case stays
	}
	fill := byte(' ')
	if v.pad == '0' || v.pad == '+' {
		fill = '0'
	}
	f.repeat(fill, v.width-len(s))
	f.out.WriteString(s)
}

func (f *dateText) repeat(b byte, n int) {
	if n <= 0 || f.c.err != nil {
		return
	}
	if f.c.err = f.c.in.work(uint64(n)); f.c.err == nil {
		f.out.Write(bytes.Repeat([]byte{b}, n))
	}
}

// noon is AM or PM, which # makes small.
func (f *dateText) noon(v dateSpec, letter byte) {
	s := "AM"
	if f.field(tmHour) > 11 {
		s = "PM"
	}
	if letter == 'P' || v.swap {
		s, v.swap, v.upper = strings.ToLower(s), false, v.upper && letter != 'P'
	}
	f.words(v, s)
}

// zone is the name that the date has, which # makes small.
func (f *dateText) zone(v dateSpec) {
	c, s := f.c, ""
	size := c.longSize()
	if a := machine.Addr(c.get(f.at+c.zoneAt()+machine.Addr(size), size)); a != 0 {
		s = string(c.textAt(a, ^uint64(0)))
	}
	if v.swap {
		s, v.swap = strings.ToLower(s), false
	}
	f.words(v, s)
}

// number writes one of the conversions to digits. It returns false for an unknown letter.
func (f *dateText) number(v dateSpec, letter byte) bool {
	hour := func() int64 { // of a clock with twelve
		switch h := f.field(tmHour); {
		case h > 12:
			return h - 12
		case h == 0:
			return 12
		default:
			return h
		}
	}
	switch letter {
	case 'C':
		f.digits(v, floorDiv(f.year(), 100), 1, '0')
	case 'y':
		f.digits(v, f.year()-100*floorDiv(f.year(), 100), 2, '0')
	case 'Y':
		f.digits(v, f.year(), 1, '0')
	case 'G', 'g', 'V':
		year, week := f.isoWeek()
		switch letter {
		case 'G':
			f.digits(v, year, 1, '0')
		case 'g':
			f.digits(v, year-100*floorDiv(year, 100), 2, '0')
		default:
			f.digits(v, week, 2, '0')
		}
	case 'd':
		f.digits(v, f.field(tmMday), 2, '0')
	case 'e':
		f.digits(v, f.field(tmMday), 2, '_')
	case 'H':
		f.digits(v, f.field(tmHour), 2, '0')
	case 'I':
		f.digits(v, hour(), 2, '0')
	case 'k':
		f.digits(v, f.field(tmHour), 2, '_')
	case 'l':
		f.digits(v, hour(), 2, '_')
	case 'j':
		f.digits(v, f.field(tmYday)+1, 3, '0')
	case 'm':
		f.digits(v, f.field(tmMon)+1, 2, '0')
	case 'M':
		f.digits(v, f.field(tmMin), 2, '0')
	case 'S':
		f.digits(v, f.field(tmSec), 2, '0')
	case 's':
		f.words(v, fmt.Sprint(f.second()))
	case 'u':
		f.digits(v, (f.field(tmWday)+6)%7+1, 1, '0')
	case 'w':
		f.digits(v, f.field(tmWday), 1, '0')
	case 'U':
		f.digits(v, (f.field(tmYday)-f.field(tmWday)+7)/7, 2, '0')
	case 'W':
		f.digits(v, (f.field(tmYday)-(f.field(tmWday)+6)%7+7)/7, 2, '0')
	case 'z':
		f.offset(v)
	default:
		return false
	}
	return true
}

// digits writes a number with at least this many digits, or filled up to the width.
func (f *dateText) digits(v dateSpec, n int64, least int, fill byte) {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if v.pad != 0 {
		fill = v.pad
	}
	s := fmt.Sprint(n)
	switch fill {
	case '-':
		f.repeat(' ', v.width-len(sign)-len(s))
		f.out.WriteString(sign + s)
		return
	case '+':
		f.c.fail(unsupported("", "@%s with the flag +", f.c.Name))
		return
	}
	missing := max(least, v.width) - len(sign) - len(s)
	if fill == '_' {
		f.repeat(' ', missing)
		f.out.WriteString(sign + s)
		return
	}
	f.out.WriteString(sign)
	f.repeat('0', missing)
	f.out.WriteString(s)
}

// offset writes the offset of the zone from UTC, or nothing where tm_isdst is negative.
func (f *dateText) offset(v dateSpec) {
	if f.field(tmIsdst) < 0 {
		return
	}
	if v.pad != 0 || v.width >= 0 {
		f.c.fail(unsupported("", "@%s with flags or a width for %%z", f.c.Name))
		return
	}
	size := f.c.longSize()
	n := int64(f.c.get(f.at+f.c.zoneAt(), size))
	if size == 4 {
		n = int64(int32(n))
	}
	sign := '+'
	if n < 0 {
		sign, n = '-', -n
	}
	fmt.Fprintf(&f.out, "%c%02d%02d", sign, n/3600, n/60%60)
}

// isoWeek is the week of ISO 8601 and the year that it belongs to: that of its Thursday.
func (f *dateText) isoWeek() (year, week int64) {
	year = f.year()
	// The day of the year, from 0, of this week's Thursday.
	thursday := f.field(tmYday) - (f.field(tmWday)+6)%7 + 3
	switch days := daysOf(year); {
	case thursday < 0:
		year--
		thursday += daysOf(year)
	case thursday >= days:
		thursday -= days
		year++
	}
	return year, thursday/7 + 1
}

func daysOf(year int64) int64 {
	if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 366
	}
	return 365
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
