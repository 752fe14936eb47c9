package interp

import (
	"math"
	"math/big"

	"reframe/deopt/machine"
)

// Functions of <string.h>, and those of <stdlib.h> that read numbers.

// three reads two addresses, or an address and a number, and a length.
func (c *Invocation) three() (a, b machine.Addr, n uint64, err error) {
	if a, err = c.Addr(0); err != nil {
		return
	}
	if b, err = c.Addr(1); err != nil {
		return
	}
	n, err = c.Uint(2)
	return
}

func memmove(c *Invocation) (Value, error) {
	to, from, n, err := c.three()
	if err == nil {
		err = c.in.move(to, from, n)
	}
	if err != nil {
		return Value{}, err
	}
	return c.Return(uint64(to))
}

func memset(c *Invocation) (Value, error) {
	to, b, n, err := c.three()
	if err == nil && n > 0 {
		err = c.in.set(to, word{v: uint64(b) & 0xff}, n)
	}
	if err != nil {
		return Value{}, err
	}
	return c.Return(uint64(to))
}

func memcmp(c *Invocation) (Value, error) {
	a, b, n, err := c.three()
	if err != nil {
		return Value{}, err
	}
	// A block at a time: memory past the first difference need not be there.
	for n > 0 {
		run := min(n, 256, pageSize-uint64(a%pageSize), pageSize-uint64(b%pageSize))
		p, q := make([]byte, run), make([]byte, run)
		if err := c.Read(p, a); err != nil {
			return Value{}, err
		}
		if err := c.Read(q, b); err != nil {
			return Value{}, err
		}
		for k := range p {
			if p[k] != q[k] {
				return c.Return(uint64(int64(p[k]) - int64(q[k])))
			}
		}
		a, b, n = a+machine.Addr(run), b+machine.Addr(run), n-run
	}
	return c.Return(0)
}

// text reads argument i as a string.
func (c *Invocation) text(i int, limit uint64) ([]byte, error) {
	a, err := c.Addr(i)
	if err != nil {
		return nil, err
	}
	return c.in.cstring(a, limit)
}

func strlen(c *Invocation) (Value, error) {
	s, err := c.text(0, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	return c.Return(uint64(len(s)))
}

// limited calls f with argument i.
func (c *Invocation) limited(i int, f func(limit uint64) (Value, error)) (Value, error) {
	n, err := c.Uint(i)
	if err != nil {
		return Value{}, err
	}
	return f(n)
}

func (c *Invocation) compare(limit uint64) (Value, error) {
	a, err := c.text(0, limit)
	if err != nil {
		return Value{}, err
	}
	b, err := c.text(1, limit)
	if err != nil {
		return Value{}, err
	}
	if uint64(len(a)) < limit {
		a = append(a, 0)
	}
	if uint64(len(b)) < limit {
		b = append(b, 0)
	}
	for k := range min(len(a), len(b)) {
		if a[k] != b[k] {
			return c.Return(uint64(int64(a[k]) - int64(b[k])))
		}
	}
	return c.Return(0)
}

// copyString is strcpy, and strncpy, which fills up with zeros.
func (c *Invocation) copyString(limit uint64) (Value, error) {
	to, err := c.Addr(0)
	if err != nil {
		return Value{}, err
	}
	s, err := c.text(1, limit)
	if err != nil {
		return Value{}, err
	}
	switch fill := limit - uint64(len(s)); {
	case limit == math.MaxUint64:
		s = append(s, 0)
	case fill > c.in.view.limit:
		return Value{}, troublef(KindMemory, "a fill of %d bytes is more than the %d bytes of memory allowed", fill, c.in.view.limit)
	default:
		s = append(s, make([]byte, fill)...)
	}
	if err := c.Write(to, s); err != nil {
		return Value{}, err
	}
	return c.Return(uint64(to))
}

func strcat(c *Invocation) (Value, error) {
	head, err := c.text(0, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	tail, err := c.text(1, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	to, _ := c.Addr(0)
	if err := c.Write(to+machine.Addr(len(head)), append(tail, 0)); err != nil {
		return Value{}, err
	}
	return c.Return(uint64(to))
}

func (c *Invocation) find(search func([]byte, byte) int) (Value, error) {
	s, err := c.text(0, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	b, err := c.Uint(1)
	if err != nil {
		return Value{}, err
	}
	a, _ := c.Addr(0)
	k := search(append(s, 0), byte(b))
	if k < 0 {
		return c.Return(0)
	}
	return c.Return(uint64(a) + uint64(k))
}

func strdup(c *Invocation) (Value, error) {
	s, err := c.text(0, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	a, err := c.Alloc(uint64(len(s))+1, false)
	if err != nil {
		return Value{}, err
	}
	if err := c.Write(a, append(s, 0)); err != nil {
		return Value{}, err
	}
	return c.Return(uint64(a))
}

// parseDecimal is atoi and its kin, which glibc defines by strtol.
func parseDecimal(c *Invocation) (Value, error) {
	s, err := c.text(0, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	v, _ := parseLong(s, 10)
	return c.Return(uint64(v))
}

func strtol(c *Invocation) (Value, error) {
	s, err := c.text(0, math.MaxUint64)
	if err != nil {
		return Value{}, err
	}
	end, err := c.Addr(1)
	if err != nil {
		return Value{}, err
	}
	base, err := c.Int(2)
	if err != nil {
		return Value{}, err
	}
	v, n := parseLong(s, int(base))
	if end != 0 {
		start, _ := c.Addr(0)
		var p [8]byte
		c.in.opt.Arch.Order.PutUint64(p[:], uint64(start)+uint64(n))
		if err := c.Write(end, p[:]); err != nil {
			return Value{}, err
		}
	}
	return c.Return(uint64(v))
}

// parseLong is strtol for a long of 64 bits (C17 7.22.1.4): the value, clamped
// to its range, and how many bytes it took. errno is not kept.
func parseLong(s []byte, base int) (int64, int) {
	if base < 0 || base == 1 || base > 36 {
		return 0, 0
	}
	k := 0
	for k < len(s) && (s[k] == ' ' || s[k] >= '\t' && s[k] <= '\r') {
		k++
	}
	negative := k < len(s) && s[k] == '-'
	if k < len(s) && (s[k] == '-' || s[k] == '+') {
		k++
	}
	if (base == 0 || base == 16) && k+2 < len(s) && s[k] == '0' && s[k+1]|0x20 == 'x' && digit(s[k+2]) < 16 {
		k, base = k+2, 16
	}
	if base == 0 {
		base = 10
		if k < len(s) && s[k] == '0' {
			base = 8
		}
	}
	first := k
	v := new(big.Int)
	for k < len(s) && digit(s[k]) < base {
		if v.BitLen() <= 64 { // past it the result is clamped anyway
			v.Mul(v, big.NewInt(int64(base))).Add(v, big.NewInt(int64(digit(s[k]))))
		}
		k++
	}
	if k == first {
		return 0, 0
	}
	if negative {
		v.Neg(v)
	}
	return clamp(v, 64, true).Int64(), k
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
