package interp

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"reframe/deopt/machine"
)

// maxField bounds the width and precision of one conversion.
const maxField = 1 << 16

func printf(c *Invocation) (Value, error) {
	out, err := c.format(0)
	if err != nil {
		return Value{}, err
	}
	if err := c.Print(out); err != nil {
		return Value{}, err
	}
	return c.Return(uint64(len(out)))
}

func sprintf(c *Invocation) (Value, error) {
	out, err := c.format(1)
	if err != nil {
		return Value{}, err
	}
	to, err := c.Addr(0)
	if err != nil {
		return Value{}, err
	}
	n := len(out)
	if err := c.Write(to, append(out, 0)); err != nil {
		return Value{}, err
	}
	return c.Return(uint64(n))
}

func snprintf(c *Invocation) (Value, error) {
	out, err := c.format(2)
	if err != nil {
		return Value{}, err
	}
	to, err := c.Addr(0)
	if err != nil {
		return Value{}, err
	}
	size, err := c.Uint(1)
	if err != nil {
		return Value{}, err
	}
	n := len(out)
	if size > 0 {
		kept := min(uint64(n), size-1)
		if err := c.Write(to, append(out[:kept:kept], 0)); err != nil {
			return Value{}, err
		}
	}
	return c.Return(uint64(n))
}

// conversion is one % of a format (C17 7.21.6.1).
type conversion struct {
	minus, plus, space, alt, zero bool
	width, precision              int // precision -1: not given
	length                        string
	verb                          byte
}

// format formats by the string in argument i and the arguments after it.
func (c *Invocation) format(i int) ([]byte, error) {
	f, err := c.text(i, math.MaxUint64)
	if err != nil {
		return nil, err
	}
	next := i + 1
	var out []byte
	for {
		percent := bytes.IndexByte(f, '%')
		if percent < 0 {
			return append(out, f...), nil
		}
		out = append(out, f[:percent]...)
		var v conversion
		if v, f, err = c.conversion(f[percent+1:], &next); err != nil {
			return nil, err
		}
		text := "%"
		if v.verb != '%' {
			if text, err = c.convert(v, next); err != nil {
				return nil, err
			}
			next++
		}
		out = append(out, text...)
		if uint64(len(out)) > c.in.view.limit {
			return nil, troublef(KindMemory, "formatted text of more than %d bytes", c.in.view.limit)
		}
	}
}

// conversion parses what follows a %, and reads the arguments of its stars.
func (c *Invocation) conversion(f []byte, next *int) (v conversion, rest []byte, err error) {
	v.precision = -1
	k := 0
	at := func() byte {
		if k < len(f) {
			return f[k]
		}
		return 0
	}
	for flags := map[byte]*bool{'-': &v.minus, '+': &v.plus, ' ': &v.space, '#': &v.alt, '0': &v.zero}; flags[at()] != nil; k++ {
		*flags[at()] = true
	}
	number := func() (n int, err error) {
		if at() == '*' {
			k++
			star, err := c.Uint(*next)
			*next++
			return int(int32(star)), err
		}
		for ; at() >= '0' && at() <= '9' && n <= maxField; k++ {
			n = 10*n + int(at()-'0')
		}
		return n, nil
	}
	if v.width, err = number(); err != nil {
		return v, nil, err
	}
	if v.width < 0 {
		v.minus, v.width = true, -v.width
	}
	if at() == '.' {
		k++
		if v.precision, err = number(); err != nil {
			return v, nil, err
		}
		v.precision = max(v.precision, -1)
	}
	if v.width > maxField || v.precision > maxField {
		return v, nil, unsupported("", "a format with a field of more than %d bytes", maxField)
	}
	start := k
	for strings.IndexByte("hlLqjzt", at()) >= 0 && at() != 0 {
		k++
	}
	v.length = string(f[start:k])
	if v.verb = at(); v.verb == 0 {
		return v, nil, troublef(KindModule, "a format that ends inside of a conversion")
	}
	return v, f[k+1:], nil
}

