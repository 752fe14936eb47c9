package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTestsThatAreNamedExist requires that each test which a script runs by name exists in one of the packages that the script gives. Otherwise `go
// test -run` would pass without running a test.
func TestTestsThatAreNamedExist(t *testing.T) {
	inRoot(t)
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	script, err := os.ReadFile("scripts/anywhere.sh")
	require.NoError(t, err)
	declared := func(packages []string) string {
		var all strings.Builder
		for _, p := range packages {
			files, err := filepath.Glob(filepath.Join(p, "*_test.go"))
			require.NoError(t, err)
			require.NotEmpty(t, files, p)
			for _, f := range files {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				all.Write(text)
			}
		}
		return all.String()
	}
	checked := 0
	check := func(packages []string, names string) {
		text := declared(packages)
		for name := range strings.SplitSeq(names, "|") {
			require.Regexp(t, `(?m)^func `+name, text, "%s in %v", name, packages)
			checked++
		}
	}
	for _, m := range regexp.MustCompile(`go test [^\n]*? ((?:\./[\w/]+ )+)-run '([\w|]+)'`).FindAllStringSubmatch(string(makefile), -1) {
		check(strings.Fields(m[1]), m[2])
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][\w/]+) +(Test[\w|]+)$`).FindAllStringSubmatch(string(script), -1) {
		check([]string{m[1]}, m[2])
	}
	require.Greater(t, checked, 80, "anywhere.sh")
}
