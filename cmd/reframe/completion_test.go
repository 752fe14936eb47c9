package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// shells are scripts that complete the words of a command line as the Tab key does, without a terminal: each prints its candidates, one a line. $1
// is the file that reframe completion wrote.
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

// The script for each shell completes in that shell.
func TestCompletion(t *testing.T) {
	t.Parallel()
	plain := livetest.C(t, "nojit.c", nil)
	jit := livetest.Lli(t, 19, "jit_sp.ll", "orc")
	for shell, script := range shells {
		t.Run(shell, func(t *testing.T) {
			r := reframe(t, "completion", shell)
			require.Equal(t, 0, r.code, r.stderr)
			file := write(t, "completion", r.stdout)
			complete := func(words ...string) []string {
				c := command(t)
				args := map[string][]string{"bash": {"--norc", "-c", script, "bash"}, "zsh": {"-f", "-c", script, "zsh"}, "fish": {"-N", "-c", script}}[shell]
				c.Path, c.Args = livetest.Tool(t, shell), append(append(append([]string{shell}, args...), file, "reframe"), words...)
				// Without the locale fish does not find files in a folder with a non-ASCII name; with COLUMNS set bash puts several candidates on a
				// line.
				c.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "COLUMNS=")
				r := finish(t, c)
				require.Empty(t, r.stderr)
				var out []string
				for line := range strings.Lines(r.stdout) {
					if line = strings.TrimSpace(line); line != "" {
						word, _, _ := strings.Cut(strings.ReplaceAll(line, ":", "\t"), "\t") // behind it is what it is
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
				// Processes with JIT code come first. The search for them stops before a user would notice, so that on a slow machine it does not
				// reach all.
				first := map[string]int{}
				require.Eventually(t, func() bool {
					clear(first)
					for n, word := range complete(words...) {
						first[word] = n + 1
					}
					return first[pid(jit)] > 0 && first[pid(jit)] < first[pid(plain)]
				}, livetest.Patience, time.Millisecond, "%v", first)
			}
		})
	}
	// Each process is listed with its command.
	for _, verb := range looks {
		r := reframe(t, "__complete", verb, "-p", "")
		require.Equal(t, 0, r.code)
		require.Contains(t, r.stdout, "\n"+pid(plain)+"\tnojit\n")
		require.Regexp(t, pid(jit)+"\tlli-19 -jit-kind=orc ", r.stdout)
		require.NotContains(t, r.stdout, "kthreadd")
	}
	require.Contains(t, reframe(t, "__complete", "frames", "--color", "").stdout, "never\n")
}
