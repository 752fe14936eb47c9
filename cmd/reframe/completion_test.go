package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// shells are scripts that complete a command line as the Tab key does, but without a terminal. Each prints its candidates, one per line. $1 is the
// file that reframe completion wrote.
var shells = map[string]string{
	"bash": `source /usr/share/bash-completion/bash_completion; source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
compopt() { :; } # it wants to be called by Tab
__start_reframe; printf '%s\n' "${COMPREPLY[@]}"`,
	"zsh": `compdef() { :; }; source "$1"; shift
_describe() { print -l -- $completions; }; _arguments() { print -r -- "files $@"; } # they want to be called by Tab
words=("$@"); CURRENT=$#; _reframe`,
	"fish": `source $argv[1]; complete -C (string escape -- $argv[2..-2] | string join ' ')" $argv[-1]"`,
}

// TestCompletion requires that the completion script for each shell works in that shell.
func TestCompletion(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	plain := livetest.C(t, "nojit.c", nil)
	jit := livetest.Lli(t, 19, "jit_sp.ll", "orc")
	for shell, script := range shells {
		t.Run(shell, func(t *testing.T) {
			r := clitest.Run(t, "completion", shell)
			require.Equal(t, 0, r.Code, r.Stderr)
			file := clitest.TempFile(t, "completion", r.Stdout)
			complete := func(words ...string) []string {
				c := clitest.Command(t)
				args := map[string][]string{"bash": {"--norc", "-c", script, "bash"}, "zsh": {"-f", "-c", script, "zsh"}, "fish": {"-N", "-c", script}}[shell]
				c.Path, c.Args = livetest.Tool(t, shell), append(append(append([]string{shell}, args...), file, "reframe"), words...)
				// Without the locale fish does not find files in a folder with a non-ASCII name; with COLUMNS set bash puts several candidates on a
				// line.
				c.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+filepath.Dir(clitest.Binary())+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "COLUMNS=")
				r := clitest.Finish(t, c)
				require.Empty(t, r.Stderr)
				var out []string
				for line := range strings.Lines(r.Stdout) {
					if line = strings.TrimSpace(line); line != "" {
						word, _, _ := strings.Cut(strings.ReplaceAll(line, ":", "\t"), "\t") // a description follows the word
						out = append(out, word)
					}
				}
				return out
			}
			require.Equal(t, []string{"frames"}, complete("fr"))
			require.Subset(t, complete(""), []string{"frames", "resume", "maps", "trace", "verify", "replay", "lint"})
			require.ElementsMatch(t, []string{"always", "auto", "never"}, complete("frames", "--color", ""))
			require.Contains(t, strings.Join(complete("frames", "--layo"), " "), "--layout")
			for _, words := range [][]string{{"frames", "-p", ""}, {"resume", ""}} {
				// Processes with JIT-compiled code come first. The search stops before a user would notice it, so on a slow machine it may not find
				// all of them.
				first := map[string]int{}
				require.Eventually(t, func() bool {
					clear(first)
					for n, word := range complete(words...) {
						first[word] = n + 1
					}
					return first[clitest.PID(jit)] > 0 && first[clitest.PID(jit)] < first[clitest.PID(plain)]
				}, livetest.Patience, time.Millisecond, "%v", first)
			}
		})
	}
	// Each process is listed with its command.
	for _, verb := range clitest.CaptureVerbs {
		r := clitest.Run(t, "__complete", verb, "-p", "")
		require.Equal(t, 0, r.Code)
		require.Contains(t, r.Stdout, "\n"+clitest.PID(plain)+"\tnojit\n")
		require.Regexp(t, clitest.PID(jit)+"\tlli-19 -jit-kind=orc ", r.Stdout)
		require.NotContains(t, r.Stdout, "kthreadd")
	}
	require.Contains(t, clitest.Run(t, "__complete", "frames", "--color", "").Stdout, "never\n")
}
