package gohost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/progspace/goroutine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// goroutines returns the goroutines that the threads of p run.
func goroutines(t *testing.T, p *livetest.Process, o ptrace.Options) (list []frame.Goroutine) {
	t.Helper()
	target, err := ptrace.Capture(p.PID, o)
	require.NoError(t, err)
	defer target.Close()
	r, err := goroutine.Open(target)
	require.NoError(t, err)
	defer r.Close()
	for _, th := range target.Threads() {
		g, err := r.OfThread(th)
		if g == nil {
			require.ErrorIs(t, err, goroutine.ErrNone)
			continue
		}
		require.NoError(t, err)
		list = append(list, *g)
	}
	return list
}

// TestGoroutines requires that the goroutine of a thread is the one whose number Go's run time prints. Labels are read only while the process is
// stopped, because a capture does not contain the memory to which a goroutine points.
func TestGoroutines(t *testing.T) {
	exe := livetest.CgoBinary(t, "testdata/host", "-gcflags=-l")
	for _, way := range []string{"plain", "nested", "panic", "signal"} {
		t.Run(way, func(t *testing.T) {
			p := livetest.Program(t, exe, way)
			id := strings.Fields(strings.SplitN(p.Output(), "\n", 3)[1])[0]
			for _, hold := range []bool{false, true} {
				list := goroutines(t, p, ptrace.Options{Hold: hold})
				require.Len(t, list, 1, "main waits for the worker, and the other threads are idle")
				require.Equal(t, []string{id, "syscall", "main.worker"}, []string{fmt.Sprint(list[0].ID), list[0].State, list[0].Start})
				if hold {
					require.Equal(t, map[string]string{"request": "42"}, list[0].Labels)
				}
			}
		})
	}
}

// TestGoroutinesOfOtherPrograms requires that the reason is reported if a program has no goroutines to read.
func TestGoroutinesOfOtherPrograms(t *testing.T) {
	open := func(p *livetest.Process) error {
		target, err := ptrace.Capture(p.PID, ptrace.Options{})
		require.NoError(t, err)
		defer target.Close()
		_, err = goroutine.Open(target)
		return err
	}
	require.ErrorIs(t, open(livetest.Program(t, livetest.CBinary(t, "../deopt/testdata/gdbstack/stacks.c"), "nanosleep")), goroutine.ErrNotGo)
	stripped := livetest.CgoBinary(t, "testdata/host", "-gcflags=-l", "-ldflags=-s -w")
	require.ErrorIs(t, open(livetest.Program(t, stripped, "plain")), goroutine.ErrNoDWARF)
}
