package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// These vary between runs: the process and how long it was stopped.
var (
	numbered = regexp.MustCompile(`(process|pid|thread) \d+`)
	paused   = regexp.MustCompile(`paused \d+\.\d\d ms`)
	when     = regexp.MustCompile(`(?m)^\d+\.\d{6}  \d+ `)
	took     = regexp.MustCompile(`in \d+\.\d{3} s`)
	pausing  = regexp.MustCompile(`stopped for \d+\.\d\d ms`)
	holding  = regexp.MustCompile(`\d+ KiB of memory`)
	rate     = regexp.MustCompile(`(?m)^in [\d.]+ s, \d+/s; the slowest: (\S+) \d+ ms$`)
)

func steady(screen string) string {
	screen = when.ReplaceAllString(screen, "N  N ")
	screen = paused.ReplaceAllString(numbered.ReplaceAllString(screen, "$1 N"), "paused N ms")
	screen = holding.ReplaceAllString(pausing.ReplaceAllString(screen, "stopped for N ms"), "N KiB of memory")
	screen = rate.ReplaceAllString(screen, "in N s, N/s; the slowest: $1 N ms")
	return took.ReplaceAllString(screen, "in N s")
}

// The README shows real screens: the output of its commands, except for what varies between runs. README=update in the environment rewrites screens
// that differ.
func TestReadmeShowsRealScreens(t *testing.T) {
	livetest.Slow(t)
	typed := strings.Join(typeDocument(t, "../../README.md", examples(t)), "\n")
	for _, verb := range []string{"frames", "resume", "run", "maps", "lint", "explain", "trace", "verify", "record", "replay", "demo"} {
		require.Contains(t, typed, "reframe "+verb)
	}
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(text), "\n"), 150)
}

// doc/verbs.md, the longer part, shows real screens too, with test programs of the repository.
func TestVerbsShowRealScreens(t *testing.T) {
	const path, begin, end = "../../doc/verbs.md", "```console\n$ ./reframe ", "```\n"
	dir := t.TempDir() // where its commands are run
	put(t, livetest.IR(t, 19, "deoptimize.ll"), filepath.Join(dir, "loop.ll"))
	put(t, livetest.Object(t, 19, "deoptimize.ll"), filepath.Join(dir, "loop.o"))
	object, module := wrongTick(t)
	put(t, module, filepath.Join(dir, "tick.ll"))
	put(t, object, filepath.Join(dir, "wrong.o"))
	put(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), filepath.Join(dir, "tick.o"))
	swapped := swappedBundle(t)
	put(t, swapped+".ll", filepath.Join(dir, "sum.ll"))
	put(t, swapped+".o", filepath.Join(dir, "sum.o"))
	put(t, livetest.Testdata(t, "programs", "baseline.layout.json"), filepath.Join(dir, "sum.layout.json"))
	require.NoError(t, os.Symlink(livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})[0], filepath.Join(dir, "host")))
	require.NoError(t, os.Symlink(binary, filepath.Join(dir, "reframe")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	parts := strings.Split(string(text), begin)
	for n, part := range parts[1:] {
		command, rest, _ := strings.Cut(part, "\n")
		shown, after, found := strings.Cut(rest, end)
		require.True(t, found)
		c := exec.Command(livetest.Tool(t, "sh"), "-c", "./reframe "+command)
		c.Dir = dir
		screen, err := c.CombinedOutput()
		status := 0
		if strings.HasPrefix(command, "verify ") || strings.HasPrefix(command, "stress ") { // which find a difference
			status = 3
		}
		require.Equal(t, status, c.ProcessState.ExitCode(), "%v: %s", err, command)
		parts[n+1] = command + "\n" + heldScreen(t, shown, string(screen), steady) + end + after
	}
	require.Len(t, parts, 1+12)
	if os.Getenv("README") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(parts, begin)), 0o644))
	}
}

func put(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, b, 0o644))
}

// swappedBundle compiles baseline.ll with a mistake that an author of a JIT may make: its site swaps two values. It returns the common path of the
// module and of the object, without .ll and .o.
func swappedBundle(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "baseline.ll"))
	require.NoError(t, err)
	changed := strings.ReplaceAll(string(text), "i64 %n, i64 %i, i64 %acc)", "i64 %n, i64 %acc, i64 %i)") // of the site, and of the runtime's call
	require.NotEqual(t, changed, string(text))
	path := filepath.Join(t.TempDir(), "swapped")
	require.NoError(t, os.WriteFile(path+".ll", []byte(changed), 0o600))
	out, err := exec.Command(livetest.LLVM(t, 19, "llc"), "-O2", "-relocation-model=pic", "-filetype=obj", path+".ll", "-o", path+".o").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
