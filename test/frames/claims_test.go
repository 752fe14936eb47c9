package frames_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestFramesOfLargeClaims requires that frames reports why it cannot use an object whose headers claim sizes that are too large, and that the exit
// status is 1.
func TestFramesOfLargeClaims(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "claims.c", []string{"-I" + livetest.Testdata(t, "..", "internal", "demo", "target")}, "1", "1024", "zero", "plain")
	r := clitest.Run(t, "frames", "-p", clitest.PID(p))
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "(the JIT object registered here cannot be used: its headers and sections claim 1023 MiB; the limit for an object is 256 MiB)")
	require.Contains(t, r.Stdout, "native  descend+0x", "the frames below it are shown")
}
