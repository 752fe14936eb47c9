package frames_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestFramesPastAwaitedPages requires that frames and record show the frames of a process whose stack has pages that userfaultfd never provides, and
// that the process continues.
func TestFramesPastAwaitedPages(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, filepath.Join("..", "ptrace", "testdata", "awaited.c"), []string{"-O1", "-fno-omit-frame-pointer"})
	const frames = `(?s) native  inner\+.* native  outer\+`
	r := clitest.Run(t, "frames", "-p", clitest.PID(p))
	require.Equal(t, 1, r.Code, "it has no stack map: %s", r.Stderr)
	require.Regexp(t, frames, r.Stdout)
	core := filepath.Join(t.TempDir(), "core")
	r = clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core)
	require.Equal(t, 0, r.Code, r.Stderr)
	r = clitest.Run(t, "frames", "--core", core)
	require.Equal(t, 1, r.Code, "it has no stack map: %s", r.Stderr)
	require.Regexp(t, frames, r.Stdout)
	p.Signal(t, syscall.SIGUSR1)
	require.NoError(t, p.Wait())
	require.Contains(t, p.Output(), "done")
}
