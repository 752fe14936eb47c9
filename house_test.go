package reframe_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// floors are the packages of the house, the lowest first. A package imports only what
// lies on lower floors.
var floors = [][]string{
	{"internal/filekind", "internal/confine"},
	{"deopt/machine", "deopt/frame", "deopt/ir", "deopt/interp/internal/softfloat", "internal/newfile", "internal/jsonat", "internal/near", "internal/fold", "internal/manpage", "internal/peer", "ptrace/elfcore", "ptrace/files"},
	{"deopt/object", "deopt/names", "deopt/condition", "deopt/irset", "deopt/perfmap", "deopt/lanes", "deopt/isa/amd64", "deopt/isa/arm64", "deopt/interp/internal/libm", "ptrace/system", "ptrace/regset", "ptrace/trapcode"},
	{"ptrace/tracer", "ptrace/xsave", "deopt/isa", "deopt/unwind/cfi", "deopt/unwind/internal/unwindtest"},
	{"deopt/stackmap", "deopt/source", "ptrace"},
	{"deopt/unwind", "deopt/interp"},
	{"deopt/abi", "deopt/vmproto"},
	{"deopt/sites"},
	{"deopt/progspace"},
	{"deopt/layout", "deopt/vmlayout", "deopt/patched"},
	{"deopt/maps", "deopt/lint", "deopt/described", "deopt/dumps"},
	{"deopt", "deopt/instrument"},
	{"deopt/handover"},
	{"deopt/explain", "deopt/commit", "deopt/trace", "deopt/provenance", "deopt/protocheck"},
	{"deopt/verify", "deopt/stress"},
	{"deopt/page", "internal/flags"},
	{"demo", "replay"},
	{"session"},
	{"session/dap", "session/prompt"},
	{"cmd/reframe"},
	// Above the program, so that no part of it imports them.
	{"internal/livetest"},
	{"deopt/frametest", "internal/tinyvmtest"},
	{"internal/clitest"},
	{"test/arm64", "test/debug", "test/frames", "test/maps", "test/replay", "test/resume", "test/trace", "test/verify"},
	{"bench", "fidelity", "fidelity/patches", "fidelity/tiers", "fidelity/truth", "fidelity/vmframes", "scripts/release"},
}

func TestImportsGoDown(t *testing.T) {
	floor := map[string]int{}
	for n, packages := range floors {
		for _, p := range packages {
			floor["reframe/"+p] = n
		}
	}
	list, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if words[0] == "reframe" {
			continue // this test
		}
		require.Contains(t, floor, words[0], "a package that has no floor")
		seen++
		for _, imported := range words[1:] {
			if strings.HasPrefix(imported, "reframe/") {
				require.Less(t, floor[imported], floor[words[0]], "%s imports %s", words[0], imported)
			}
		}
	}
	require.Equal(t, len(floor), seen)
}

// TestArchitecture requires that the table of the floors in doc/architecture.md is that of this file, with the first sentence of each package's
// doc.
func TestArchitecture(t *testing.T) {
	const document, begin, end = "doc/architecture.md", "<!-- floors -->\n", "<!-- end -->"
	list, err := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Doc}}", "./...").Output()
	require.NoError(t, err)
	says := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		doc = strings.TrimPrefix(strings.TrimPrefix(doc, "Package "), "Command ")
		_, doc, _ = strings.Cut(doc, " ") // its name
		doc, _, _ = strings.Cut(doc, " (")
		doc, _, _ = strings.Cut(doc, ": ")
		says[strings.TrimPrefix(path, "reframe/")] = strings.TrimSuffix(doc, ".")
	}
	var table strings.Builder
	table.WriteString("| floor | package | what it is |\n|---|---|---|\n")
	for n := len(floors) - 1; n >= 0; n-- {
		for _, p := range floors[n] {
			fmt.Fprintf(&table, "| %d | `%s` | %s |\n", n, p, strings.ReplaceAll(says[p], "|", "\\|"))
		}
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
	require.Equal(t, table.String(), now, "HOUSE=update go test -run TestArchitecture .")
}

// TestProgramsAreStartedWithAllSignals requires that all tests that start programs import livetest: its init restores the signals that a test was
// started without, as under nohup.
func TestProgramsAreStartedWithAllSignals(t *testing.T) {
	list, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .TestImports \" \"}} {{join .XTestImports \" \"}}", "./...").Output()
	require.NoError(t, err)
	checked := 0
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if !slices.Contains(words[1:], "os/exec") || words[0] == "reframe" || words[0] == "reframe/internal/livetest" {
			continue
		}
		require.Contains(t, words[1:], "reframe/internal/livetest", "%s", words[0])
		checked++
	}
	require.Greater(t, checked, 10)
}
