package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
)

// Every verb has help with examples, a mention in README and doc/verbs.md, a row in doc/platforms.md and, for JSON, a schema and a section in
// doc/formats.md. It fails if its output cannot be written.
func TestCommandTree(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile("../../" + path)
		require.NoError(t, err, path)
		return string(text)
	}
	readme, sections, formats, platforms := read("README.md"), read("doc/verbs.md"), read("doc/formats.md"), read("doc/platforms.md")
	require.GreaterOrEqual(t, len(verbs()), 11)
	withJSON := 0
	for _, verb := range verbs() {
		help := clitest.Run(t, verb, "--help").Stdout
		require.Contains(t, help, "\nExamples:\n  reframe "+verb, verb)
		require.Regexp(t, "`"+verb+"`|reframe "+verb, readme, "README.md says nothing of %s", verb)
		require.Contains(t, sections, "reframe "+verb, "doc/verbs.md")
		require.Regexp(t, "(?m)^\\| [^|]*`"+verb+"\\b", platforms, "doc/platforms.md has no row with %s", verb)
		require.True(t, fullDisks[verb] != nil || toldElsewhere[verb] != "", "%s has no test with /dev/full", verb)
		if !regexp.MustCompile(`(?m)^ +--json`).MatchString(help) {
			continue
		}
		withJSON++
		name := "reframe." + verb + "/v1"
		require.Contains(t, strings.Join(strings.Fields(help), " "), name, verb)
		require.Contains(t, formats, "\n## `reframe "+verb+" --json`: `"+name+"`\n", "doc/formats.md")
		require.Contains(t, read("doc/"+verb+".schema.json"), `"`+name+`"`)
		clitest.SchemaOf(t, verb+".schema.json")
	}
	require.GreaterOrEqual(t, withJSON, 9)
}
