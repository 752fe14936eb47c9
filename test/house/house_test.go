package house

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An area is a folder whose packages belong together. A package of an area inside of another one, such as internal/llvm/ir, belongs to the inner area alone.
type area struct{ folder, holds string }

// areas are ordered: a package imports packages of its own area and of areas above it in this list.
var areas = []area{
	{"internal/base", "files, errors in JSON, confinement: code that does not depend on frames"},
	{"deopt/frame", "the abstract frame and its JSON (public)"},
	{"internal/machine", "architectures, machine code, images of code (ELF, Mach-O, COFF), symbols, source lines"},
	{"internal/llvm/ir", "modules of LLVM IR"},
	{"deopt/stackmap", "records of stack maps (public)"},
	{"ptrace", "targets: processes and cores (public)"},
	{"deopt/unwind", "physical frames (public)"},
	{"deopt/interp", "the reference interpreter (public)"},
	{"internal/llvm", "calling conventions, and the matching of records with calls in the IR"},
	{"internal/progspace", "all code of a target, including patched code"},
	{"internal/vm", "a user's virtual machine: its layouts, the descriptions in its memory, the protocol of its interpreter, conditions"},
	{"internal/static", "verbs that need no process: maps, lint, instrument"},
	{"deopt", "abstract frames of a target (public): match, fill, resume"},
	{"internal/check", "verbs that run a process: trace, commit, verify, stress"},
	{"internal/cli", "the command line"},
	{"replay", "saved exits as tests"},
	{"internal/report", "what is printed: text, JSON, explanations of a frame, pages"},
	{"internal/debug", "debugging sessions, at a prompt and in editors"},
	{"internal/demo", "the target of reframe demo"},
	{"cmd/reframe", "one file for each verb"},
	{"test", "tests of the program by subject, comparisons with programs of others, and helpers that tests share"},
	{"bench", "benchmarks beside gdb, eu-stack and llvm-readobj"},
	{"scripts", "releases"},
}

const module = "example.com/reframe/"

// areaOf returns the position in areas of the innermost area that contains a package.
func areaOf(t *testing.T, path string) int {
	t.Helper()
	best := -1
	for n, a := range areas {
		if (path == a.folder || strings.HasPrefix(path, a.folder+"/")) && (best < 0 || len(a.folder) > len(areas[best].folder)) {
			best = n
		}
	}
	require.GreaterOrEqual(t, best, 0, "%s is in no area", path)
	return best
}

// imports returns the packages of this module that each of its packages imports outside of tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	list := goList(t, "{{.ImportPath}} {{join .Imports \" \"}}")
	all := map[string][]string{}
	for _, line := range list {
		words := strings.Fields(line)
		path := strings.TrimPrefix(words[0], module)
		all[path] = nil
		for _, imported := range words[1:] {
			if own, ok := strings.CutPrefix(imported, module); ok {
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
	t.Logf("%d packages, %d of them outside of test, in %d areas; %d imports between packages, %d between areas", len(packages), product, len(areas), all, len(between))
	require.NotEmpty(t, between)
}

// TestArchitecture requires that the table of areas in doc/dev/architecture.md is that of this file, with the first sentence of each package's
// doc.
func TestArchitecture(t *testing.T) {
	inRoot(t)
	const document, begin, end = "doc/dev/architecture.md", "<!-- areas -->\n", "<!-- end -->"
	list := goList(t, "{{.ImportPath}}\t{{.Doc}}")
	rows := make([]string, len(areas))
	for _, line := range list {
		path, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		path = strings.TrimPrefix(path, module)
		doc = strings.TrimPrefix(strings.TrimPrefix(doc, "Package "), "Command ")
		_, doc, _ = strings.Cut(doc, " ") // its name
		doc, _, _ = strings.Cut(doc, " (")
		doc, _, _ = strings.Cut(doc, ": ")
		doc = strings.ReplaceAll(strings.TrimSuffix(doc, "."), "|", "\\|")
		rows[areaOf(t, path)] += fmt.Sprintf("| `%s` | %s |\n", path, doc)
	}
	var table strings.Builder
	for n, a := range areas {
		fmt.Fprintf(&table, "\n**%s**: %s\n\n| package | task |\n|---|---|\n%s", a.folder, a.holds, rows[n])
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

// TestProgramsAreStartedWithAllSignals requires that all tests that start programs import livetest: its init restores the signals that a test was
// started without, as under nohup.
func TestProgramsAreStartedWithAllSignals(t *testing.T) {
	inRoot(t)
	list := goList(t, "{{.ImportPath}} {{join .TestImports \" \"}} {{join .XTestImports \" \"}}")
	checked := 0
	for _, line := range list {
		words := strings.Fields(line)
		if !slices.Contains(words[1:], "os/exec") || words[0] == module+"test/livetest" {
			continue
		}
		require.Contains(t, words[1:], module+"test/livetest", "%s", words[0])
		checked++
	}
	require.Greater(t, checked, 10)
}
