package libm

import (
	"math/big"
	"sync"
)

// constant is a number that is computed at its first use, and again when a caller needs more bits. Reducing the largest fp128 angle needs about
// 17,000 bits of pi.
type constant struct {
	mu    sync.Mutex
	bits  int
	value *big.Int
	make  func(frac int) *big.Int
}

// at returns the constant with frac bits after the point.
func (c *constant) at(frac int) *big.Int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frac > c.bits {
		c.bits = 256
		for c.bits < frac {
			c.bits *= 2
		}
		c.value = c.make(c.bits + 32)
		c.value.Rsh(c.value, 32)
	}
	return new(big.Int).Rsh(c.value, uint(c.bits-frac))
}

var (
	// Machin: pi/4 = 4 atan(1/5) - atan(1/239).
	pi = &constant{make: func(frac int) *big.Int {
		z := inverseArc(5, frac, -1)
		z.Lsh(z, 2).Sub(z, inverseArc(239, frac, -1))
		return z.Lsh(z, 2)
	}}
	// ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749).
	ln2 = &constant{make: func(frac int) *big.Int {
		z := new(big.Int).Mul(inverseArc(26, frac, 1), big.NewInt(18))
		z.Sub(z, new(big.Int).Lsh(inverseArc(4801, frac, 1), 1))
		return z.Add(z, new(big.Int).Lsh(inverseArc(8749, frac, 1), 3))
	}}
	// ln 10 = 3 ln 2 + ln (1+1/4), and ln (1+1/4) = 2 atanh(1/9).
	ln10 = &constant{make: func(frac int) *big.Int {
		z := new(big.Int).Mul(ln2.make(frac), big.NewInt(3))
		return z.Add(z, new(big.Int).Lsh(inverseArc(9, frac, 1), 1))
	}}
)

// inverseArc returns the sum of sign^k / ((2k+1) n^(2k+1)): atanh(1/n) for sign 1, atan(1/n) for -1.
func inverseArc(n, frac int, sign int64) *big.Int {
	power := one(frac)
	power.Quo(power, big.NewInt(int64(n)))
	square := big.NewInt(int64(n) * int64(n))
	sum := new(big.Int)
	for k, s := int64(1), int64(1); power.Sign() != 0; k, s = k+2, s*sign {
		sum.Add(sum, new(big.Int).Quo(power, big.NewInt(s*k)))
		power.Quo(power, square)
	}
	return sum
}
