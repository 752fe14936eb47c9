package ir

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const plain = "define i32 @f() {\n  ret i32 %d\n}\n"

func TestFilesAndRead(t *testing.T) {
	dir := t.TempDir()
	one := put(t, dir, "one.ll", fmt.Sprintf(plain, 1))
	two := put(t, dir, "dump/2.ll", fmt.Sprintf(plain, 2))
	put(t, dir, "dump/2-again.ll", fmt.Sprintf(plain, 2)) // the same text as 2.ll: read once
	deep := put(t, dir, "dump/sub/deep.ll", fmt.Sprintf(plain, 3))
	code := filepath.Join(dir, "dump", "code.bc")
	out, err := exec.Command(livetest.LLVM(t, 16, "llvm-as"), "-o", code, one).CombinedOutput()
	require.NoError(t, err, string(out))
	put(t, dir, "dump/notes.txt", "no module")
	put(t, dir, "dump/half.ll", "define i32 @f() {\n")
	odd := put(t, dir, "odd[1].ll", fmt.Sprintf(plain, 4)) // its name looks like a pattern

	for _, c := range []struct {
		names, want []string
		notes       int
	}{
		{[]string{one}, []string{one}, 0},
		{[]string{odd}, []string{odd}, 0},
		{[]string{filepath.Join(dir, "dump")}, []string{filepath.Join(dir, "dump", "2-again.ll"), code, deep}, 1},
		{[]string{filepath.Join(dir, "dump", "2*.ll"), one}, []string{filepath.Join(dir, "dump", "2-again.ll"), one}, 0},
		{[]string{filepath.Join(dir, "du?p")}, []string{filepath.Join(dir, "dump", "2-again.ll"), code, deep}, 1},
		{[]string{two, filepath.Join(dir, "dump", "sub")}, []string{two, deep}, 0},
	} {
		modules, notes, err := ReadNamed(c.names)
		require.NoError(t, err, c.names)
		var got []string
		for _, m := range modules {
			got = append(got, m.Name)
			require.Equal(t, m.Name != one && m.Name != two && m.Name != odd, m.Found, m.Name)
		}
		require.Equal(t, c.want, got, c.names)
		require.Len(t, notes, c.notes, notes)
	}
	_, notes, err := ReadNamed([]string{filepath.Join(dir, "dump")})
	require.NoError(t, err)
	require.Contains(t, notes[0], "half.ll:")

	for name, want := range map[string]string{
		filepath.Join(dir, "nosuch.ll"):         "no such file",
		filepath.Join(dir, "*.bc"):              "no file matches",
		filepath.Join(dir, "[.ll"):              "syntax error in pattern",
		t.TempDir():                             "contains no *.ll or *.bc file",
		filepath.Join(dir, "dump", "half.ll"):   "half.ll:",
		filepath.Join(dir, "dump", "half*.ll"):  "half.ll:", // no matched file is valid
		filepath.Join(dir, "dump", "notes.txt"): "expected top-level entity",
	} {
		_, _, err := ReadNamed([]string{name})
		require.ErrorContains(t, err, want, name)
	}
}

func TestBoundsOfNamedFiles(t *testing.T) {
	dir := t.TempDir()
	for n := range maxNotes + 3 {
		put(t, dir, fmt.Sprintf("%02d.ll", n), "x")
	}
	put(t, dir, "good.ll", fmt.Sprintf(plain, 1))
	put(t, dir, strings.Repeat("d/", maxDepth+1)+"deep.ll", fmt.Sprintf(plain, 2))
	modules, notes, err := ReadNamed([]string{dir})
	require.NoError(t, err)
	require.Len(t, modules, 1)
	require.Len(t, notes, maxNotes+1)
	require.Equal(t, "and 3 more files could not be read", notes[maxNotes])

	many := make([]string, maxFiles+1)
	_, err = Files(many)
	require.ErrorContains(t, err, "over 20000 files")
}

// TestEmptyFolderMayGrow requires that ReadGrowing accepts a folder without modules: a process may still write one.
func TestEmptyFolderMayGrow(t *testing.T) {
	modules, notes, grows, err := ReadGrowing([]string{t.TempDir()})
	if len(modules) != 0 || len(notes) != 0 || !grows || err != nil {
		t.Errorf("got %d modules, notes %q, grows %v, error %v; want an empty result that grows", len(modules), notes, grows, err)
	}
}
