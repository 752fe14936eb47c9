package frames_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestFramesWithRegisters requires that the registers of a frame are those at its pc: its stack pointer is the CFA of the function that it called.
func TestFramesWithRegisters(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	r := clitest.Run(t, "frames", clitest.PID(p), "--json", "--registers")
	var report frame.Report
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &report), r.Stderr)
	require.NotEmpty(t, report.Threads)
	for _, thread := range report.Threads {
		require.Greater(t, len(thread.Frames), 3)
		require.Greater(t, len(thread.Frames[0].Registers), 15)
		for i, f := range thread.Frames[1:] {
			require.Equal(t, thread.Frames[i].CFA, f.Registers["rsp"], "frame %d", f.Index)
			require.NotContains(t, f.Registers, "rax", "the function that it called did not preserve it")
		}
	}
	require.NotContains(t, clitest.Run(t, "frames", clitest.PID(p), "--json").Stdout, `"registers": {`)
	clitest.Run(t, "frames", clitest.PID(p), "--registers").FailsEmpty(t, 64, "--registers requires --json")
}
