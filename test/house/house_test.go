package house

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// areaOf returns the position of a package's area in Areas. Each package must belong to an area.
func areaOf(t *testing.T, path string) int {
	t.Helper()
	n := AreaOf(path)
	require.GreaterOrEqual(t, n, 0, "%s is in no area", path)
	return n
}

// imports returns the packages of this module that each of its packages imports outside of tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	list := goList(t, "{{.ImportPath}} {{join .Imports \" \"}}")
	all := map[string][]string{}
	for _, line := range list {
		words := strings.Fields(line)
		path := strings.TrimPrefix(words[0], Module)
		all[path] = nil
		for _, imported := range words[1:] {
			if own, ok := strings.CutPrefix(imported, Module); ok {
				all[path] = append(all[path], own)
			}
		}
	}
	return all
}

// TestImportsPointOneWay requires that each import between areas leads to an area that is above in the list. It logs the numbers of packages and imports
// (go test -v).
func TestImportsPointOneWay(t *testing.T) {
	inRoot(t)
	packages := imports(t)
	product, all, between := 0, 0, map[[2]int]bool{}
	for path, list := range packages {
		if !strings.HasPrefix(path, "test/") {
			product++
		}
		all += len(list)
		from := areaOf(t, path)
		for _, imported := range list {
			to := areaOf(t, imported)
			require.LessOrEqual(t, to, from, "%s imports %s, whose area is below its own in the list", path, imported)
			if to < from {
				between[[2]int{from, to}] = true
			}
		}
	}
	t.Logf("%d packages, %d of them outside of test, in %d areas; %d imports between packages, %d between areas", len(packages), product, len(Areas), all, len(between))
	require.NotEmpty(t, between)
}

// TestArchitecture requires that doc/dev/architecture.md has the tables of Areas, with the first sentence of each package comment.
func TestArchitecture(t *testing.T) {
	inRoot(t)
	const document, begin, end = "doc/dev/architecture.md", "<!-- areas -->\n", "<!-- end -->"
	list := goList(t, "{{.ImportPath}}\t{{.Doc}}")
	rows := make([]string, len(Areas))
	for _, line := range list {
		path, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		path = strings.TrimPrefix(path, Module)
		doc = strings.TrimPrefix(strings.TrimPrefix(doc, "Package "), "Command ")
		_, doc, _ = strings.Cut(doc, " ") // cuts off the name of the package
		doc, _, _ = strings.Cut(doc, " (")
		doc, _, _ = strings.Cut(doc, ": ")
		doc = strings.ReplaceAll(strings.TrimSuffix(doc, "."), "|", "\\|")
		rows[areaOf(t, path)] += fmt.Sprintf("| `%s` | %s |\n", path, doc)
	}
	var table strings.Builder
	for n, a := range Areas {
		fmt.Fprintf(&table, "\n**%s**: %s\n\n| package | task |\n|---|---|\n%s", a.Folder, a.Holds, rows[n])
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	now, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if os.Getenv("HOUSE") == "update" {
		require.NoError(t, os.WriteFile(document, []byte(before+begin+table.String()+end+after), 0o644))
		return
	}
	require.Equal(t, table.String(), now, "HOUSE=update go test -run TestArchitecture ./test/house")
}

// TestProgramsAreStartedWithAllSignals requires that all tests that start programs import livetest. Its init resets signals that were ignored or
// blocked when the test was started, for example by nohup.
func TestProgramsAreStartedWithAllSignals(t *testing.T) {
	inRoot(t)
	list := goList(t, "{{.ImportPath}} {{join .TestImports \" \"}} {{join .XTestImports \" \"}}")
	checked := 0
	for _, line := range list {
		words := strings.Fields(line)
		if !slices.Contains(words[1:], "os/exec") || words[0] == Module+"test/livetest" {
			continue
		}
		require.Contains(t, words[1:], Module+"test/livetest", "%s", words[0])
		checked++
	}
	require.Greater(t, checked, 10)
}
