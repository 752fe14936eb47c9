package frames_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestFramesOfADeepStack requires that both ends of a stack of 100,000 frames are shown, that repeated frames are folded, and that -f selects from
// either end.
func TestFramesOfADeepStack(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "deep.c", nil, "100000")
	pid := fmt.Sprint(p.PID)
	r := clitest.Run(t, "frames", pid)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^  #2   native  recurse\+0x[0-9a-f]+\n  #3   native  (recurse\+0x[0-9a-f]+)
  … #4 to #255, 252 frames of recurse\+0x[0-9a-f]+, not shown
  … #256 to #99750, 99495 frames of recurse\+0x[0-9a-f]+, not rebuilt; see --depth and -f
  #99751 native  recurse\+0x[0-9a-f]+
  … #99752 to #100002, 251 frames of recurse\+0x[0-9a-f]+, not shown
  #100003 native  main\+0x`, r.Stdout)
	for f, says := range map[string]string{"600": "  #600 native  recurse+", "-1": "  #100006 native  _start+", "-4": "  #100003 native  main+"} {
		r := clitest.Run(t, "frames", pid, "-f", f)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, says)
		require.NotContains(t, r.Stdout, "…")
	}
	r = clitest.Run(t, "frames", pid, "-f", "100007")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "there is no frame 100007; thread "+pid+" has 100007, #0 to #100006")
	for depth, listed := range map[string]int{"10": 10, "2000": 2000, "all": 100007} {
		var report frame.Report
		require.NoError(t, json.Unmarshal([]byte(clitest.Run(t, "frames", pid, "--depth", depth, "--json").Stdout), &report))
		require.Len(t, report.Threads[0].Frames, listed)
		require.Equal(t, 100007, report.Threads[0].Total)
	}
	require.Equal(t, 64, clitest.Run(t, "frames", pid, "--depth", "0").Code)
	require.Contains(t, clitest.Run(t, "explain", pid, "-f", "-1").Stdout, "_start")
}
