package maps_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

func lintFile(t *testing.T, name string) string { return livetest.Testdata(t, "lint", name) }

func TestLint(t *testing.T) {
	t.Parallel()
	path := lintFile(t, "gclive.ll")
	r := clitest.Run(t, "lint", path)
	require.Equal(t, 1, r.Code)
	require.Equal(t, path+":15: cannot resume: statepoint 2 of @two, block %0: %o, %p are live after it but in no deopt bundle, "+
		"and a record does not distinguish the 2 gc pointers for which this is true; add them to its deopt bundle [gc-live]\n", r.Stdout)
	require.Equal(t, path+": 3 sites, 1 × cannot resume, 0 warnings\n", r.Stderr)

	// Warnings alone are not a failure.
	r = clitest.Run(t, "lint", lintFile(t, "dropped.ll"))
	require.Equal(t, 0, r.Code)
	require.Equal(t, 2, strings.Count(r.Stdout, ": warning: "))
	require.Equal(t, 2, strings.Count(r.Stdout, "\n"))

	clean := livetest.Testdata(t, "programs", "deoptimize.ll")
	r = clitest.Run(t, "lint", clean, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, clitest.Result{Code: 0, Stdout: "", Stderr: clean + ": 1 site, 0 × cannot resume, 0 warnings\n"}, r)

	none := clitest.TempFile(t, "none.ll", "define void @f() {\n  ret void\n}\n")
	r = clitest.Run(t, "lint", none)
	require.Equal(t, clitest.Result{Code: 0, Stdout: "", Stderr: none + ": no stackmap, patchpoint, statepoint, deoptimize or guard\n"}, r)
}

// TestLintOfSeveralModules requires that the function in which a layout resumes may be in another module.
func TestLintOfSeveralModules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), "define i64 @sum(")
	require.True(t, found)
	sum, after, found := strings.Cut(rest, "\n}\n")
	require.True(t, found)
	optimized, baseline := clitest.TempFile(t, "optimized.ll", before+after), clitest.TempFile(t, "baseline.ll", "define i64 @sum("+sum+"\n}\n")
	r := clitest.Run(t, "lint", optimized, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stdout, "no module defines a function @sum")
	r = clitest.Run(t, "lint", optimized, baseline, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stdout)
	require.Empty(t, r.Stdout)
}

func TestLintRefuses(t *testing.T) {
	t.Parallel()
	good := lintFile(t, "guard.ll")
	clitest.Run(t, "lint").FailsEmpty(t, 64, "MODULE.ll is missing")
	clitest.Run(t, "lint", good, "--nosuch").FailsEmpty(t, 64, "--nosuch")
	clitest.Run(t, "lint", "/nosuch.ll").FailsEmpty(t, 2, "/nosuch.ll", "no such file")
	clitest.Run(t, "lint", t.TempDir()).FailsEmpty(t, 2, "contains no *.ll or *.bc file")
	clitest.Run(t, "lint", good, "--layout", "/nosuch.json").FailsEmpty(t, 2, "/nosuch.json", "no such file")
	clitest.Run(t, "lint", good, "--layout", good).FailsEmpty(t, 2, "guard.ll: expected a layout, got IR")
	for name, text := range map[string]string{"broken.ll": "define void @f( {\n}\n", "readme.txt": "no IR at all\n"} {
		r := clitest.Run(t, "lint", clitest.TempFile(t, name, text)) // the error is one line, followed by the line of the file
		require.Equal(t, 2, r.Code)
		require.Empty(t, r.Stdout)
		line, _, _ := strings.Cut(r.Stderr, "\n")
		require.Contains(t, line, name+":")
		require.Contains(t, line, "expected")
	}
	variable := clitest.TempFile(t, "variable.ll", `declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %a, i32 0)
  ret void
}
`)
	clitest.Run(t, "lint", variable).FailsEmpty(t, 2, "variable.ll:3: argument 1 of stackmap must be a constant")
}

// TestLintJSON requires that the JSON of lint matches its schema, and that the same input always gives the same output.
func TestLintJSON(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	files, err := filepath.Glob(lintFile(t, "") + "/*.ll")
	require.NoError(t, err)
	for _, path := range files {
		for _, args := range [][]string{{}, {"--layout", lintFile(t, "misfit.layout.json")}, {"--layout", lintFile(t, "guard.layout.json")}} {
			args = append([]string{"lint", "--json", path}, args...)
			r := clitest.Run(t, args...)
			require.Contains(t, []int{0, 1}, r.Code, "%v\n%s", args, r.Stderr)
			require.Empty(t, r.Stderr)
			clitest.RequireValid(t, "lint.schema.json", r.Stdout)
			require.Equal(t, r, clitest.Run(t, args...))
		}
	}
	one := clitest.Run(t, "lint", "--json", lintFile(t, "gclive.ll")).Object(t)
	require.Equal(t, "reframe.lint/v1", one["schema"])
	finding := clitest.Objects(t, one["findings"])[0]
	require.Equal(t, []any{"%o", "%p"}, finding["names"])
	require.Equal(t, "two", finding["function"])
}

