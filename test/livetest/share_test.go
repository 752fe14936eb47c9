package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumberOfCase requires that the hash of a case depends only on the selection and the name. The expected digits are the first of the output of:
// printf 'abc\0case\0003\0' | sha256sum.
func TestNumberOfCase(t *testing.T) {
	require.Equal(t, uint32(0x1d90d0d6), number("abc", "case", 3))
	require.Equal(t, uint32(0x55e53915), number("", "first"))
}

// TestSharesOfSelections requires that each selection has its own share, the same each time and in any directory. FIDELITY takes precedence over the
// selection in the source.
func TestSharesOfSelections(t *testing.T) {
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
		c := exec.Command(program, "-test.run=^TestSharesOfSelections$")
		c.Dir = dir
		c.Env = append(os.Environ(), inner+"=1", "FIDELITY="+fidelity)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		before, rest, found := strings.Cut(string(out), "cases: ")
		require.True(t, found, "%s", out)
		cases, _, _ = strings.Cut(rest, "\n")
		return before, cases
	}
	here, elsewhere := t.TempDir(), t.TempDir()
	seen := map[string]bool{}
	for n := range 3 {
		selected := fmt.Sprint("selection ", n)
		said, cases := run(here, selected)
		require.Equal(t, "livetest: FIDELITY="+selected+" selects the same cases\n", said)
		_, again := run(elsewhere, selected)
		require.Equal(t, cases, again)
		seen[cases] = true
	}
	require.Len(t, seen, 3)

	said, cases := run(here, "")
	selected := strings.TrimSpace(committed)
	require.Equal(t, "livetest: FIDELITY="+selected+" selects the same cases\n", said)
	_, again := run(elsewhere, selected)
	require.Equal(t, cases, again)
	_, all := run(here, "all")
	require.True(t, strings.HasPrefix(all, "[0 [a b c d e] 0 1 2 3 "), all)
}

// TestRowsRotate requires that, over many selections, shares contain each element of a series, and each value of two nested loops.
func TestRowsRotate(t *testing.T) {
	t.Setenv("FIDELITY", "") // read by Whole
	first, outer, inner := map[uint32]bool{}, map[int]bool{}, map[int]bool{}
	for n := range 100 {
		first[number(fmt.Sprint(n), "first")%12] = true
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

// TestSlowTestsTakeTurns requires that each slow test runs in one of eight consecutive selections, and about an eighth of the tests in each.
func TestSlowTestsTakeTurns(t *testing.T) {
	runs := make([]int, turns)
	for n := range 400 {
		name := fmt.Sprint("Test", n)
		in := 0
		for selected := range turns {
			if turn(fmt.Sprint(1000+selected), name) {
				in++
				runs[selected]++
			}
		}
		require.Equal(t, 1, in, name)
	}
	for _, n := range runs {
		require.InDelta(t, 400/turns, n, 30)
	}
}

// TestSlowTestsRunByName requires that a slow test that go test -run names is not skipped, in any selection.
func TestSlowTestsRunByName(t *testing.T) {
	const inner = "LIVETEST_SLOW"
	if os.Getenv(inner) != "" {
		Slow(t)
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	for n := range turns {
		c := exec.Command(program, "-test.run=^TestSlowTestsRunByName$", "-test.v")
		c.Env = append(os.Environ(), inner+"=1", "FIDELITY="+fmt.Sprint(n))
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "SKIP")
	}
}
