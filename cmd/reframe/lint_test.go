package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

func lintFile(t *testing.T, name string) string { return livetest.Testdata(t, "lint", name) }

func TestLint(t *testing.T) {
	t.Parallel()
	path := lintFile(t, "gclive.ll")
	r := reframe(t, "lint", path)
	require.Equal(t, 1, r.code)
	require.Equal(t, path+":15: cannot resume: statepoint 2 of @two, block %0: %o, %p are live after it and in no deopt bundle, "+
		"and of the 2 gc pointers for which that is so a record tells none from another; add them to its deopt bundle [gc-live]\n", r.stdout)
	require.Equal(t, path+": 3 sites, 1 × cannot resume, 0 warnings\n", r.stderr)

	// Warnings alone are not a failure.
	r = reframe(t, "lint", lintFile(t, "dropped.ll"))
	require.Equal(t, 0, r.code)
	require.Equal(t, 2, strings.Count(r.stdout, ": warning: "))
	require.Equal(t, 2, strings.Count(r.stdout, "\n"))

	clean := livetest.Testdata(t, "programs", "deoptimize.ll")
	r = reframe(t, "lint", clean, "--layout", layout(t))
	require.Equal(t, result{0, "", clean + ": 1 site, 0 × cannot resume, 0 warnings\n"}, r)

	none := write(t, "none.ll", "define void @f() {\n  ret void\n}\n")
	r = reframe(t, "lint", none)
	require.Equal(t, result{0, "", none + ": no stackmap, patchpoint, statepoint, deoptimize or guard\n"}, r)
}

// The function in which a layout resumes may be in another module.
func TestLintOfSeveralModules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), "define i64 @sum(")
	require.True(t, found)
	sum, after, found := strings.Cut(rest, "\n}\n")
	require.True(t, found)
	optimized, baseline := write(t, "optimized.ll", before+after), write(t, "baseline.ll", "define i64 @sum("+sum+"\n}\n")
	r := reframe(t, "lint", optimized, "--layout", layout(t))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, "no module defines a function @sum")
	r = reframe(t, "lint", optimized, baseline, "--layout", layout(t))
	require.Equal(t, 0, r.code, r.stdout)
	require.Empty(t, r.stdout)
}

func TestLintRefuses(t *testing.T) {
	t.Parallel()
	good := lintFile(t, "guard.ll")
	reframe(t, "lint").failsEmpty(t, 64, "MODULE.ll is missing")
	reframe(t, "lint", good, "--nosuch").failsEmpty(t, 64, "--nosuch")
	reframe(t, "lint", "/nosuch.ll").failsEmpty(t, 2, "/nosuch.ll", "no such file")
	reframe(t, "lint", t.TempDir()).failsEmpty(t, 2, "no file *.ll or *.bc is in it")
	reframe(t, "lint", good, "--layout", "/nosuch.json").failsEmpty(t, 2, "/nosuch.json", "no such file")
	reframe(t, "lint", good, "--layout", good).failsEmpty(t, 2, "guard.ll: IR, and no layout")
	for name, text := range map[string]string{"broken.ll": "define void @f( {\n}\n", "readme.txt": "no IR at all\n"} {
		r := reframe(t, "lint", write(t, name, text)) // what is wrong in one line, and below it the line of the file
		require.Equal(t, 2, r.code)
		require.Empty(t, r.stdout)
		line, _, _ := strings.Cut(r.stderr, "\n")
		require.Contains(t, line, name+":")
		require.Contains(t, line, "expected")
	}
	variable := write(t, "variable.ll", `declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %a, i32 0)
  ret void
}
`)
	reframe(t, "lint", variable).failsEmpty(t, 2, "variable.ll:3: argument 1 of stackmap must be a constant")
}

// The JSON of lint matches its schema, and the same input always gives the same output.
func TestLintJSON(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(lintFile(t, "") + "/*.ll")
	require.NoError(t, err)
	for _, path := range files {
		for _, args := range [][]string{{}, {"--layout", lintFile(t, "misfit.layout.json")}, {"--layout", lintFile(t, "guard.layout.json")}} {
			args = append([]string{"lint", "--json", path}, args...)
			r := reframe(t, args...)
			require.Contains(t, []int{0, 1}, r.code, "%v\n%s", args, r.stderr)
			require.Empty(t, r.stderr)
			valid(t, "lint.schema.json", r.stdout)
			require.Equal(t, r, reframe(t, args...))
		}
	}
	one := reframe(t, "lint", "--json", lintFile(t, "gclive.ll")).object(t)
	require.Equal(t, "reframe.lint/v1", one["schema"])
	finding := list(t, one["findings"])[0]
	require.Equal(t, []any{"%o", "%p"}, finding["names"])
	require.Equal(t, "two", finding["function"])
}

func TestLintColor(t *testing.T) {
	t.Parallel()
	path := lintFile(t, "gclive.ll")
	require.NotContains(t, reframe(t, "lint", path).stdout, escape)
	require.Contains(t, reframe(t, "lint", path, "--color", "always").stdout, escape)
	require.NotContains(t, reframe(t, "lint", path, "--json", "--color", "always").stdout, escape)
	// The names of a module's values are safe for a terminal.
	named := write(t, "named.ll", "define i64 @\"\\1B[31m\"(i64 %\"\\1B[32m\") {\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n"+
		"  ret i64 %\"\\1B[32m\"\n}\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
	for _, flag := range []string{"--color=never", "--json"} {
		r := reframe(t, "lint", named, flag)
		require.Equal(t, 1, r.code, r.stderr)
		require.NotContains(t, r.stdout, escape)
	}
}

func TestLintHelp(t *testing.T) {
	t.Parallel()
	r := reframe(t, "lint", "--help")
	require.Equal(t, 0, r.code)
	require.Contains(t, r.stdout, "\nExamples:\n  reframe lint ")
	for _, flag := range []string{"--layout", "--json", "--color"} {
		require.Contains(t, r.stdout, "  "+flag+" ")
	}
	require.Contains(t, reframe(t, "__complete", "lint", "").stdout, "ll\n:8\n")
	require.Contains(t, reframe(t, "__complete", "lint", "--layout", "").stdout, "json\nstar\n:8\n")
}

// A layout that allocates ever more memory at a site is ended, and the finding says so. The limit is that of its own process.
func TestLintBoundsMemoryOfLayouts(t *testing.T) {
	t.Parallel()
	module := livetest.Testdata(t, "programs", "vmsimple.ll")
	grows := "\n  text = 'x'\n  for n in range(30): text = text + text\n"
	for place, star := range map[string]string{
		"at a site": "def frames(site):" + grows + "  return None\n",
		"at once":   "def grow():" + grows + "grow()\ndef frames(site):\n  return None\n",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			c := command(t, "lint", module, "--layout", write(t, "grows.star", star))
			r := finish(t, c)
			require.Contains(t, r.stdout+r.stderr, "the layout's process ended, as it does where it wants over 256 MiB")
			require.Equal(t, map[string]int{"at a site": 1, "at once": 2}[place], r.code)
			used := c.ProcessState.SysUsage().(*syscall.Rusage)
			require.Less(t, used.Maxrss, int64(640<<10), "in KiB: without the bound its texts had 1 GiB")
		})
	}
}
