package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/interp"
)

// BenchmarkLoop runs the sum of squares: seven instructions a turn.
func BenchmarkLoop(b *testing.B) {
	m := parse(b, sumOfSquares)
	in, err := interp.New(m, interp.Options{MaxSteps: 1 << 62})
	require.NoError(b, err)
	var steps uint64
	for b.Loop() {
		res, err := in.Call(context.Background(), m.Func("sum"), []interp.Value{i64(1_000_000)})
		require.NoError(b, err)
		steps += res.Steps
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds()/1e6, "Minstr/s")
}
