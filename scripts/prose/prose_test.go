package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestSameTree requires that sameTree accepts a changed comment, and rejects a changed statement and a changed compiler directive.
func TestSameTree(t *testing.T) {
	livetest.NeedsTools(t)
	t.Chdir(t.TempDir())
	write := func(source string) {
		t.Helper()
		require.NoError(t, os.WriteFile("x.go", []byte("package x\n\n"+source), 0o644))
	}
	write("// F returns one.\n//\n//go:noinline\nfunc F() int { return 1 }\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x: add F"}} {
		out, err := exec.Command("git", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	write("// F returns the number 1,\n// always.\n//\n//go:noinline\nfunc F() int {\n\treturn 1 // one\n}\n")
	require.NoError(t, sameTree("HEAD"))
	write("// F returns one.\n//\n//go:noinline\nfunc F() int { return 2 }\n")
	require.ErrorContains(t, sameTree("HEAD"), "more than comments changed in:\n  x.go")
	write("// F returns one.\nfunc F() int { return 1 }\n")
	require.ErrorContains(t, sameTree("HEAD"), "x.go")
}

// TestCheck requires that check reads comments, strings and documents, and skips blocks of code in documents.
func TestCheck(t *testing.T) {
	for words, ok := range map[string]bool{
		"package x\n\n// F is what gets called.\nfunc F() {}\n":            false,
		"package x\n\n// F returns what it read.\nfunc F() {}\n":           true,
		"package x\n\nvar s = \"nobody answered\"\n":                       false,
		"package x\n\nvar s = \"the process did not answer\"\n":            true,
		"package x\n\n// Each frame is held against gdb's.\nfunc f() {}\n": false,
	} {
		file := filepath.Join(t.TempDir(), "x.go")
		require.NoError(t, os.WriteFile(file, []byte(words), 0o644))
		require.Equal(t, ok, check([]string{file}) == nil, "%s", words)
	}
	file := filepath.Join(t.TempDir(), "x.md")
	require.NoError(t, os.WriteFile(file, []byte("Plain.\n```\nnobody\n```\n"), 0o644))
	require.NoError(t, check([]string{file}))
	require.NoError(t, os.WriteFile(file, []byte("Ask nobody.\n"), 0o644))
	require.Error(t, check([]string{file}))
}
