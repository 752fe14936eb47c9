package frames_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestGuessedRecord requires that the record and value of a frame that was found by a guess are shown and marked, and that resuming the frame
// requires --force. testdata/returned.c moves the stack pointer in a function without CFI, so that only a scan of the stack finds @near.
func TestGuessedRecord(t *testing.T) {
	program := livetest.Compiled(t, "gcc", livetest.Testdata(t, "returned.c"), "-O1", "-fomit-frame-pointer", "-Wl,-z,now",
		livetest.Object(t, 19, "returned.ll", "-relocation-model=pic"))
	module := livetest.Testdata(t, "programs", "returned.ll")
	p := livetest.Program(t, program, "near", "4104")
	with := func(verb string, more ...string) clitest.Result {
		return clitest.Run(t, append([]string{verb, "-p", clitest.PID(p), "--ir", module}, more...)...)
	}

	r := with("frames")
	require.Equal(t, 1, r.Code, "%s%s", r.Stdout, r.Stderr)
	require.Regexp(t, `(?m)^ +%x .*guess: 12`, r.Stdout)
	require.NotContains(t, r.Stderr, "try: reframe resume", "what is refused is not offered")
	threads := clitest.Objects(t, with("frames", "--json", "--function", "near").Object(t)["threads"])
	require.Len(t, threads, 1)
	shown := clitest.Objects(t, threads[0]["frames"])
	require.Len(t, shown, 1)
	require.Equal(t, "scan", shown[0]["rule"])
	require.Contains(t, shown[0]["guess"], "the end of the stack of frame #")
	slots := clitest.Objects(t, shown[0]["slots"])
	require.Len(t, slots, 1)
	require.Equal(t, "guess", slots[0]["status"])
	require.Equal(t, "12", slots[0]["value"])
	number := fmt.Sprint(shown[0]["index"])

	// The error names the refused action, the reason, and an alternative.
	with("resume").FailsEmpty(t, 2, "frame #"+number+", near, is a guess: ", "the end of the stack of frame #",
		"see explain -f "+number+" for how it was found, or resume it anyway with --force")
	with("resume", "--commit").FailsEmpty(t, 2, "nothing is committed: frame #"+number+", near may not be the caller of frame #", "the end of the stack of frame #")
	with("resume", "--force", "--commit").FailsEmpty(t, 64, "--force cannot be combined with --commit: a process is never changed by a guess")
	require.Equal(t, 1, with("explain", "-f", number).Code)
	require.Contains(t, with("explain", "-f", number).Stdout, "guess: 12")

	// @near adds 1 to its argument.
	r = with("resume", "--force")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^near returned i64 13 after `, r.Stdout)
	require.Contains(t, r.Stdout, "guess: 12")

	// The first script of a core passes unchanged. Its comment names the guess, and how to resume from it.
	core := filepath.Join(t.TempDir(), "exit.core")
	r = with("record", "-o", core, "--script", core+".txtar")
	require.Contains(t, []int{0, 1}, r.Code, r.Stderr)
	text, err := os.ReadFile(core + ".txtar")
	require.NoError(t, err)
	require.Contains(t, string(text), "\nexpect %x guess\n")
	require.Regexp(t, `(?m)^# .*is a guess: `, string(text))
	require.Regexp(t, `(?m)^# .*--force`, string(text))
	require.NotRegexp(t, `(?m)^resume`, string(text))
	r = clitest.Run(t, "replay", core+".txtar")
	require.Equal(t, 0, r.Code, "%s%s", r.Stdout, r.Stderr)

	require.True(t, p.Alive())
}
