package trace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestTraceCountBy requires that the counts by method and position match tinyvm's own log of its exits.
func TestTraceCountBy(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, _, _ := clitest.TinyVM(t)
	meter, dir := livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm"), t.TempDir()
	log, file := filepath.Join(dir, "log"), filepath.Join(dir, "trace.json")
	r := clitest.Run(t, "trace", "--site", "deoptimize", "--count", "--by", "method,position,why", "--json", "-o", file, "--", binary, "--log-exits", log, meter)
	require.Equal(t, 0, r.Code, r.Stderr)
	want := map[string]uint64{}
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var exit struct {
			Method, Call string
			Position     int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &exit))
		if exit.Call == "" { // omits calls by compiled code
			want[fmt.Sprint(exit.Method, " ", exit.Position, " ")]++
		}
	}
	require.NotEmpty(t, want)
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	clitest.RequireValid(t, "trace.schema.json", strings.TrimSpace(string(text)))
	var sum trace.Summary
	require.NoError(t, json.Unmarshal(text, &sum))
	got := map[string]uint64{}
	for _, by := range sum.By {
		got[strings.Join(by.Values, " ")] = by.Count
	}
	require.Equal(t, want, got)
	r = clitest.Run(t, "trace", "--by", "method", "--", binary, meter)
	require.Equal(t, 64, r.Code)
	require.Contains(t, r.Stderr, "--by requires --count")
}
