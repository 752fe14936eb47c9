package frames_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestModuleDoesNotMatch requires that a module which is not the compiled one gives no names. The frames are shown without names, and a message names
// the record and the function.
func TestModuleDoesNotMatch(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	const bundle = `[ "deopt"(i32 3, i64 %i, i64 %acc, i64 %n) ]`
	for name, edit := range map[string]struct{ bundle, want string }{
		"one value less": {`[ "deopt"(i32 3, i64 %i, i64 %acc) ]`, "has 4 live values, but line"},
		"one value more": {`[ "deopt"(i32 3, i64 %i, i64 %acc, i64 %n, i64 %n) ]`, "has 4 live values, but line"},
		"other constant": {`[ "deopt"(i32 4, i64 %i, i64 %acc, i64 %n) ]`, "has the constant 3 as its live value 0, but line"},
	} {
		t.Run(name, func(t *testing.T) {
			module := clitest.EditedCopy(t, p.IR, deoptBundle(t, p.IR, bundle), edit.bundle)
			why := []string{module + " is not what was compiled", "record 2882400000", "@sum_opt", edit.want}
			r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", module)
			require.Equal(t, 1, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, "loc1")
			require.NotContains(t, r.Stdout, "%acc")
			for _, want := range why {
				require.Contains(t, r.Stderr, want)
			}
			r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", module)
			require.Equal(t, 2, r.Code, r.Stderr)
			require.Empty(t, r.Stdout)
			require.Contains(t, r.Stderr, "no site of the given modules matches record 2882400000: no names: "+why[0])
		})
	}
	clitest.RequireUnharmed(t, p)
}

// deoptBundle requires that the module contains the bundle, and returns it.
func deoptBundle(t *testing.T, path, bundle string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), bundle), "%s", text)
	return bundle
}

// TestBrokenModule requires that the error for an unreadable module gives the position, and the line with a mark under it.
func TestBrokenModule(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	for name, c := range map[string]struct {
		text string
		line int
		col  int
	}{
		"unknown instruction": {"define i64 @f(i64 %a) {\n  %b = bogus i64 %a, 1\n  ret i64 %b\n}\n", 2, 8},
		"undefined value":     {"define i64 @f(i64 %a) {\n  ret i64 %nosuch\n}\n", 2, 11},
		"wrong type":          {"define i64 @f(i32 %a) {\n  %b = add i64 %a, 1\n  ret i64 %b\n}\n", 2, 16},
		"no end":              {"define i64 @f(i64 %a) {\n  ret i64 %a\n", 3, 1},
		"no module":           {"\x7fELF\x02\x01\x01", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := clitest.TempFile(t, "broken.ll", c.text)
			r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", path)
			require.Equal(t, 2, r.Code)
			require.Empty(t, r.Stdout)
			lines := strings.Split(r.Stderr, "\n")
			require.True(t, strings.HasPrefix(lines[0], fmt.Sprintf("reframe: %s:%d:%d: ", path, c.line, c.col)), "%s", r.Stderr)
			if source := strings.Split(c.text, "\n")[c.line-1]; strings.HasPrefix(source, " ") {
				require.Equal(t, source, lines[1])
				require.Equal(t, strings.Repeat(" ", c.col-1)+"^", lines[2])
			}
			require.NotContains(t, r.Stderr, "\x7f")
		})
	}
	missing := filepath.Join(t.TempDir(), "missing.ll")
	for _, flag := range []string{"--ir", "--layout"} {
		clitest.Run(t, "frames", "-p", clitest.PID(p), flag, missing).FailsEmpty(t, 2, missing, "no such file or directory")
	}
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--layout", t.TempDir()).FailsEmpty(t, 2, "is a directory")
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", t.TempDir()).FailsEmpty(t, 2, "contains no *.ll or *.bc file")
	clitest.RequireUnharmed(t, p)
}

// TestBrokenLayout requires that each name and number of a layout is checked against the module. A mistake is reported, and no frame is omitted.
func TestBrokenLayout(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	good, err := os.ReadFile(clitest.DeoptimizeLayout(t))
	require.NoError(t, err)
	for name, c := range map[string]struct{ from, to, want string }{
		"function left":  {`"function":"sum_opt"`, `"function":"nosuch"`, "exits[0].function: no module defines a function @nosuch"},
		"function":       {`"function":"sum"`, `"function":"nosuch"`, "exits[0].resume.function: no module defines a function @nosuch"},
		"declared only":  {`"function":"sum"`, `"function":"puts"`, "exits[0].resume.function: no module defines a function @puts"},
		"block":          {`"block":"loop"`, `"block":"nosuch"`, "exits[0].resume.block: @sum has no block %nosuch"},
		"operand":        {`"operand":2`, `"operand":4`, "exits[0].slots[1].operand: 4: the exits of @sum_opt have 4 live values"},
		"negative":       {`"operand":2`, `"operand":-1`, "exits[0].slots[1].operand: -1"},
		"when":           {`"operand":0`, `"operand":9`, "exits[0].when[0].operand: 9"},
		"value":          {`"name":"%acc"`, `"name":"%nosuch"`, "exits[0].slots[1].name: @sum has no value %nosuch"},
		"record":         {`"when"`, `"record":17,"when"`, "exits[0]: @sum_opt has no such exit"},
		"schema":         {`"reframe.layout/v1"`, `"reframe.layout/v9"`, `"reframe.layout/v9" is not supported; expected "reframe.layout/v1"`},
		"no schema":      {`"schema":"reframe.layout/v1",`, ``, `"reframe.layout/v1"`},
		"unknown field":  {`"when"`, `"wenn"`, `exits[0].wenn: unknown member; expected one of function, record, when, resume, slots`},
		"wrong type":     {`"operand":2`, `"operand":"two"`, "layout.json:4:50: exits[0].slots[1].operand: expected an integer of 64 bits, got a string"},
		"broken JSON":    {`"operand":2,`, `"operand":2 `, "layout.json:4:52: "},
		"JSON cut short": {`]}]}`, ``, "layout.json:5:1: unexpected end of the text"},
		"a sigil":        {`"block":"loop"`, `"block":"%nosuch"`, "exits[0].resume.block: @sum has no block %nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(good), c.from)
			path := clitest.TempFile(t, "layout.json", strings.Replace(string(good), c.from, c.to, 1))
			r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", path)
			r.FailsEmpty(t, 2, "layout.json", c.want)
			for verb, shown := range map[string]string{"frames": "record 2882400000", "explain": "frame #"} {
				r = clitest.Run(t, verb, "-p", clitest.PID(p), "--ir", p.IR, "--layout", path)
				require.Equal(t, 1, r.Code, r.Stderr)
				require.Contains(t, r.Stderr, c.want, verb)
				require.Contains(t, r.Stdout, shown)
			}
		})
	}
	clitest.RequireUnharmed(t, p)
}
