package frames_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestDirectLocationsAreShown requires that frames and explain show the variables of a frame without a record, in text and JSON. Their exit statuses
// must not depend on these variables.
func TestDirectLocationsAreShown(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, livetest.Module(t, clitest.AllocasModule), "mcjit")
	of := func(verb string, more ...string) clitest.Result {
		return clitest.Run(t, append([]string{verb, "-p", clitest.PID(p), "--ir", p.IR}, more...)...)
	}
	r := of("frames")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, regexp.MustCompile(`(?m)^  #2   jit     work\+0x[0-9a-f]+
        not at a record; variables in its memory, located by other records of its function:
        %ended   i64    guess: 77              0x[0-9a-f]+ = CFA-\d+, record 1
          \(it has a lifetime in the module \(llvm.lifetime\), outside of which its memory may be another variable's\)
        %count   i64    -5                     0x[0-9a-f]+ = CFA-\d+, record 1
        \(no record here; nearest is record 2, \d+ bytes after\)$`), r.Stdout)
	r = of("frames", "--json")
	clitest.RequireValid(t, "frames.schema.json", r.Stdout)
	direct := clitest.Objects(t, clitest.FrameOf(t, r.Object(t), "work")["direct"])
	require.Len(t, direct, 2)
	require.Equal(t, "guess", direct[0]["status"])
	require.Equal(t, "-5", direct[1]["value"])
	require.Equal(t, "0xfffffffffffffffb", direct[1]["hex"])
	require.Equal(t, json.Number("2"), direct[1]["records"])
	clitest.RequireValid(t, "frames.schema.json", clitest.Run(t, "frames", "-p", clitest.PID(p), "--json").Stdout)

	r = of("explain", "-f", "2")
	require.Regexp(t, `(?m)^variables in its memory, by other records of its function\n +%ended +i64 +guess: 77 [^\n]*\n +recorded as &\[rbp-\d+\]\n`, r.Stdout)
	require.Regexp(t, `recorded as &\[rbp-\d+\] by record 1 and 1 other\n`, r.Stdout)
	clitest.RequireValid(t, "explain.schema.json", of("explain", "-f", "2", "--json").Stdout)
	clitest.RequireUnharmed(t, p)
}
