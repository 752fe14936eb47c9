package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The hash of a case depends on nothing but the selection and the name: printf 'abc\0case\0003\0' | sha256sum begins with these digits.
func TestNumberOfCase(t *testing.T) {
	require.Equal(t, uint32(0x1d90d0d6), number("abc", "case", 3))
}

// Each commit has another share, the same each time, and FIDELITY selects the share of a commit in any directory. Outside a repository the share is
// always the same.
func TestSharesOfCommits(t *testing.T) {
	const inner = "LIVETEST_SHARES"
	if os.Getenv(inner) != "" {
		cases := []any{First(12), ShareOf([]string{"a", "b", "c", "d", "e"}, "one")}
		for n := range 60 {
			if Share(6, "case", n) && !Out(1, n) {
				cases = append(cases, n)
			}
		}
		fmt.Println("cases:", cases)
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	run := func(dir, fidelity string) (selected, cases string) {
		c := exec.Command(program, "-test.run=^TestSharesOfCommits$")
		c.Dir = dir
		c.Env = append(os.Environ(), inner+"=1", "FIDELITY="+fidelity)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		before, rest, found := strings.Cut(string(out), "cases: ")
		require.True(t, found, "%s", out)
		cases, _, _ = strings.Cut(rest, "\n")
		return before, cases
	}
	repository, plain := t.TempDir(), t.TempDir()
	git := func(args ...string) string {
		c := exec.Command(Tool(t, "git"), append([]string{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	below := filepath.Join(repository, "below")
	require.NoError(t, os.Mkdir(below, 0o755))
	seen := map[string]bool{}
	for n := range 3 {
		git("commit", "-q", "--allow-empty", "-m", fmt.Sprint(n))
		commit := git("rev-parse", "HEAD")
		said, cases := run(below, "")
		require.Equal(t, "livetest: FIDELITY="+commit+" selects the same cases\n", said)
		_, again := run(plain, commit)
		require.Equal(t, cases, again)
		seen[cases] = true
	}
	require.Len(t, seen, 3)

	said, cases := run(plain, "")
	require.Empty(t, said)
	// printf '\0first\0' | sha256sum begins with 55e53915, and 0x55e53915 % 12 is 5.
	require.True(t, strings.HasPrefix(cases, "[5 "), cases)
	_, all := run(plain, "all")
	require.True(t, strings.HasPrefix(all, "[0 [a b c d e] 0 1 2 3 "), all)
}

// In time each element of a row is in a share, and each value of two loops.
func TestRowsRotate(t *testing.T) {
	t.Setenv("FIDELITY", "") // as Whole reads it
	first, outer, inner := map[uint32]bool{}, map[int]bool{}, map[int]bool{}
	for commit := range 100 {
		first[number(fmt.Sprint(commit), "first")%12] = true
	}
	require.Len(t, first, 12)
	for n := range 12 {
		for m := range 12 {
			if !Out(12, n+m) {
				outer[n], inner[m] = true, true
			}
		}
	}
	require.Len(t, outer, 12)
	require.Len(t, inner, 12)
}
