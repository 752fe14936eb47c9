package main_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// TestFramesPastAwaitedPages requires that frames and record show the frames of a process which waits on a stack with pages that userfaultfd is to
// provide and never does, and that the process runs on.
func TestFramesPastAwaitedPages(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, filepath.Join("..", "ptrace", "testdata", "awaited.c"), []string{"-O1", "-fno-omit-frame-pointer"})
	const frames = `(?s) native  inner\+.* native  outer\+`
	r := reframe(t, "frames", "-p", pid(p))
	require.Equal(t, 1, r.code, "it has no stack map: %s", r.stderr)
	require.Regexp(t, frames, r.stdout)
	core := filepath.Join(t.TempDir(), "core")
	r = reframe(t, "record", "-p", pid(p), "-o", core)
	require.Equal(t, 0, r.code, r.stderr)
	r = reframe(t, "frames", "--core", core)
	require.Equal(t, 1, r.code, "it has no stack map: %s", r.stderr)
	require.Regexp(t, frames, r.stdout)
	p.Signal(t, syscall.SIGUSR1)
	require.NoError(t, p.Wait())
	require.Contains(t, p.Output(), "done")
}
