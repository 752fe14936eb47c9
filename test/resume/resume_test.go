package resume_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// innermost returns the number of the first frame of @f.
func innermost(t *testing.T, p *livetest.Process) int {
	t.Helper()
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--json", "--function", "f")
	threads := clitest.Objects(t, r.Object(t)["threads"])
	n, err := clitest.Objects(t, threads[0]["frames"])[0]["index"].(json.Number).Int64()
	require.NoError(t, err)
	return int(n)
}

// TestResumeToFrame requires that resume runs a chain of frames, as text and as JSON, and has the same result as the process when it continues.
func TestResumeToFrame(t *testing.T) {
	t.Parallel()
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, "chain.ll", "mcjit")
		n := innermost(t, p)
		r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR)
		require.Contains(t, r.Stderr, fmt.Sprintf("\ntry: reframe resume -p %s --ir %s -f %d --result 0\n", clitest.PID(p), p.IR, n))
		r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--to-frame", "all", "--result", "-1")
		require.Equal(t, 0, r.Code, r.Stderr)
		for k, name := range []string{"f", "f", "f", "f", "main"} {
			require.Regexp(t, fmt.Sprintf(`(?m)^ +#%d +jit +%s\+0x`, n+k, name), r.Stdout)
		}
		require.Regexp(t, fmt.Sprintf(`(?m)^the stack ends here: frame #%d, .* is native code$`, n+5), r.Stdout)
		require.Contains(t, r.Stdout, fmt.Sprintf("\nthe call for which frame #%d waits returns i32 -1, as --result says\nit would have printed:\n  | sum -877\nmain returned i32 0 after ", n))

		r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "-f", strconv.Itoa(n+1), "--to-frame", strconv.Itoa(n+2), "--result", "-1", "--json")
		require.Equal(t, 0, r.Code, r.Stderr)
		out := r.Object(t)
		require.Equal(t, map[string]any{"type": "i64", "value": "-88"}, out["result"])
		require.Equal(t, json.Number(strconv.Itoa(n+1)), out["frame"])
		require.Equal(t, "f", out["function"])
		require.NotContains(t, out, "end")
		frames := clitest.Objects(t, out["frames"])
		require.Len(t, frames, 2)
		for k, f := range frames {
			require.Equal(t, json.Number(strconv.Itoa(n+1+k)), f["frame"])
			require.Equal(t, "f", f["function"])
			require.Equal(t, "in-call", f["moment"])
			require.Equal(t, map[string]any{"function": "f", "block": "again", "after": "%r"}, f["resume"])
		}
		require.Equal(t, map[string]any{"type": "i64", "value": "-1"}, frames[0]["given"])
		require.NotContains(t, frames[1], "given")

		p.AwaitPause(t)
		p.Signal(t, syscall.SIGUSR1)
		require.NoError(t, p.Wait())
		require.Equal(t, "ready\nsum -877\n", p.Output())
	}
}

// TestResumeToFrameRefuses requires that the limits of a chain, and wrong uses of its flags, are reported.
func TestResumeToFrameRefuses(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	n := innermost(t, p)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--to-frame x", 64, "--to-frame x: expected the number of a caller's frame, or all"},
		{"--to-frame 0", 64, "--to-frame 0: expected the number of a caller's frame, or all"},
		{"--to-frame -1", 64, "--to-frame -1: expected the number of a caller's frame, or all"},
		{"--result=", 64, "the value of --result is empty"},
		{"--to-frame 99", 2, "no frame to resume up to frame #99: frame #"},
		{"-f 3 --to-frame 1", 2, "frame #1 is not a caller of frame #3"},
		{"--result 1.5", 2, fmt.Sprintf(`the result for frame #%d, f: "1.5" is not a value of type i32`, n)},
	} {
		args := append([]string{"resume", "-p", clitest.PID(p), "--ir", p.IR}, strings.Fields(c.args)...)
		clitest.Run(t, args...).FailsEmpty(t, c.code, c.want)
	}
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--to-frame", "all")
	require.Equal(t, 2, r.Code)
	require.Empty(t, r.Stdout)
	require.Equal(t, fmt.Sprintf("reframe: frame #%d, f: @f cannot resume in block %%wait: values that are live there are missing\n"+
		"  %%w: it is the result of a call that is still running; give it with --result\n", n), r.Stderr)
	require.True(t, p.Alive())
}
