package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestGoroutinesAfterExec requires that the debug information of another program is read if an exec replaces the program of a target during a capture.
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
	target.Modules = other.Modules // as a survey after the exec does
	require.NotNil(t, g.layout(target))
	require.NotSame(t, first, g.reader)
	require.Equal(t, target.GoProgram().Path, g.of.path)
	target.Modules = nil
	require.Nil(t, g.layout(target))
	require.Nil(t, g.reader)
}
