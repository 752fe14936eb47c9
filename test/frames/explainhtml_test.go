package frames_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestExplainHTML requires that explain --html writes a page for a process, for its core, and for each kind of question, and that it refuses an
// invalid output.
func TestExplainHTML(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	dir := t.TempDir()
	file, core := filepath.Join(dir, "exit.html"), filepath.Join(dir, "exit.core")
	known := []string{"-p", clitest.PID(p), "--ir", p.IR}
	explain := func(args ...string) clitest.Result { return clitest.Run(t, append([]string{"explain"}, args...)...) }
	read := func() string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Less(t, len(text), 1_000_000)
		return string(text)
	}

	r := explain(append(known, "--html", file)...)
	require.Equal(t, 1, r.Code, "values in caller-saved registers are unavailable")
	require.Empty(t, r.Stdout)
	require.Empty(t, r.Stderr)
	live := read()
	require.True(t, strings.HasPrefix(live, "<!DOCTYPE html>\n"))
	for _, want := range []string{"default-src &#39;none&#39;", "frame #2 of thread " + clitest.PID(p) + ": work", "rax is caller-saved and frame #1 does not preserve it", "81985529216486895", "stopped for ", "The record’s bytes"} {
		require.Contains(t, live, want)
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "as a core is: it has memory of the process in it")

	// An existing file is replaced only with --force.
	explain(append(known, "--html", file)...).FailsEmpty(t, 2, "--html "+file+": the file exists; --force overwrites it")
	require.Equal(t, live, read())
	require.Equal(t, 1, explain(append(known, "--html", file, "--force")...).Code)
	steady := func(page string) string { return regexp.MustCompile(`stopped for \d+`).ReplaceAllString(page, "") }
	require.Equal(t, steady(live), steady(read()), "the same moment, the same page")

	// With - the page is written to standard output; --json and --html FILE can be combined.
	r = explain(append(known, "--html", "-")...)
	require.Equal(t, steady(live), steady(r.Stdout))
	r = explain(append(known, "--html", file, "--force", "--json")...)
	clitest.RequireValid(t, "explain.schema.json", r.Stdout)
	explain(append(known, "--html", "-", "--json")...).FailsEmpty(t, 64, "--html - and --json cannot be combined: both write to standard output")
	explain(append(known, "--html", "")...).FailsEmpty(t, 64, "--html requires the name of a file")
	explain(append(known, "--html", p.IR)...).FailsEmpty(t, 64, "cannot overwrite the input of --ir")
	explain(append(known, "--html", filepath.Join(dir, "no", "page.html"))...).FailsEmpty(t, 2, "no such file or directory")

	// The page for a core is the same.
	require.Zero(t, clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core).Code)
	r = explain("--core", core, "--ir", p.IR, "#2", "--html", "-")
	require.Equal(t, 1, r.Code, r.Stderr)
	part := func(page, from string) string {
		_, rest, found := strings.Cut(page, from)
		require.True(t, found)
		rest, _, _ = strings.Cut(rest, "</section>")
		return rest
	}
	for _, id := range []string{`<section class="wide" id="values-part"`, `<section aria-labelledby="stack"`, `<section aria-labelledby="record"`, `<section aria-labelledby="registers"`, `<section aria-labelledby="IR"`} {
		require.Equal(t, part(live, id), part(r.Stdout, id), id)
	}

	// A question can be a record, an address, an address outside all frames, or an address in one of several frames.
	require.Contains(t, explain(append(known, "2001", "--html", "-")...).Stdout, "frame #2 of thread")
	r = explain(append(known, "2002", "--html", "-")...)
	require.Zero(t, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "No frame stands here")
	require.NotContains(t, r.Stdout, `id="stack"`)
	require.Contains(t, explain(append(known, "-f", "0", "--html", "-")...).Stdout, `id="stack"`, "a frame without a record has a stack, and registers")
	chain := livetest.Lli(t, 19, "chain.ll", "mcjit")
	require.Contains(t, explain("-p", clitest.PID(chain), "--ir", chain.IR, "2", "--html", "-").Stdout, "3 frames stand here: ask for one of them by its number")
	explain(append(known, "5", "--html", file+".new")...).FailsEmpty(t, 2, "no record has the id 5")
	require.NoFileExists(t, file+".new")
	clitest.RequireUnharmed(t, p)
}
