package amd64

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestMayEndInCall requires that mayEndInCall accepts all code that ends in a call according to the decoder. It tries random bytes, and bytes around opcodes,
// where calls are frequent.
func TestMayEndInCall(t *testing.T) {
	livetest.Slow(t)
	random := rand.New(rand.NewPCG(4, 4))
	calls, others := 0, 0
	for range 500_000 {
		var code [longestCall]byte
		for i := range code {
			code[i] = byte(random.Uint32())
		}
		code[random.IntN(len(code))] = []byte{0xe8, 0xff, 0xff, 0x9a, 0x66, 0x67}[random.IntN(6)]
		for from := range code {
			inst, known := Decode(code[from:])
			if known && inst.Len == len(code)-from && IsCall(inst) {
				require.True(t, mayEndInCall(code[:]), "% x", code)
				calls++
				break
			}
		}
		if !mayEndInCall(code[:]) {
			others++
		}
	}
	require.Greater(t, calls, 10_000)
	require.Greater(t, others, 150_000)
}
