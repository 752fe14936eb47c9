package main_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// Garbage is collected before the limit of GOMEMLIMIT is passed, not only before 1 GiB: without the limit verify takes 320 MiB here.
func TestMemoryLimit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	sites := withSites(t, "remap.c")
	c := command(t, "verify", "--limit", "60", "--from-entry=false", "--ir", sites, "--", livetest.ModuleBinary(t, 19, sites), "0")
	c.Env = append(c.Environ(), "GOMEMLIMIT=64MiB")
	r := finish(t, c)
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `^60 exits verified in .*: 60 same, 0 different, 0 not comparable; `, r.stderr)
	require.Less(t, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, int64(240<<10), "in KiB")
}
