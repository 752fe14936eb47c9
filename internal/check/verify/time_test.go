package verify

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestVerifyTimeEndsInterpreter requires that the time for a verification also ends the interpreter, in a loop that native code does not have. The
// current exit counts as skipped.
func TestVerifyTimeEndsInterpreter(t *testing.T) {
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "tick.ll"))
	require.NoError(t, err)
	forever := strings.Replace(string(text), "%c = icmp ult i64 %i1, 1000", "%c = icmp ult i64 %i1, 1000000000000", 1)
	require.NotEqual(t, string(text), forever)
	_, m := frametest.Written(t, "forever.ll", forever)
	command := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.ObjectHostOptions{})
	// A slow machine may reach no exit in this time, so the loop below increases it.
	o := Options{For: 200 * time.Millisecond, Steps: 1 << 50, Limit: 1}
	o.Modules = append(o.Modules, m)
	summary, all := verified(t, command, o)
	for summary.Exits+summary.Skipped == 0 {
		o.For *= 2
		summary, all = verified(t, command, o)
	}
	require.Equal(t, trace.End{Kind: trace.EndTime}, summary.End)
	require.Empty(t, all)
	require.Equal(t, uint64(1), summary.SkippedWhy["the time for the verification is over"])
	require.Equal(t, [4]uint64{}, [4]uint64{summary.Exits, summary.Same, summary.Different, summary.NotComparable})
	require.Empty(t, summary.NeverVerified)
}
