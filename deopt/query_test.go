package deopt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestSearchThatWasCut requires that an incomplete search for stack maps does not report that the process has none.
func TestSearchThatWasCut(t *testing.T) {
	why := progspace.WhyNoMaps(&ptrace.Target{Scanned: true, ScanCut: true})
	require.Contains(t, why, "too large to be searched to the end")
	require.Contains(t, why, "the host must register what it compiles")
	require.NotContains(t, why, "memory holds no")
}

// TestIdleObjects requires that an object whose code no thread runs is not reported as an object without stack maps.
func TestIdleObjects(t *testing.T) {
	p := livetest.ManyObjects(t, 3, "idle")
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("process %d: no stack map: no thread is in the code of its 3 registered JIT objects; reframe maps -p %[1]d lists their records", p.PID), v.WhyNone())
	all, err := ptrace.Survey(p.PID, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(all.Close)
	listed, err := maps.OfTarget(all, maps.Options{}) // as maps -p does
	require.NoError(t, err)
	require.Len(t, listed.Images, 3)
}
