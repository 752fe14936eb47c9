package main

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// host is the part of testing.TB that livetest and require use. With it this program, which is not a test, can start the same processes as the tests.
// Methods that are not overridden here panic, because the embedded interface is nil.
type host struct {
	testing.TB // only for its private method
	name       string
	failed     bool
	cleanups   []func()
}

// run calls f, then calls the functions registered with Cleanup, last first, and reports whether f failed.
func (h *host) run(f func()) (failed bool) {
	done := make(chan struct{})
	// f runs in a goroutine of its own, because FailNow ends the calling goroutine.
	go func() {
		defer close(done)
		defer func() {
			for len(h.cleanups) > 0 {
				last := h.cleanups[len(h.cleanups)-1]
				h.cleanups = h.cleanups[:len(h.cleanups)-1]
				last()
			}
		}()
		f()
	}()
	<-done
	return h.failed
}

func (h *host) Helper()          {}
func (h *host) Name() string     { return h.name }
func (h *host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }

// Errorf prints to standard error; the rows are on standard output.
func (h *host) Errorf(format string, args ...any) {
	h.failed = true
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// FailNow ends the measurement.
func (h *host) FailNow() {
	h.failed = true
	runtime.Goexit()
}

// TempDir makes a directory that is removed when the measurement ends.
func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "reframe-bench-")
	require.NoError(h, err)
	h.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
