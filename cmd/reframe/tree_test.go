package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
)

// TestCommandTree requires that every verb has help with examples, a mention in README and doc/user/verbs.md, a row in doc/user/platforms.md and, if
// it prints JSON, a schema and a section in doc/user/formats.md. It must fail if its output cannot be written.
func TestCommandTree(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile("../../" + path)
		require.NoError(t, err, path)
		return string(text)
	}
	readme, sections, formats, platforms := read("README.md"), read("doc/user/verbs.md"), read("doc/user/formats.md"), read("doc/user/platforms.md")
	require.GreaterOrEqual(t, len(verbs()), 11)
	withJSON := 0
	for _, verb := range verbs() {
		help := clitest.Run(t, verb, "--help").Stdout
		require.Contains(t, help, "\nExamples:\n  reframe "+verb, verb)
		require.Regexp(t, "`"+verb+"`|reframe "+verb, readme, "README.md says nothing of %s", verb)
		require.Contains(t, sections, "reframe "+verb, "doc/user/verbs.md")
		require.Regexp(t, "(?m)^\\| [^|]*`"+verb+"\\b", platforms, "doc/user/platforms.md has no row with %s", verb)
		require.True(t, fullDisks[verb] != nil || toldElsewhere[verb] != "", "%s has no test with /dev/full", verb)
		if !regexp.MustCompile(`(?m)^ +--json`).MatchString(help) {
			continue
		}
		withJSON++
		name := "reframe." + verb + "/v1"
		require.Contains(t, strings.Join(strings.Fields(help), " "), name, verb)
		require.Contains(t, formats, "\n## `reframe "+verb+" --json`: `"+name+"`\n", "doc/user/formats.md")
		require.Contains(t, read("doc/user/schema/"+verb+".schema.json"), `"`+name+`"`)
		clitest.SchemaOf(t, verb+".schema.json")
	}
	require.GreaterOrEqual(t, withJSON, 9)
}
