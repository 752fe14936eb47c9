package interp

import (
	"math"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
)

func (v conversion) integer(n uint64) string {
	sign := ""
	var digits string
	switch v.verb {
	case 'd', 'i':
		switch {
		case int64(n) < 0:
			sign, n = "-", -n
		case v.plus:
			sign = "+"
		case v.space:
			sign = " "
		}
		digits = strconv.FormatUint(n, 10)
	case 'u':
		digits = strconv.FormatUint(n, 10)
	case 'o':
		digits = strconv.FormatUint(n, 8)
	default:
		digits = strconv.FormatUint(n, 16)
		if v.alt && n != 0 {
			sign = "0x"
		}
	}
	if n == 0 && v.precision == 0 {
		digits = ""
	}
	if missing := v.precision - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if v.verb == 'o' && v.alt && !strings.HasPrefix(digits, "0") {
		digits = "0" + digits
	}
	if v.verb == 'X' {
		sign, digits = strings.ToUpper(sign), strings.ToUpper(digits)
	}
	return v.pad(sign, digits, v.zero && v.precision < 0)
}

// pad pads to the width. Zeros go between the sign and the digits.
func (v conversion) pad(sign, body string, zero bool) string {
	n := v.width - len(sign) - len(body)
	switch {
	case n <= 0:
		return sign + body
	case v.minus:
		return sign + body + strings.Repeat(" ", n)
	case zero:
		return sign + strings.Repeat("0", n) + body
	}
	return strings.Repeat(" ", n) + sign + body
}

// pointer formats a pointer as glibc does: like %#lx with the flags for signs, and as (nil) if it is null.
func (v conversion) pointer(p uint64) string {
	if p == 0 {
		return v.pad("", "(nil)", false)
	}
	digits := strconv.FormatUint(p, 16)
	if missing := v.precision - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	sign := "0x"
	switch {
	case v.plus:
		sign = "+0x"
	case v.space:
		sign = " 0x"
	}
	return v.pad(sign, digits, v.zero && v.precision < 0)
}

// clipped cuts a string to as many bytes as the precision, and pads it to the width.
func (v conversion) clipped(s string) string {
	if v.precision >= 0 {
		s = s[:min(len(s), v.precision)]
	}
	return v.pad("", s, false)
}

// wideByte converts a wide character in the "C" locale, which has only ASCII.
func (f *formatter) wideByte(w uint64) (byte, bool) {
	if w > 127 {
		f.c.setErrno(errIllegalCh)
		return 0, false
	}
	return byte(w), true
}

func (f *formatter) character(v conversion) bool {
	b := byte(f.args[v.arg].low)
	if v.length == "l" || v.verb == 'C' {
		var ok bool
		if b, ok = f.wideByte(f.args[v.arg].low & 0xffffffff); !ok {
			return false
		}
	}
	f.add([]byte(v.pad("", string([]byte{b}), false)))
	return f.c.err == nil
}

func (f *formatter) str(v conversion) bool {
	a := machine.Addr(f.args[v.arg].low)
	if a == 0 { // glibc prints (null), unless the precision is less than its length
		word := "(null)"
		if v.precision >= 0 && v.precision < len(word) {
			word = ""
		}
		f.add([]byte(v.pad("", word, false)))
		return f.c.err == nil
	}
	limit := uint64(math.MaxUint64)
	if v.precision >= 0 {
		limit = uint64(v.precision)
	}
	var s []byte
	if v.length == "l" || v.verb == 'S' {
		for uint64(len(s)) < limit && f.c.err == nil {
			w := f.c.get(a+machine.Addr(4*len(s)), 4)
			f.c.fail(f.c.in.work(64))
			if w == 0 {
				break
			}
			b, ok := f.wideByte(w)
			if !ok {
				return false
			}
			s = append(s, b)
		}
	} else {
		s = f.c.textAt(a, limit)
	}
	f.add([]byte(v.pad("", string(s), false)))
	return f.c.err == nil
}
