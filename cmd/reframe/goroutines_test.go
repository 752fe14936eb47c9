package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestGoroutinesAfterExec requires that, if an exec replaces the program of a target during a capture, the debug information of the new program is
// read.
func TestGoroutinesAfterExec(t *testing.T) {
	capture := func(dir, arg string) *ptrace.Target {
		p := livetest.Program(t, livetest.CgoBinary(t, "../../test/gohost/testdata/"+dir, "-gcflags=-l"), arg)
		target, err := ptrace.Capture(p.PID, ptrace.Options{})
		require.NoError(t, err)
		t.Cleanup(target.Close)
		return target
	}
	target, other := capture("many", "1"), capture("host", "plain")
	g := &goroutines{}
	defer g.close()
	require.NotNil(t, g.layout(target))
	first := g.reader
	require.NotNil(t, g.layout(target))
	require.Same(t, first, g.reader)
	modules := target.Modules
	defer func() { target.Modules = modules }()
	target.Modules = other.Modules // the survey of a capture sets these modules after the exec
	require.NotNil(t, g.layout(target))
	require.NotSame(t, first, g.reader)
	require.Equal(t, target.GoProgram().Path, g.of.path)
	target.Modules = nil
	require.Nil(t, g.layout(target))
	require.Nil(t, g.reader)
}
