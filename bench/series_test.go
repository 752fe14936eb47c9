package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	const ms = time.Millisecond // a duration to print; the test does not wait for it
	for _, c := range []struct {
		in   times
		want string
	}{
		{times{3 * ms}, "3.00 ms"},
		{times{3 * ms, 1 * ms, 2 * ms}, "2.00 ms (1.00 ms to 3.00 ms)"},
		{times{40 * ms, 10 * ms, 30 * ms, 20 * ms}, "30.0 ms (10.0 ms to 40.0 ms)"},
		{times{1500 * ms, 999 * ms, 60 * time.Second}, "1.50 s (999 ms to 60.0 s)"},
		{times{81 * time.Microsecond}, "0.08 ms"},
	} {
		require.Equal(t, c.want, spread(c.in))
	}
}

func TestRatio(t *testing.T) {
	for _, c := range []struct {
		ours, theirs int64
		want         string
	}{
		{12, 600, "0.02"}, {1, 3, "0.33"}, {4, 3, "1.3"}, {45, 3, "15"}, {66, 60000, "0.0011"},
	} {
		require.Equal(t, c.want, ratio(c.ours, c.theirs))
	}
}

func TestAtMost(t *testing.T) {
	r := row{}.atMost(times{time.Millisecond}, time.Millisecond)
	require.Equal(t, "at most 1.00 ms: met", r.target)
	r = row{}.atMost(times{1001 * time.Microsecond}, time.Millisecond)
	require.Equal(t, "at most 1.00 ms: MISSED", r.target)
}

func TestInterleave(t *testing.T) {
	var order string
	call := func(name string) func() { return func() { order += name } }
	interleave(3, call("a"), call("b"), call("c"))
	require.Equal(t, "abc"+"bca"+"cab", order)
}

// TestHost requires that a failure ends the measurement where it happens, and that the cleanups still run, last first.
func TestHost(t *testing.T) {
	h := &host{name: "bench"}
	var done string
	failed := h.run(func() {
		h.Cleanup(func() { done += "1" })
		h.Cleanup(func() { done += "2" })
		h.FailNow()
		done += "not reached"
	})
	require.True(t, failed)
	require.Equal(t, "21", done)
	require.False(t, (&host{}).run(func() {}))
}
