package frames_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestOperandNamesOfALayout requires that, if a layout renames an operand, each screen and the JSON show both names.
func TestOperandNamesOfALayout(t *testing.T) {
	t.Parallel()
	swapped := clitest.TempFile(t, "swapped.json", `{"schema":"reframe.layout/v1","exits":[{"function":"sum_opt","resume":{"function":"sum","block":"loop"},
		"slots":[{"operand":1,"name":"%acc"},{"operand":2,"name":"%i"},{"operand":3,"name":"%n"}]}]}`)
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--layout", swapped)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^ +%acc ← %i +i64 +26 .*\n +%i ← %acc +i64 +5525 .*\n +%n +i64 +1000 `, r.Stdout)
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--layout", swapped, "--json")
	clitest.RequireValid(t, "frames.schema.json", r.Stdout)
	slots := clitest.Objects(t, clitest.FrameOf(t, r.Object(t), "sum_opt")["slots"])
	require.Equal(t, "%i", slots[0]["operand"])
	require.NotContains(t, slots[2], "operand")

	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "guards.ll", "-O2"), livetest.ObjectHostOptions{Rounds: 40})
	mixed := clitest.TempFile(t, "mixed.json", `{"schema":"reframe.layout/v1","exits":[{"function":"total_opt","record":2882400000,"resume":{"function":"total","block":"next"},
		"slots":[{"operand":1,"name":"%n"},{"operand":2,"name":"%acc1"},{"operand":3,"name":"%ni"}]}]}`)
	r = clitest.Run(t, append([]string{"trace", "--ir", livetest.IR(t, 19, "guards.ll"), "--layout", mixed, "--site", "deoptimize", "--limit", "1", "--"}, host...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, ` %n=\d+ %acc1←%\w+=\d+ %ni←%\w+=\d+`, r.Stdout+r.Stderr)
}
