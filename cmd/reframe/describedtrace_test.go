package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
	"reframe/internal/tinyvmtest"
)

// A trace asks what a JIT registers, as it registers it, for IR and a layout: the frames of its virtual machine need no flag.
func TestTraceOfSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	program := livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	for _, llvm := range tinyvmtest.Versions {
		command := []string{"--", tinyvmtest.Binary(t, llvm), "--fuel", tinyvmtest.Fuel, program}
		r := reframe(t, append([]string{"trace", "--site", "deoptimize"}, command...)...)
		require.Equal(t, 0, r.code, r.stderr)
		require.Equal(t, 1, strings.Count(r.stderr, "reframe: note: it describes itself; --no-self-description leaves that out\n"))
		require.NotContains(t, r.stderr, "no VM frames")
		require.Contains(t, r.stderr, "  Point.sum @ 9, reexecute local[0]=object(0) ", "LLVM %d", llvm)
		r = reframe(t, append([]string{"trace", "--no-self-description"}, command...)...) // of which kind a record is, no one says then
		require.Contains(t, r.stderr, "  Math.step#1+")
		require.NotContains(t, r.stderr, "describes itself")
		require.NotContains(t, r.stderr, "Point.sum @")
	}
}
