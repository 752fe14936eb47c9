package verify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestVerifyHTML requires that each difference has a page with the state at the exit, although native code has continued since, and with both results
// side by side. The index must link to all pages. The browser must show the values that the loop of tick.ll computes.
func TestVerifyHTML(t *testing.T) {
	livetest.Slow(t) // starts a browser and three traced programs
	t.Parallel()
	object, module := clitest.WrongTick(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
	dir := filepath.Join(t.TempDir(), "pages")
	verify := func(args ...string) clitest.Result {
		return clitest.Run(t, append(append([]string{"verify", "--ir", module, "--function", "tick", "--html", dir}, args...), append([]string{"--"}, host...)...)...)
	}
	r := verify("--skip", "10", "--limit", "3")
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Equal(t, []string{"difference-11.html", "difference-12.html", "difference-13.html", "index.html"}, clitest.FilesIn(t, dir))

	b := livetest.Chromium(t)
	index := b.Open(t, filepath.Join(dir, "index.html"), 1400, 900)
	var rows [][]string
	index.Eval(t, `[...document.querySelectorAll("tbody tr")].map(r => [...r.cells].map(c => c.textContent))`, &rows)
	require.Len(t, rows, 3)
	var summary string
	index.Eval(t, `document.querySelector("pre").textContent`, &summary)
	require.Contains(t, summary, "3 exits verified in ")
	require.Contains(t, summary, "0 same, 3 different, 0 not comparable")
	for k, n := range []int{11, 12, 13} {
		native := clitest.TickAt(n)
		interpreter := native
		interpreter.X = native.Y
		results := []string{fmt.Sprint(interpreter.Result()), fmt.Sprint(native.Result())}
		require.Equal(t, fmt.Sprintf("exit %d, hit %d of record 1", n, n), rows[k][0])
		require.Equal(t, append([]string{"result, i64 in rax"}, results...), rows[k][3:])

		file := filepath.Join(dir, fmt.Sprintf("difference-%d.html", n))
		tab := b.Open(t, file, 1400, 900)
		var sides []string
		tab.Eval(t, `[...document.querySelectorAll(".sides tbody td")].map(e => e.textContent)`, &sides)
		require.Equal(t, results, sides)
		var values map[string]string
		tab.Eval(t, `Object.fromEntries([...document.querySelectorAll("tr.value")].map(r => [r.cells[0].querySelector("bdi").textContent, r.cells[2].textContent]))`, &values)
		require.Equal(t, map[string]string{"%i": fmt.Sprint(native.I), "%acc": fmt.Sprint(int64(native.Acc)), "%x": fmt.Sprint(int64(native.Y)), "%y": fmt.Sprint(int64(native.Y))}, values)
		// The stack map gives %x and %y the same location, whose bytes are those of %y.
		tab.Hover(t, "#v2 th")
		var stack []string
		tab.Eval(t, `[...document.querySelectorAll(".words .lit")].map(e => e.textContent)`, &stack)
		require.Equal(t, []string{inMemory(native.Y)}, stack)
		var tails []string
		tab.Eval(t, `[...document.querySelectorAll(".tails pre")].map(e => e.textContent)`, &tails)
		require.Regexp(t, `tick:done +ret i64 %t\n$`, tails[0])
		require.Regexp(t, `tick\+0x[0-9a-f]+ retq\n$`, tails[1])
		var report string
		tab.Eval(t, `document.querySelector(".report").textContent`, &report)
		require.Contains(t, report, fmt.Sprintf("  reproduce: reframe verify --ir %s --function tick", module))
		require.Contains(t, report, "  different result, i64 in rax\n")
		tab.Media(t, "screen", "dark")
		tab.Size(t, 500, 900)
		var wide float64
		tab.Eval(t, "document.documentElement.scrollWidth", &wide)
		require.LessOrEqual(t, wide, 500.0)
		require.Empty(t, tab.Messages())
		if pictures := os.Getenv("PICTURES"); pictures != "" && n == 11 {
			tab.Media(t, "screen", "light")
			tab.Size(t, 1400, 900)
			require.NoError(t, os.WriteFile(filepath.Join(pictures, "difference.png"), tab.Screenshot(t, true), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(pictures, "index.png"), index.Screenshot(t, true), 0o600))
		}
	}
	// The test clicks from the index to a page and back.
	index.Click(t, "tbody tr:nth-child(2) a")
	at := func() (name string) {
		index.Loaded(t)
		index.Eval(t, "location.pathname", &name)
		return filepath.Base(name)
	}
	require.Equal(t, "difference-12.html", at())
	index.Click(t, `nav a[href="index.html"]`)
	require.Equal(t, "index.html", at())

	// Existing pages must be kept.
	before, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	r = verify("--limit", "1")
	r.FailsEmpty(t, 2, "--html "+dir+": index.html exists; --force overwrites it")
	after, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "difference-of-mine.html"), nil, 0o600))
	require.Equal(t, 3, verify("--skip", "20", "--limit", "1", "--force", "--json").Code)
	require.Equal(t, []string{"difference-21.html", "difference-of-mine.html", "index.html"}, clitest.FilesIn(t, dir))
	index = b.Open(t, filepath.Join(dir, "index.html"), 1400, 900)
	index.Eval(t, `[...document.querySelectorAll("tbody th")].map(r => [r.textContent])`, &rows)
	require.Equal(t, [][]string{{"exit 21, hit 21 of record 1"}}, rows)
}

