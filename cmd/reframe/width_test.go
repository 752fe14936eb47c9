package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// atWidth runs the program on a terminal with the given number of columns, and returns the output.
func atWidth(t *testing.T, columns int, env string, args ...string) string {
	t.Helper()
	master, slave := livetest.Terminal(t)
	defer master.Close()
	require.NoError(t, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
	c := clitest.Command(t, args...)
	c.Stdout, c.Stderr = slave, slave
	c.Env = append(os.Environ(), "TERM=xterm", env)
	require.NoError(t, c.Start())
	require.NoError(t, slave.Close())
	text, _ := io.ReadAll(master) // ends with EIO
	_ = c.Wait()
	return string(text)
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// widest returns the longest line of a text, without its colors.
func widest(text string) (line string) {
	for next := range strings.Lines(text) {
		next = colours.ReplaceAllString(strings.TrimSuffix(next, "\n"), "")
		if utf8.RuneCountInString(next) > utf8.RuneCountInString(line) {
			line = next
		}
	}
	return line
}

// TestHelpFits requires that the help of every command fits 80 columns, and a narrower terminal.
func TestHelpFits(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, name := range append([]string{"", "scripts", "conditions", "completion", "completion bash", "completion zsh", "completion fish"}, verbs()...) {
		args := append([]string{"help"}, strings.Fields(name)...)
		r := clitest.Run(t, args...)
		require.Equal(t, 0, r.Code)
		require.LessOrEqual(t, utf8.RuneCountInString(widest(r.Stdout)), 80, "%s: %s", name, widest(r.Stdout))
		require.NotRegexp(t, `(?m) +$`, r.Stdout, name)
		narrow := atWidth(t, 60, "COLUMNS=", args...)
		require.LessOrEqual(t, utf8.RuneCountInString(widest(narrow)), 60, "%s: %s", name, widest(narrow))
		require.Equal(t, r.Stdout, atWidth(t, 200, "COLUMNS=", args...), "it is no wider where there is room")
	}
}

// TestNothingWiderThanTheTerminal requires that on a terminal no line is wider than the terminal, including commands to copy, and that no text is
// lost. In a pipe no line may be folded.
func TestNothingWiderThanTheTerminal(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	exit := livetest.Lli(t, 19, clitest.StoringModule(t), "mcjit")
	core := filepath.Join(t.TempDir(), "a name of some length", "which is not short, in a folder", "exit.core")
	require.NoError(t, os.MkdirAll(filepath.Dir(core), 0o755))
	files := []string{"--ir", exit.IR, "--layout", clitest.DeoptimizeLayout(t)}
	in := func(args ...string) []string { return append(args, files...) }
	bare := func(text string) string {
		text = colours.ReplaceAllString(text, "")
		for _, r := range [][2]string{{`\\\n *`, " "}, {`\d+\.\d\d\s+ms`, ""}, {`[\s]+`, ""}} {
			text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
		}
		return text
	}
	broken := 0
	for _, args := range [][]string{
		{"frames", "-p", clitest.PID(p), "--ir", p.IR},
		in("frames", "-p", clitest.PID(exit)),
		{"explain", "-p", clitest.PID(p), "--ir", p.IR},
		in("resume", "-p", clitest.PID(exit), "--commit", "--dry-run"),
		{"maps", livetest.Object(t, 19, "jit_pp.ll"), "--ir", p.IR},
		{"maps", livetest.Object(t, 19, "jit_pp.ll"), "--check"},
		in("record", "-p", clitest.PID(exit), "--force", "-o", core),
		in("frames", core),
		{"lint", p.IR},
		{"frames", core, "--layout", clitest.DeoptimizeLayout(t), "--ir", "/no/such/file/of/a/name/that/is/long/and/longer/and/longer.ll"},
	} {
		piped := clitest.Run(t, args...)
		for _, columns := range []int{40, 72} {
			text := atWidth(t, columns, "COLUMNS=", args...)
			for line := range strings.Lines(text) {
				line = colours.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
				if strings.ContainsAny(line, `'"$`) || strings.HasPrefix(line, "    /") {
					continue // a word of a command cannot be broken
				}
				require.LessOrEqual(t, utf8.RuneCountInString(line), columns, "%v\n%s", args, text)
			}
			require.Equal(t, bare(piped.Stdout+piped.Stderr), bare(text), "%v", args)
		}
		if utf8.RuneCountInString(widest(piped.Stdout+piped.Stderr)) > 72 {
			broken++
		}
	}
	require.GreaterOrEqual(t, broken, 6, "lines that had to be broken")
	wide := atWidth(t, 72, "COLUMNS=300", "frames", "-p", clitest.PID(p), "--ir", p.IR)
	require.Greater(t, utf8.RuneCountInString(widest(wide)), 72, "COLUMNS says it")
	// JSON must not be folded, also on a terminal.
	require.Contains(t, atWidth(t, 40, "COLUMNS=", "frames", "-p", clitest.PID(p), "--json"), fmt.Sprintf(`{"kind": "process", "pid": %d, "arch": "amd64", "pause_us": `, p.PID))
	clitest.RequireUnharmed(t, p)
}
