package frames_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestMemoryLimit requires that a short verb collects no garbage below the limit of GOMEMLIMIT, but does at the limit, and that a long verb collects
// from its start.
func TestMemoryLimit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	collection := regexp.MustCompile(`(?m)^gc \d+ @`) // printed with GODEBUG=gctrace=1
	collections := func(limit string, args ...string) int {
		c := clitest.Command(t, args...)
		c.Env = append(c.Environ(), "GODEBUG=gctrace=1", "GOMEMLIMIT="+limit)
		r := clitest.Finish(t, c)
		require.Equal(t, 0, r.Code, r.Stderr)
		return len(collection.FindAllString(r.Stderr, -1))
	}
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	require.Zero(t, collections("512MiB", "frames", "-p", clitest.PID(p)))
	require.Greater(t, collections("8MiB", "frames", "-p", clitest.PID(p)), 20, "and not only before main, where the limit is that of Go itself")
	sites := clitest.ModuleWithSites(t, "../verify/testdata/remap.c")
	require.Greater(t, collections("off", "verify", "--limit", "30", "--from-entry=false", "--ir", sites, "--", livetest.ModuleBinary(t, 19, sites), "0"), 1)
}
