package frames_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestKernelsThatAllowLess requires that, on a kernel with fewer permissions, permitted operations work and others are reported.
func TestKernelsThatAllowLess(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 2})
	run := func(under []string, args ...string) clitest.Result {
		c := clitest.Command(t, args...)
		c.Path, c.Args = under[0], append(append(under[:len(under):len(under)], clitest.Binary()), args...)
		return clitest.Finish(t, c)
	}
	yama := livetest.UnderYama(t)
	// A process without a capability cannot trace one that has it.
	loop := livetest.IR(t, 19, "deoptimize.ll")
	p := livetest.Program(t, yama[0], append(yama[1:3:3], livetest.LLVM(t, 19, "lli"), "-jit-kind=mcjit", loop)...)
	p.AwaitPause(t)
	for name, under := range map[string][]string{
		"without kcmp and userfaultfd": livetest.Without(t, "userfaultfd", "kcmp"),
		"as an ordinary user":          yama[:3], // with the same permissions to trace
		"Yama":                         yama,
	} {
		r := run(under, append([]string{"trace", "--count", "--"}, host...)...)
		require.Equal(t, 0, r.Code, "%s: %s", name, r.Stderr)
		require.Regexp(t, `(?m)^4000 exits in .*; the process exited with status 0$`, r.Stderr+r.Stdout, name)
		r = run(under, append([]string{"verify", "--ir", module, "--limit", "10", "--"}, host...)...)
		require.Equal(t, 0, r.Code, "%s: %s", name, r.Stderr)
		require.Regexp(t, `(?m)^10 exits verified in .*: 10 same`, r.Stderr, name)
		r = run(under, "demo")
		require.Equal(t, 0, r.Code, "%s: %s", name, r.Stderr)

		r = run(under, "frames", "-p", clitest.PID(p), "--ir", loop, "--layout", clitest.DeoptimizeLayout(t))
		if name == "Yama" {
			r.FailsEmpty(t, 2, "process "+clitest.PID(p), "operation not permitted")
		} else {
			require.Equal(t, 0, r.Code, "%s: %s", name, r.Stderr)
			require.True(t, strings.Contains(r.Stdout, "%acc"), name)
		}
		clitest.RequireUnharmed(t, p)
	}
}