// inMemory formats the bytes of a number in memory order.
func inMemory(n uint64) string {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return fmt.Sprintf("% x", b[:])
}

// TestVerifyHTMLWithoutDifference requires that without differences only an index is written, which reports this, and that contradictory flags are
// rejected.
func TestVerifyHTMLWithoutDifference(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	dir := t.TempDir()
	verify := func(args ...string) clitest.Result {
		return clitest.Run(t, append(append([]string{"verify", "--ir", module}, args...), append([]string{"--"}, host...)...)...)
	}
	r := verify("--html", dir, "--limit", "2")
	require.Zero(t, r.Code, r.Stderr)
	require.Equal(t, []string{"index.html"}, clitest.FilesIn(t, dir))
	text, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	require.Contains(t, string(text), "No difference between interpreter and native code")
	require.Contains(t, string(text), "2 same, 0 different, 0 not comparable")
	verify("--html", "-").FailsEmpty(t, 64, "--html -: expected a directory; use ./- for one of that name")
	verify("--html", "").FailsEmpty(t, 64, "--html requires the name of a directory")
	verify("--html", dir, "--interesting").FailsEmpty(t, 64, "--interesting and --html cannot be combined")
}

// TestVerifyHTMLFromEntry requires that the page of an exit which is compared with a baseline has both states, and that the page of an activation
// which is verified from its entry has the entry's position.
func TestVerifyHTMLFromEntry(t *testing.T) {
	livetest.Slow(t) // starts traced programs and a browser
	t.Parallel()
	swapped := clitest.SwappedBundle(t)
	host := livetest.ObjectHostCommand(t, swapped+".o", livetest.ObjectHostOptions{Rounds: 2})
	b := livetest.Chromium(t)
	for what, c := range map[string]struct {
		args   []string
		page   string
		titles []string
	}{
		"exit": {[]string{"--layout", livetest.Testdata(t, "programs", "baseline.layout.json"), "--from-entry"}, "difference-1.html",
			[]string{"state at the exit and in the baseline @plain", "result of the baseline @plain"}},
		"entry": {[]string{"--entry", "plain_opt", "--baseline", "plain"}, "difference-entry-1.html", []string{"result of the function"}},
	} {
		dir := t.TempDir()
		args := append(append([]string{"verify", "--ir", swapped + ".ll", "--html", dir}, c.args...), append([]string{"--"}, host...)...)
		r := clitest.Run(t, args...)
		require.Equal(t, 3, r.Code, r.Stderr)
		require.Contains(t, clitest.FilesIn(t, dir), c.page)
		tab := b.Open(t, filepath.Join(dir, c.page), 1400, 900)
		var titles []string
		tab.Eval(t, `[...document.querySelectorAll(".sides caption")].map(e => e.textContent)`, &titles)
		require.Subset(t, titles, c.titles, what)
		var rows [][]string
		tab.Eval(t, `[...document.querySelectorAll(".sides tbody tr")].map(r => [...r.cells].map(c => c.textContent))`, &rows)
		require.NotEmpty(t, rows)
		var broken []string
		tab.Eval(t, `[...document.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href")).filter(h => !document.getElementById(h.slice(1)))`, &broken)
		require.Empty(t, broken)
		if what == "exit" {
			require.Equal(t, []string{"%i which is in %acc", "%acc which is in %i"}, []string{rows[len(rows)-3][0], rows[len(rows)-2][0]}, "%v", rows)
			require.Equal(t, []string{rows[len(rows)-3][1], rows[len(rows)-3][2]}, []string{rows[len(rows)-2][2], rows[len(rows)-2][1]}, "each has what the other should have")
		}
		require.Empty(t, tab.Messages())
		if pictures := os.Getenv("PICTURES"); pictures != "" {
			require.NoError(t, os.WriteFile(filepath.Join(pictures, what+".png"), tab.Screenshot(t, true), 0o600))
		}
	}
}