// Lint --gc reports a stale pointer with its safepoint. Possible findings alone are not a failure.
func TestLintGC(t *testing.T) {
	t.Parallel()
	const rewritten = `declare void @collect()
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
define i64 @f(ptr addrspace(1) %o) gc "mine" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @collect, i32 0, i32 0, i32 0, i32 0) [ "gc-live"() ]
  %v = load i64, ptr addrspace(1) %o
  ret i64 %v
}
`
	mine, path := clitest.TempFile(t, "mine.ll", rewritten), clitest.TempFile(t, "stale.ll", strings.Replace(rewritten, "mine", "coreclr", 1))
	line := ":5: certain: @f, block %0: %o is dereferenced after the safepoint at line 4 (call of @collect), at which %o was not relocated; " +
		"list %o in the gc-live bundle at line 4, and use its gc.relocate after it [stale-use]\n"
	const counts = ": 1 function, 1 safepoint, 1 certain, 0 likely, 0 possible\n"
	require.Equal(t, clitest.Result{Code: 1, Stdout: path + line, Stderr: path + counts}, clitest.Run(t, "lint", "--gc", path))
	require.Equal(t, clitest.Result{Code: 1, Stdout: mine + line, Stderr: mine + counts}, clitest.Run(t, "lint", "--gc", mine, "--gc-pointers", "mine:addrspace=1"))
	require.Equal(t, clitest.Result{Code: 1, Stderr: mine + ": not checked: 1 function with gc \"mine\", whose pointers are unknown; give their address space with --gc-pointers mine:addrspace=N\n"},
		clitest.Run(t, "lint", "--gc", mine))
	leaf := clitest.TempFile(t, "leaf.ll", "declare void @g()\ndefine void @f() \"gc-leaf-function\" {\n  call void @g()\n  ret void\n}\n")
	require.Equal(t, 0, clitest.Run(t, "lint", "--gc", leaf).Code)
	none := lintFile(t, "ids.ll")
	for _, args := range [][]string{{path}, {mine}, {leaf}, {none}, {path, mine}} {
		r := clitest.Run(t, append([]string{"lint", "--gc", "--json"}, args...)...)
		require.Empty(t, r.Stderr)
		var value any
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), &value))
		require.NoError(t, clitest.SchemaOf(t, "gclint.schema.json").Validate(value), r.Stdout)
	}
	clitest.Run(t, "lint", path, "--gc-pointers", "addrspace=1").FailsEmpty(t, 64, "--gc-pointers requires --gc")
	clitest.Run(t, "lint", "--gc", path, "--gc-pointers", "1").FailsEmpty(t, 64, `expected addrspace=N or COLLECTOR:addrspace=N, got "1"`)
	r := clitest.Run(t, "lint", "--gc", mine, "--gc-pointers", "mien:addrspace=1")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, `--gc-pointers: no function has gc "mien"`)
	require.Equal(t, 0, clitest.Run(t, "lint", "--gc", none, "--gc-pointers", "mine:addrspace=1").Code)
	clitest.Run(t, "lint", "--gc", path, "--layout", "simple").FailsEmpty(t, 64, "--gc cannot be combined with --layout")
}

func TestLintColor(t *testing.T) {
	t.Parallel()
	path := lintFile(t, "gclive.ll")
	require.NotContains(t, clitest.Run(t, "lint", path).Stdout, clitest.Escape)
	require.Contains(t, clitest.Run(t, "lint", path, "--color", "always").Stdout, clitest.Escape)
	require.NotContains(t, clitest.Run(t, "lint", path, "--json", "--color", "always").Stdout, clitest.Escape)
	// The names of a module's values are safe for a terminal.
	named := clitest.TempFile(t, "named.ll", "define i64 @\"\\1B[31m\"(i64 %\"\\1B[32m\") {\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0)\n"+
		"  ret i64 %\"\\1B[32m\"\n}\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
	for _, flag := range []string{"--color=never", "--json"} {
		r := clitest.Run(t, "lint", named, flag)
		require.Equal(t, 1, r.Code, r.Stderr)
		require.NotContains(t, r.Stdout, clitest.Escape)
	}
}

func TestLintHelp(t *testing.T) {
	t.Parallel()
	r := clitest.Run(t, "lint", "--help")
	require.Equal(t, 0, r.Code)
	require.Contains(t, r.Stdout, "\nExamples:\n  reframe lint ")
	for _, flag := range []string{"--layout", "--json", "--color"} {
		require.Contains(t, r.Stdout, "  "+flag+" ")
	}
	require.Contains(t, clitest.Run(t, "__complete", "lint", "").Stdout, "ll\n:8\n")
	require.Contains(t, clitest.Run(t, "__complete", "lint", "--layout", "").Stdout, "json\nstar\n:8\n")
}

// TestLintBoundsMemoryOfLayouts requires that a layout which allocates more and more memory at a site is ended, and that a finding reports it. The
// limit is that of the layout's own process.
func TestLintBoundsMemoryOfLayouts(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	module := livetest.Testdata(t, "programs", "vmsimple.ll")
	grows := "\n  text = 'x'\n  for n in range(30): text = text + text\n"
	for place, star := range map[string]string{
		"at a site": "def frames(site):" + grows + "  return None\n",
		"at once":   "def grow():" + grows + "grow()\ndef frames(site):\n  return None\n",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			c := clitest.Command(t, "lint", module, "--layout", clitest.TempFile(t, "grows.star", star))
			r := clitest.Finish(t, c)
			require.Contains(t, r.Stdout+r.Stderr, "the layout's process ended; its memory is limited to 256 MiB")
			require.Equal(t, map[string]int{"at a site": 1, "at once": 2}[place], r.Code)
			used := c.ProcessState.SysUsage().(*syscall.Rusage)
			require.Less(t, used.Maxrss, int64(640<<10), "in KiB: without the bound its texts had 1 GiB")
		})
	}
}
