package interp

import (
	"math"
	"math/big"
	"strconv"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// decimal is the exact number that strtod has read (C17 7.22.1.3): mantissa · base^exponent, where base is 10 or 2.
type decimal struct {
	n        int // bytes consumed; 0 if there is no number
	negative bool
	special  byte // 'i' infinity, 'n' NaN
	payload  uint64
	mantissa *big.Int
	base     int
	exponent int64
	text     string // the text of a decimal number, for strconv
}

// Bounds on the text of a number. Digits and exponents beyond them change no result in any format, except that dropped digits decide a tie.
const (
	maxDigits   = 20000
	maxExponent = 100000
)

// parseFloat reads the longest prefix of s that is a number.
func parseFloat(s []byte) decimal {
	k := 0
	for k < len(s) && isSpace(s[k]) {
		k++
	}
	start := k
	v := decimal{base: 10, mantissa: new(big.Int)}
	if k < len(s) && (s[k] == '-' || s[k] == '+') {
		v.negative = s[k] == '-'
		k++
	}
	if n := parseSpecial(s[k:], &v); n > 0 {
		v.n = k + n
		return v
	}
	radix, mark := 10, byte('e')
	if k+1 < len(s) && s[k] == '0' && s[k+1]|0x20 == 'x' && hexFollows(s[k+2:]) {
		k, radix, mark, v.base = k+2, 16, 'p', 2
	}
	var digits []byte
	point, any, dropped := int64(0), false, false
	for seen := false; k < len(s); k++ {
		if s[k] == '.' && !seen {
			seen = true
			continue
		}
		if digit(s[k]) >= radix {
			break
		}
		any = true
		if seen {
			point--
		}
		if len(digits) < maxDigits {
			if len(digits) > 0 || s[k] != '0' {
				digits = append(digits, s[k])
			}
		} else {
			point++
			dropped = dropped || s[k] != '0'
		}
	}
	if !any {
		return decimal{}
	}
	if dropped { // dropped digits make the number greater: append a digit, so that it is not a tie
		digits, point = append(digits, '1'), point-1
	}
	if len(digits) > 0 {
		v.mantissa.SetString(string(digits), radix)
	}
	exponent, n := parseExponent(s[k:], mark)
	k += n
	if radix == 16 {
		point *= 4
	} else {
		v.text = string(s[start:k])
	}
	v.exponent, v.n = point+exponent, k
	return v
}

// hexFollows reports whether s starts with a hexadecimal digit, or with a point and a hexadecimal digit.
func hexFollows(s []byte) bool {
	if len(s) > 0 && s[0] == '.' {
		s = s[1:]
	}
	return len(s) > 0 && digit(s[0]) < 16
}

// parseExponent reads an exponent such as e+5. It reads nothing if no digit follows.
func parseExponent(s []byte, mark byte) (int64, int) {
	if len(s) == 0 || s[0]|0x20 != mark {
		return 0, 0
	}
	k, negative := 1, false
	if k < len(s) && (s[k] == '-' || s[k] == '+') {
		negative = s[k] == '-'
		k++
	}
	first, v := k, int64(0)
	for ; k < len(s) && s[k] >= '0' && s[k] <= '9'; k++ {
		v = min(10*v+int64(s[k]-'0'), 1<<40)
	}
	if k == first {
		return 0, 0
	}
	if negative {
		v = -v
	}
	return v, k
}

// parseSpecial reads inf, infinity, nan and nan(…), and returns the number of bytes read.
func parseSpecial(s []byte, v *decimal) int {
	has := func(word string) bool {
		return len(s) >= len(word) && string(lowered(append([]byte{}, s[:len(word)]...))) == word
	}
	switch {
	case has("infinity"):
		v.special = 'i'
		return 8
	case has("inf"):
		v.special = 'i'
		return 3
	case has("nan"):
		v.special = 'n'
		if len(s) > 3 && s[3] == '(' {
			k := 4
			for k < len(s) && (class(int(s[k]))&classAlnum != 0 || s[k] == '_') {
				k++
			}
			if k < len(s) && s[k] == ')' {
				if p := parseInteger(s[4:k], 0, false); p.n == k-4 {
					v.payload, _ = p.unsigned(64)
				}
				return k + 1
			}
		}
		return 3
	}
	return 0
}

// floatFormat is a binary format: the bits of its significand, and the exponents of its smallest and largest powers of two.
type floatFormat struct{ precision, least, most int }

var (
	formatSingle = floatFormat{24, -126, 127}
	formatDouble = floatFormat{53, -1022, 1023}
	formatX87    = floatFormat{64, -16382, 16383}
)

// round rounds to the nearest number of a format, significand · 2^exponent, with ties to even. outOfRange reports whether strtod sets errno, because
// the number is too large, or tiny and inexact.
func (v decimal) round(f floatFormat) (significand uint64, exponent int, infinite, outOfRange bool) {
	if v.mantissa.Sign() == 0 {
		return 0, 0, false, false
	}
	size := int64(float64(v.mantissa.BitLen()) / math.Log2(float64(v.base)))
	switch e := v.exponent; {
	case e > maxExponent || v.base == 10 && e+size > 5000:
		return 0, 0, true, true
	case e < -maxExponent-size*5 || v.base == 10 && e+size < -5100:
		return 0, 0, false, true
	}
	num, den := new(big.Int).Set(v.mantissa), big.NewInt(1)
	power := new(big.Int).Exp(big.NewInt(int64(v.base)), big.NewInt(max(v.exponent, -v.exponent)), nil)
	if v.exponent >= 0 {
		num.Mul(num, power)
	} else {
		den.Set(power)
	}
	// top is the exponent of the value, and last that of its last place, which is constant for subnormal numbers.
	top := num.BitLen() - den.BitLen()
	if below := new(big.Int).Lsh(den, uint(max(top, 0))); new(big.Int).Lsh(num, uint(max(-top, 0))).Cmp(below) < 0 {
		top--
	}
	last := max(top, f.least) - f.precision + 1
	if last >= 0 {
		den.Lsh(den, uint(last))
	} else {
		num.Lsh(num, uint(-last))
	}
	q, r := new(big.Int).QuoRem(num, den, new(big.Int))
	inexact := r.Sign() != 0
	if c := r.Lsh(r, 1).Cmp(den); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	if q.BitLen() > f.precision {
		q.Rsh(q, 1)
		last++
	}
	if q.BitLen()+last-1 > f.most {
		return 0, 0, true, true
	}
	return q.Uint64(), last, false, inexact && top < f.least
}

// convert implements strtod and strtof on a string.
func (c numberCall) convert(s []byte, end machine.Addr, f floatFormat) float64 {
	v := parseFloat(s)
	c.endedAt(end, v.n)
	x := 0.0
	switch {
	case v.special == 'i':
		x = math.Inf(1)
	case v.special == 'n':
		x = math.Float64frombits(0x7ff8<<48 | v.payload&(1<<51-1))
		if f == formatSingle {
			x = math.Float64frombits(0x7ff8<<48 | v.payload&(1<<22-1)<<29)
		}
	case v.n > 0:
		fast, err := strconv.ParseFloat(v.text, map[floatFormat]int{formatSingle: 32, formatDouble: 64}[f])
		if v.text != "" && err == nil && math.Abs(fast) >= math.Ldexp(1, f.least+1) {
			return fast // the fast path of Go's strconv is also rounded correctly
		}
		significand, exponent, infinite, outOfRange := v.round(f)
		if x = math.Ldexp(float64(significand), exponent); infinite {
			x = math.Inf(1)
		}
		if outOfRange {
			c.setErrno(errRange)
		}
	}
	if v.negative {
		x = math.Copysign(x, -1)
	}
	return x
}

func (c numberCall) double(s []byte, end machine.Addr) float64 {
	return c.convert(s, end, formatDouble)
}
func (c numberCall) single(s []byte, end machine.Addr) float64 {
	return c.convert(s, end, formatSingle)
}

// x87 implements strtold on a string. It returns the two words of an x86_fp80.
func (c numberCall) x87(s []byte, end machine.Addr) (low, high uint64) {
	v := parseFloat(s)
	c.endedAt(end, v.n)
	switch {
	case v.special == 'i':
		low, high = 1<<63, 0x7fff
	case v.special == 'n':
		low, high = 3<<62|v.payload&(1<<62-1), 0x7fff
	case v.n > 0:
		significand, exponent, infinite, outOfRange := v.round(formatX87)
		if outOfRange {
			c.setErrno(errRange)
		}
		switch {
		case infinite:
			low, high = 1<<63, 0x7fff
		case significand>>63 == 1:
			low, high = significand, uint64(exponent+63+16383)
		default: // zero and subnormal
			low = significand
		}
	}
	if v.negative {
		high |= 1 << 15
	}
	return low, high
}

func strtold(i *Invocation) (Value, error) {
	c := &ccall{Invocation: i}
	low, high := numberCall{c}.x87(c.text(0), c.addr(1))
	if c.err != nil {
		return Value{}, c.err
	}
	if c.ret.typ.Kind != ir.X86FP80Kind {
		return Value{}, c.mistyped()
	}
	return Value{c.ret, []word{{v: low}, {v: high}}}, nil
}
