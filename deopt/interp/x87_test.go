package interp

import (
	mathrand "math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
)

// TestX87ShortsAreExact compares the fast path of x86_fp80 with package softfloat, which computes with integers of any width.
func TestX87ShortsAreExact(t *testing.T) {
	r := mathrand.New(mathrand.NewPCG(3, 4))
	some := func(near uint64) []word {
		m, one, other := r.Uint64(), r.IntN(64), r.IntN(64)
		switch r.IntN(4) { // few bits set, few bits clear, or random bits
		case 0:
			m = 1<<one | 1<<other
		case 1:
			m = ^(uint64(1)<<one | 1<<other)
		}
		e := r.Uint64N(1 << 15)
		if r.IntN(8) > 0 {
			e = near + r.Uint64N(140) - 70
		}
		if r.IntN(16) > 0 {
			m |= 1 << 63
		}
		return []word{{v: m}, {v: e&(1<<15-1) | r.Uint64N(2)<<15}}
	}
	short := 0
	for range 40000 {
		near := []uint64{16383, 16383, 90, 32700}[r.IntN(4)]
		a, b := some(near), some(near)
		if r.IntN(8) == 0 {
			b[0].v = a[0].v
		}
		for _, op := range []ir.Op{ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv} {
			got, want := make([]word, 2), make([]word, 2)
			if !x87Short(op, got, a, b) {
				continue
			}
			short++
			f := formats[ir.X86FP80Kind]
			setFloat(ir.X86FP80Kind, want, softOp(op, f, floatNumber(ir.X86FP80Kind, a), floatNumber(ir.X86FP80Kind, b)))
			require.Equal(t, want, got, "%v of %x and %x", op, a, b)
		}
	}
	require.Greater(t, short, 80000)
}
