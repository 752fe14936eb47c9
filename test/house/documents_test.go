package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testsOfTheRepository returns the packages that have a test, by the name of the test.
func testsOfTheRepository(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				found[f.Name.Name] = append(found[f.Name.Name], filepath.ToSlash(filepath.Dir(file)))
			}
		}
		return nil
	})
	require.NoError(t, err)
	return found
}

// A row is a row of a table that has a column of tests.
type row struct {
	line  int
	cells []string
}

// rowsWithTests returns the rows of tables in a document whose last column contains tests.
func rowsWithTests(t *testing.T, file string) []row {
	t.Helper()
	return rowsWith(t, file, "test")
}

// rowsWith returns the rows of tables in a document whose last column has the given title.
func rowsWith(t *testing.T, file, title string) (rows []row) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	columns := 0 // number of columns of the current table; 0 outside of such a table
	for n, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[len(cells)-1] == title:
			columns = len(cells)
		case columns > 0 && !strings.HasPrefix(line, "|---"):
			require.Len(t, cells, columns, "%s:%d", file, n+1)
			rows = append(rows, row{n + 1, cells})
		}
	}
	return rows
}

var namedTest = regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?(Test[A-Za-z0-9_]+)`")

// namedTests returns the tests that a cell names, and its errors: a test that does not exist, or a name that several packages use while the cell
// names no package.
func namedTests(cell string, tests map[string][]string) (names, wrong []string) {
	for _, m := range namedTest.FindAllStringSubmatch(cell, -1) {
		names = append(names, m[0])
		var in []string
		for _, folder := range tests[m[2]] {
			if m[1] == "" || folder == m[1] || path.Base(folder) == m[1] {
				in = append(in, folder)
			}
		}
		switch {
		case len(in) == 0:
			wrong = append(wrong, m[0]+" is not there")
		case len(in) > 1:
			wrong = append(wrong, m[0]+" may be that of "+strings.Join(in, ", "))
		}
	}
	return names, wrong
}

// reason matches the reason in a row without a test.
var reason = regexp.MustCompile(`^\*\*(not asked|out of reach|open)\*\*: \S+( \S+){2,}`)

// documentRow returns the errors in a row of doc/dev/documents.md.
func documentRow(cells []string, tests map[string][]string) []string {
	names, wrong := namedTests(cells[3], tests)
	for _, c := range cells[:3] {
		if c == "" {
			wrong = append(wrong, "an empty cell")
		}
	}
	if explained := reason.MatchString(cells[2]); explained == (len(names) > 0) {
		wrong = append(wrong, "either a test or a reason")
	}
	return wrong
}

// TestDocuments requires that each row of doc/dev/documents.md names existing tests, or gives a reason.
func TestDocuments(t *testing.T) {
	inRoot(t)
	tests := testsOfTheRepository(t)
	rows := rowsWithTests(t, "doc/dev/documents.md")
	require.Greater(t, len(rows), 100)
	for _, r := range rows {
		require.Len(t, r.cells, 4, "line %d", r.line)
		require.Empty(t, documentRow(r.cells, tests), "doc/dev/documents.md:%d: %s", r.line, r.cells[1])
	}

	for _, r := range rowsWithTests(t, "doc/user/threats.md") {
		require.Len(t, r.cells, 4, "line %d", r.line)
		require.Empty(t, documentRow(r.cells, tests), "doc/user/threats.md:%d: %s", r.line, r.cells[1])
	}

	faults := rowsWithTests(t, "doc/dev/faults.md")
	require.Greater(t, len(faults), 40)
	for _, r := range faults {
		names, wrong := namedTests(r.cells[len(r.cells)-1], tests)
		require.Empty(t, wrong, "doc/dev/faults.md:%d: %s", r.line, r.cells[0])
		require.NotEmpty(t, names, "doc/dev/faults.md:%d: %s", r.line, r.cells[0])
	}

	for _, c := range []struct{ do, test, want string }{
		{"reads it", "`TestDocuments`", ""},
		{"reads it", "`TestDocument`", "`TestDocument` is not there"},
		{"reads it", "`deopt.TestDocuments`", "`deopt.TestDocuments` is not there"},
		{"reads it", "`TestStatepoint`", "`TestStatepoint` may be that of"},
		{"reads it", "`deopt.TestStatepoint`", ""},
		{"reads it", "", "either a test or a reason"},
		{"reads it", "seen by hand", "either a test or a reason"},
		{"**open**: nobody did it", "", ""},
		{"**open**", "", "either a test or a reason"},
		{"**open**: nobody did it", "`TestDocuments`", "either a test or a reason"},
	} {
		require.Contains(t, strings.Join(append(documentRow([]string{"section", "says", c.do, c.test}, tests), ""), "\n"), c.want, "%s", c)
		require.Equal(t, c.want == "", len(documentRow([]string{"section", "says", c.do, c.test}, tests)) == 0, "%s", c)
	}
}

// TestCommandsOfFaults requires that each command in doc/dev/faults.md runs a script that exists, or tests that exist in its package.
func TestCommandsOfFaults(t *testing.T) {
	inRoot(t)
	tests := testsOfTheRepository(t)
	rows := rowsWith(t, "doc/dev/faults.md", "command")
	require.Greater(t, len(rows), 8)
	for _, r := range rows {
		require.Empty(t, wrongCommands(r.cells[1], tests), "doc/dev/faults.md:%d: %s", r.line, r.cells[0])
	}
	for cell, want := range map[string]string{
		"`scripts/nothing.sh 5`":                                         "scripts/nothing.sh does not exist",
		"`go test -run TestCommandsOfFaults ./test/house`":               "",
		"`FIDELITY=all go test -v -run TestCommandsOfFaults ./ptrace`":   "no test matches",
		"`go test -run 'TestCommandsOfFaults|TestNothing' ./test/house`": "no test matches TestNothing",
		"[a document](patches.md)":                                       "",
		"by hand":                                                        "neither a command nor a document",
	} {
		got := wrongCommands(cell, tests)
		require.Contains(t, got, want, cell)
		require.Equal(t, want == "", got == "", "%s: %s", cell, got)
	}
}

var (
	anyCommand  = regexp.MustCompile("`([^`]+)`")
	goTest      = regexp.MustCompile(`go test .*-run '?([A-Za-z0-9_|]+)'? \./([a-z0-9/]+)$`)
	anyDocument = regexp.MustCompile(`\]\([a-z]+\.md\)`)
)

// wrongCommands returns the first error in a cell of commands, or "".
func wrongCommands(cell string, tests map[string][]string) string {
	commands := anyCommand.FindAllStringSubmatch(cell, -1)
	if len(commands) == 0 && !anyDocument.MatchString(cell) {
		return "neither a command nor a document"
	}
	for _, m := range commands {
		if script, _, _ := strings.Cut(m[1], " "); strings.HasPrefix(script, "scripts/") {
			if _, err := os.Stat(script); err != nil {
				return script + " does not exist"
			}
			continue
		}
		run := goTest.FindStringSubmatch(m[1])
		if run == nil {
			return m[1] + ": not a command that this test knows"
		}
		for pattern := range strings.SplitSeq(run[1], "|") {
			found := false
			for name, folders := range tests {
				found = found || strings.Contains(name, pattern) && slices.Contains(folders, run[2])
			}
			if !found {
				return "no test matches " + pattern
			}
		}
	}
	return ""
}

// TestFacts requires that the tests in doc/dev/facts.md exist. A fact without a test must name the package or the benchmark that shows it, or say
// that it was observed by hand.
func TestFacts(t *testing.T) {
	inRoot(t)
	tests := testsOfTheRepository(t)
	named := regexp.MustCompile("`([a-z0-9/]+)`")
	rows := rowsWithTests(t, "doc/dev/facts.md")
	require.Greater(t, len(rows), 70)
	for _, r := range rows {
		cell := r.cells[len(r.cells)-1]
		names, wrong := namedTests(cell, tests)
		for _, w := range wrong {
			require.NotContains(t, w, "is not there", "doc/dev/facts.md:%d", r.line)
		}
		folder := false
		for _, m := range named.FindAllStringSubmatch(cell, -1) {
			info, err := os.Stat(m[1])
			folder = folder || err == nil && info.IsDir()
		}
		require.True(t, len(names) > 0 || folder || strings.Contains(cell, "by hand") || strings.Contains(cell, "`make bench`"), "doc/dev/facts.md:%d: %s", r.line, cell)
	}
}