func (c *Invocation) convert(v conversion, i int) (string, error) {
	switch v.verb {
	case 'd', 'i', 'u', 'x', 'X', 'o', 'c':
		n, err := c.integer(v, i)
		if err != nil {
			return "", err
		}
		if v.verb == 'c' {
			return v.pad("", string([]byte{byte(n)}), false), nil
		}
		return v.integer(n), nil
	case 's':
		return c.str(v, i)
	case 'p':
		p, err := c.Uint(i)
		if err != nil {
			return "", err
		}
		if p == 0 {
			return v.pad("", "(nil)", false), nil
		}
		return v.pad("0x", strconv.FormatUint(p, 16), v.zero), nil
	case 'f', 'F', 'e', 'E', 'g', 'G':
		if v.length == "L" {
			return "", unsupported("", "%%L%c", v.verb)
		}
		x, err := c.Float(i)
		if err != nil {
			return "", err
		}
		return v.float(x), nil
	}
	return "", unsupported("", "the conversion %%%s%c", v.length, v.verb)
}

// integer reads an integer argument as the length says: sign-extended for d and i.
func (c *Invocation) integer(v conversion, i int) (uint64, error) {
	size, ok := map[string]int{"": 32, "hh": 8, "h": 16, "l": 64, "ll": 64, "q": 64, "j": 64, "z": 64, "t": 64}[v.length]
	if !ok {
		return 0, unsupported("", "the conversion %%%s%c", v.length, v.verb)
	}
	n, err := c.Uint(i)
	if err != nil {
		return 0, err
	}
	if have := c.Args[i].s; have.typ.Float() || have.bits < size {
		return 0, troublef(KindModule, "%%%s%c is given a value of type %v", v.length, v.verb, have.typ)
	}
	n &= maskAt(size, 0)
	if v.verb == 'd' || v.verb == 'i' {
		n = signExtend(n, size)
	}
	return n, nil
}

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

// pad fills up to the width; zeros go between the sign and the digits.
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

func (c *Invocation) str(v conversion, i int) (string, error) {
	if v.length != "" {
		return "", unsupported("", "the conversion %%%ss", v.length)
	}
	a, err := c.Uint(i)
	if err != nil {
		return "", err
	}
	if a == 0 { // glibc prints a word, where it fits
		if v.precision >= 0 && v.precision < len("(null)") {
			return v.pad("", "", false), nil
		}
		return v.pad("", "(null)", false), nil
	}
	limit := uint64(math.MaxUint64)
	if v.precision >= 0 {
		limit = uint64(v.precision)
	}
	s, err := c.in.cstring(machine.Addr(a), limit)
	return v.pad("", string(s), false), err
}

func (v conversion) float(x float64) string {
	sign := ""
	switch {
	case math.Signbit(x):
		sign = "-"
	case v.plus:
		sign = "+"
	case v.space:
		sign = " "
	}
	x = math.Abs(x)
	body, zero := "", v.zero
	switch {
	case math.IsNaN(x):
		body, zero = "nan", false
	case math.IsInf(x, 0):
		body, zero = "inf", false
	default:
		body = v.digits(x)
	}
	if v.verb < 'a' {
		body = strings.ToUpper(body)
	}
	return v.pad(sign, body, zero)
}

func (v conversion) digits(x float64) string {
	precision := v.precision
	if precision < 0 {
		precision = 6
	}
	switch v.verb {
	case 'f', 'F':
		return v.point(strconv.FormatFloat(x, 'f', precision, 64))
	case 'e', 'E':
		return v.point(strconv.FormatFloat(x, 'e', precision, 64))
	}
	// %g: the exponent that %e would print chooses the style.
	precision = max(precision, 1)
	s := strconv.FormatFloat(x, 'e', precision-1, 64)
	e := strings.IndexByte(s, 'e')
	exponent, _ := strconv.Atoi(s[e+1:])
	if exponent < -4 || exponent >= precision {
		return v.trim(s[:e]) + s[e:]
	}
	return v.trim(strconv.FormatFloat(x, 'f', precision-1-exponent, 64))
}

// point adds the point that # asks for where there are no digits after it.
func (v conversion) point(s string) string {
	if !v.alt || strings.Contains(s, ".") {
		return s
	}
	if e := strings.IndexByte(s, 'e'); e >= 0 {
		return s[:e] + "." + s[e:]
	}
	return s + "."
}

// trim removes the zeros at the end that %g does not print; with # they stay.
func (v conversion) trim(s string) string {
	if v.alt || !strings.Contains(s, ".") {
		return v.point(s)
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
