package softfloat_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

func decode(d float64) softfloat.Number {
	return softfloat.Double.Decode(new(big.Int).SetUint64(math.Float64bits(d)))
}

// same requires that a number rounds to the double want. All NaNs are equal.
func same(t *testing.T, want float64, n softfloat.Number, what ...any) {
	t.Helper()
	got := math.Float64frombits(softfloat.Double.Encode(n).Uint64())
	if !math.IsNaN(want) || !math.IsNaN(got) {
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v: %v, want %v", what, got, want)
	}
}

// TestDoublesAreAsTheProcessorsAre requires the processor's results for arithmetic on doubles.
func TestDoublesAreAsTheProcessorsAre(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, -5e-324, 0x1p-1022, math.MaxFloat64}
	draw := func() float64 {
		switch r.IntN(4) {
		case 0:
			return special[r.IntN(len(special))]
		case 1: // close to each other, so that digits cancel
			return math.Ldexp(float64(r.IntN(1<<20)-1<<19), r.IntN(60)-30)
		}
		return math.Float64frombits(r.Uint64())
	}
	for range 20000 {
		a, b, c := draw(), draw(), draw()
		x, y, z := decode(a), decode(b), decode(c)
		same(t, a+b, softfloat.Add(x, y), a, "+", b)
		same(t, a-b, softfloat.Sub(x, y), a, "-", b)
		same(t, a*b, softfloat.Mul(x, y), a, "*", b)
		same(t, a/b, softfloat.Div(x, y, 53), a, "/", b)
		same(t, math.Mod(a, b), softfloat.Rem(x, y), a, "rem", b)
		same(t, math.FMA(a, b, c), softfloat.FMA(x, y, z), "fma", a, b, c)
		same(t, math.Sqrt(a), softfloat.Sqrt(x, 53), "sqrt", a)
		same(t, math.Floor(a), x.Round(softfloat.Down), "floor", a)
		same(t, math.Ceil(a), x.Round(softfloat.Up), "ceil", a)
		same(t, math.Trunc(a), x.Round(softfloat.ToZero), "trunc", a)
		same(t, math.Round(a), x.Round(softfloat.TiesAway), "round", a)
		same(t, math.RoundToEven(a), x.Round(softfloat.TiesToEven), "roundeven", a)
		fraction, exp := math.Frexp(a)
		n, e := x.Frexp()
		same(t, fraction, n, "frexp", a)
		require.Equal(t, exp, e, "frexp %v", a)
		k := r.IntN(4000) - 2000
		same(t, math.Ldexp(a, k), x.Scale(big.NewInt(int64(k))), "ldexp", a, k)
		if !math.IsNaN(a) && !math.IsNaN(b) {
			require.Equal(t, a < b, softfloat.Cmp(x, y) < 0, "%v < %v", a, b)
			require.Equal(t, a > b, softfloat.Cmp(x, y) > 0, "%v > %v", a, b)
		}
		narrow := math.Float32bits(float32(a))
		if !math.IsNaN(a) {
			require.EqualValues(t, narrow, softfloat.Single.Encode(x).Uint64(), "float %v", a)
		}
	}
}

func number(t *testing.T, hex string) *big.Int {
	v, ok := new(big.Int).SetString(hex, 16)
	require.True(t, ok)
	return v
}

// TestEncodings checks the encodings of x86_fp80 that hardware never generates (Intel SDM vol. 1, §8.2.2), and the limits of the formats.
func TestEncodings(t *testing.T) {
	for _, c := range []struct {
		f     softfloat.Format
		bits  string
		class softfloat.Class
		out   string // the bits after decoding and encoding
	}{
		{softfloat.X87, "3fff8000000000000000", softfloat.Finite, "3fff8000000000000000"},
		{softfloat.X87, "00008000000000000000", softfloat.Finite, "00018000000000000000"}, // pseudo-denormal
		{softfloat.X87, "3fff4000000000000000", softfloat.NaN, "7fffc000000000000000"},    // unnormal
		{softfloat.X87, "7fff0000000000000000", softfloat.NaN, "7fffc000000000000000"},    // pseudo-infinity
		{softfloat.X87, "ffff8000000000000000", softfloat.Inf, "ffff8000000000000000"},
		{softfloat.X87, "7fff8000000000000001", softfloat.NaN, "7fffc000000000000001"}, // becomes quiet
		{softfloat.X87, "00000000000000000001", softfloat.Finite, "00000000000000000001"},
		{softfloat.Quad, "7fff0000000000000000000000000000", softfloat.Inf, "7fff0000000000000000000000000000"},
		{softfloat.Quad, "00000000000000000000000000000001", softfloat.Finite, "00000000000000000000000000000001"},
		{softfloat.Half, "7bff", softfloat.Finite, "7bff"}, {softfloat.Half, "7c01", softfloat.NaN, "7e01"},
		{softfloat.BFloat, "8000", softfloat.Zero, "8000"}, {softfloat.BFloat, "0001", softfloat.Finite, "0001"},
	} {
		n := c.f.Decode(number(t, c.bits))
		require.Equal(t, c.class, n.Class, c.bits)
		require.Equal(t, number(t, c.out), c.f.Encode(n), c.bits)
	}
	require.True(t, softfloat.Half.Signaling(number(t, "7c01")))
	require.False(t, softfloat.Half.Signaling(number(t, "7e01")))
	require.True(t, softfloat.Single.Subnormal(number(t, "1")))
	require.False(t, softfloat.Single.Subnormal(number(t, "800000")))
}

// TestTiesGoToEven requires that a number halfway between two others rounds to the even one, also at the limits of a format.
func TestTiesGoToEven(t *testing.T) {
	for _, c := range []struct {
		double float64
		half   uint64
	}{
		{65519.99, 0x7bff}, {65520, 0x7c00}, {1 + 0x1p-11, 0x3c00}, {1 + 0x3p-11, 0x3c02}, {0x1p-25, 0}, {0x1.8p-24, 2}, {0x1.000001p-25, 1}, {-0x1p-26, 0x8000},
	} {
		require.Equal(t, c.half, softfloat.Half.Encode(decode(c.double)).Uint64(), "%v", c.double)
	}
}
