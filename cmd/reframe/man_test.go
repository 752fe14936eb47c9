package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// manuals writes the manual pages as a build does, and returns them by name.
func manuals(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "man1")
	c := clitest.Command(t, "man", dir)
	c.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	require.Equal(t, clitest.Result{}, clitest.Finish(t, c))
	pages := map[string]string{}
	for _, name := range clitest.FilesIn(t, dir) {
		pages[name] = filepath.Join(dir, name)
	}
	return pages
}

// TestManualPages requires that each verb has a manual page with the text of its help, and that a man(7) renderer finds no errors in it.
func TestManualPages(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	pages := manuals(t)
	require.Len(t, pages, len(verbs())+4, "those of reframe, completion, scripts and conditions too")
	word := regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)`)
	for name, path := range pages {
		out, err := exec.Command(livetest.Tool(t, "mandoc"), "-Tlint", "-Wwarning", path).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Empty(t, string(out))
		text := clitest.RunTool(t, "mandoc", "-Tutf8", path)
		text = regexp.MustCompile(`.\x08`).ReplaceAllString(text, "") // bold characters are overstruck
		require.Contains(t, text, "2023-11-14")
		if name == "reframe.1" {
			for _, verb := range verbs() {
				require.Contains(t, pages, "reframe-"+verb+".1")
				require.Contains(t, text, "reframe-"+verb+"(1)")
			}
		}
		for _, verb := range verbs() {
			if name != "reframe-"+verb+".1" {
				continue
			}
			for _, flag := range word.FindAllStringSubmatch(clitest.Run(t, verb, "--help").Stdout, -1) {
				require.Regexp(t, `(?m)^ +(-\w, )?`+flag[1]+`\b`, text, "%s", name)
			}
			for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS OF ALL COMMANDS", "EXAMPLES", "SEE ALSO"} {
				require.Contains(t, text, "\n"+section+"\n")
			}
		}
	}
	again := manuals(t)
	for name, path := range pages {
		one, err := os.ReadFile(path)
		require.NoError(t, err)
		other, err := os.ReadFile(again[name])
		require.NoError(t, err)
		require.Equal(t, string(one), string(other))
	}
	clitest.Run(t, "man").FailsEmpty(t, 64, "a directory is missing")
	require.NotContains(t, clitest.Run(t, "--help").Stdout, "manual page")
}
