package interp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
)

// FuzzBlocksAgainstSteps runs a function that the seed makes up twice: instruction
// by instruction, and by blocks with their shorter ways. Both are the same run:
// values, error, place, count of steps and memory, also where a limit or a halt
// ends it early.
func FuzzBlocksAgainstSteps(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed%7*29)
	}
	f.Fuzz(func(t *testing.T, seed, limit uint64) {
		g := newBlocks(seed)
		src := g.function()
		limit = limit%2048 + 1
		if limit%4 == 0 {
			limit = 5000
		}
		a := observed(t, src, interp.Options{MaxSteps: limit, MaxMemory: 1 << 20, Trace: func(interp.Traced) {}})
		b := observed(t, src, interp.Options{MaxSteps: limit, MaxMemory: 1 << 20})
		require.Equal(t, a, b, "limit %d of\n%s", limit, src)
	})
}

// observed is all that can be seen of a run of @f that halts at each entry of the
// block "stop".
func observed(t *testing.T, src string, o interp.Options) (seen []string) {
	m := parse(t, src)
	in, err := interp.New(m, o)
	require.NoError(t, err)
	f := m.Func("f")
	body, err := f.Body()
	require.NoError(t, err, src)
	x, err := in.StartCall(f, nil)
	require.NoError(t, err, src)
	require.NoError(t, x.StopAt(f.Block("stop"), true))
	for halt := 0; ; halt++ {
		res, err := x.Run(context.Background())
		seen = append(seen, fmt.Sprint("halt ", halt, " at ", x.At(0), " steps ", x.Steps(), " error ", err))
		for frame := range x.Depth() {
			for _, b := range body {
				for _, i := range b.Instrs {
					if v, ok := x.Value(frame, i); ok && x.At(frame).Block.Func == f {
						seen = append(seen, i.Ref()+" = "+v.Format())
					}
				}
			}
		}
		if res != nil && err == nil {
			seen = append(seen, "result "+res.Value.Format())
		}
		if res != nil || err != nil || halt > 20 {
			break
		}
	}
	data, undefined := make([]byte, 64), make([]byte, 64)
	global := x.AddressOf(t, in, m)
	require.NoError(t, in.Peek(data, undefined, global))
	return append(seen, fmt.Sprint(data, undefined))
}
