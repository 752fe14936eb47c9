package clitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// SuggestionLine matches lines of output that suggest a command.
var SuggestionLine = regexp.MustCompile(`(?m)^(?:try|more of the stack|  reproduce): (.*)$`)

// Suggestions returns the commands that an output suggests.
func Suggestions(text string) (lines []string) {
	for _, m := range SuggestionLine.FindAllStringSubmatch(text, -1) {
		lines = append(lines, m[1])
	}
	return lines
}

// RunInShell runs a line in a shell, as a user would after copying it.
func RunInShell(t *testing.T, line string) Result {
	t.Helper()
	c := Command(t)
	c.Path, c.Args = livetest.Tool(t, "sh"), []string{"sh", "-c", line}
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(Binary())+":"+os.Getenv("PATH"))
	return Finish(t, c)
}

// Escape is the character with which control sequences of terminals begin.
const Escape = "\x1b"

// Refusal is a wrong command line with its error.
type Refusal struct{ Args, Want string }

// RequireRefusals runs wrong command lines, and requires their errors and the line that refers to the help.
func RequireRefusals(t *testing.T, list []Refusal) {
	t.Helper()
	for _, c := range list {
		words := strings.Fields(c.Args)
		r := Run(t, words...)
		require.Equal(t, 64, r.Code, c.Args)
		require.Contains(t, r.Stderr, c.Want, c.Args)
		require.Contains(t, r.Stderr, "try: reframe "+words[0]+" --help", c.Args)
	}
}

// RequireErrors runs command lines that fail, and requires their errors.
func RequireErrors(t *testing.T, list map[string]string) {
	t.Helper()
	for args, want := range list {
		r := Run(t, strings.Fields(args)...)
		require.Equal(t, 2, r.Code, "%s\n%s", args, r.Stderr)
		require.Contains(t, r.Stderr, want, args)
	}
}
