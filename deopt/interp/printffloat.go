package interp

import (
	"math"
	"strconv"
	"strings"
)

func (v conversion) float(x number) string {
	sign := ""
	switch {
	case x.negative:
		sign = "-"
	case v.plus:
		sign = "+"
	case v.space:
		sign = " "
	}
	body, zero := x.special, v.zero && x.special == ""
	switch {
	case body != "":
	case v.verb|0x20 == 'a':
		sign += "0x"
		body = v.hexadecimal(x)
	default:
		body = v.decimal(x)
	}
	if v.verb < 'a' {
		sign, body = strings.ToUpper(sign), strings.ToUpper(body)
	}
	return v.pad(sign, body, zero)
}

// text returns the number in the style e or f, with digits digits after the point.
func (x number) text(style byte, digits int) string {
	if x.wide != nil {
		return x.wide.Text(style, digits)
	}
	return strconv.FormatFloat(x.double, style, digits, 64)
}

func (v conversion) decimal(x number) string {
	precision := v.precision
	if precision < 0 {
		precision = 6
	}
	switch v.verb {
	case 'f', 'F':
		return v.point(x.text('f', precision))
	case 'e', 'E':
		return v.point(x.text('e', precision))
	}
	// For %g, the exponent that %e would print selects the style.
	precision = max(precision, 1)
	s := x.text('e', precision-1)
	e := strings.IndexByte(s, 'e')
	exponent, _ := strconv.Atoi(s[e+1:])
	if exponent < -4 || exponent >= precision {
		return v.trim(s[:e]) + s[e:]
	}
	return v.trim(x.text('f', precision-1-exponent))
}

// point appends a decimal point if the flag # is set and s has none.
func (v conversion) point(s string) string {
	if !v.alt || strings.Contains(s, ".") {
		return s
	}
	if e := strings.IndexByte(s, 'e'); e >= 0 {
		return s[:e] + "." + s[e:]
	}
	return s + "."
}

// trim removes trailing zeros for %g, unless the flag # is set.
func (v conversion) trim(s string) string {
	if v.alt || !strings.Contains(s, ".") {
		return v.point(s)
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// hexadecimal formats %a, without the 0x. C leaves the first digit open; glibc prints 1 for a double, 0 for a subnormal double, and the upper four
// bits of the significand for a long double.
func (v conversion) hexadecimal(x number) string {
	lead, fraction, digits, exponent := uint64(0), uint64(0), 13, 0
	if x.wide != nil {
		digits = 15
		lead, fraction = x.low>>60, x.low<<4
		exponent = max(int(x.high), 1) - 16383 - 3
	} else {
		b := math.Float64bits(x.double)
		fraction = b << 12
		exponent = max(int(b>>52), 1) - 1023
		if b>>52 > 0 {
			lead = 1
		}
	}
	if lead|fraction == 0 {
		exponent = 0
	}
	if keep := v.precision; keep >= 0 && keep < digits {
		// Round to nearest, ties to even.
		unit := uint64(1) << (60 - 4*keep) << 4 // 0 if no digit of the fraction is kept
		rest := fraction & (unit - 1)
		half := uint64(1) << (63 - 4*keep)
		odd := fraction&unit != 0 || unit == 0 && lead&1 == 1
		fraction -= rest
		if rest > half || rest == half && odd {
			fraction += unit
			if fraction == 0 {
				lead++
			}
		}
		digits = keep
	} else if v.precision < 0 {
		for digits > 0 && fraction<<(4*(digits-1))>>60 == 0 {
			digits--
		}
	}
	if lead > 15 {
		lead, exponent = 1, exponent+4
	}
	s := strconv.FormatUint(lead, 16)
	hex := strconv.FormatUint(fraction, 16)
	hex = strings.Repeat("0", 16-len(hex)) + hex + strings.Repeat("0", max(v.precision-16, 0))
	if n := max(digits, v.precision); n > 0 {
		s += "." + hex[:n]
	} else if v.alt {
		s += "."
	}
	s += "p"
	if exponent >= 0 {
		s += "+"
	}
	return s + strconv.Itoa(exponent)
}
