package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// crashing compiles testdata/crash.ll with one line changed, and links it.
func crashing(t *testing.T, version int, old, new string) (program string, m *ir.Module) {
	t.Helper()
	source := filepath.Join("testdata", "crash.ll")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	m, err = ir.Parse("crash.ll", text)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	module := livetest.Module(t, strings.Replace(string(text), old, new, 1))
	program = filepath.Join(t.TempDir(), "crash")
	object := livetest.PICObject(t, version, livetest.IR(t, version, module), "-O2")
	livetest.Make(t, livetest.Tool(t, "gcc"), "-w", "-O1", "-no-pie", filepath.Join("testdata", "crash.c"), object, "-o", program)
	return program, m
}

// TestVerifyNativeCodeThatCrashes requires that a crash differs from a return, and equals the same fault, division or trap in the interpreter.
func TestVerifyNativeCodeThatCrashes(t *testing.T) {
	const scale = "getelementptr i64, ptr %p, i64 %i"
	for _, c := range []struct {
		about, old, new     string
		args                []string
		status, failed, why string
	}{
		{"native code reads elsewhere", scale, "inttoptr i64 27 to ptr", []string{"load"}, Different, "it raised SIGSEGV, address 0x1b, without a handler", ""},
		{"an address that no page can have", scale, "inttoptr i64 -6510615555426900571 to ptr", []string{"load"}, Different, "it raised SIGSEGV, without a handler", ""},
		{"a handler ends the process", scale, "inttoptr i64 27 to ptr", []string{"load", "handler"}, Different, "it raised SIGSEGV, and the process ended in its handler", ""},
		{"a handler lets the instruction run again", "%r = call i64 @native", "%q = load volatile i64, ptr inttoptr (i64 27 to ptr)\n  %r = call i64 @native", []string{"call", "again"}, Different,
			"it raised SIGSEGV, address 0x1b, without a handler", ""},
		{"both read nowhere", scale, scale, []string{"nowhere"}, Same, "", ""},
		{"both read nowhere, in places of their own", scale, "inttoptr i64 27 to ptr", []string{"nowhere"}, Different, "it raised SIGSEGV, address 0x1b, without a handler", ""},
		{"both divide by zero", "sdiv", "sdiv", []string{"divide"}, Same, "", ""},
		{"native code divides by another zero", "sdiv i64 %a, %b", "load volatile i64, ptr null", []string{"divide"}, Different, "it raised SIGSEGV, without a handler", ""},
		{"both trap", "sdiv", "sdiv", []string{"trap"}, Same, "", ""},
		{"a callee crashes", "sdiv", "sdiv", []string{"call"}, NotComparable, "", "native code did not return from the call of @native: it raised SIGSEGV, address 0x1000, without a handler"},
		{"the stack overflows", "sdiv", "sdiv", []string{"deep"}, NotComparable, "", "native code has used up its stack"},
	} {
		program, m := crashing(t, []int{14, 19, 22}[len(c.about)%3], c.old, c.new)
		keep := t.TempDir()
		_, list := verified(t, append([]string{program}, c.args...), Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Keep: keep})
		require.Len(t, list, 1, c.about)
		out := list[0]
		require.Equal(t, c.status, out.Status, "%s: %s %s", c.about, out.Why, out.Interpreter.Failed)
		require.Equal(t, c.failed, out.Native.Failed, c.about)
		require.Equal(t, c.why, out.Why, c.about)
		cores, err := filepath.Glob(filepath.Join(keep, "*.core"))
		require.NoError(t, err)
		require.Len(t, cores, int(oneIf(c.status == Different)), c.about)
	}
}

// TestVerifyRecursionWithoutEnd requires that unlimited recursion is followed to the crash, which is a difference. Native code runs at full speed
// once the steps are used up, and does not stop at further entries once maxEntries are followed.
func TestVerifyRecursionWithoutEnd(t *testing.T) {
	program, m := crashing(t, 19, "icmp eq i64 %n, 0", "icmp eq i64 %n, 1234567")
	for _, function := range []string{"deep", "down"} {
		o := Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Steps: 100, EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, function)}, Baseline: function}
		summary, list := verified(t, []string{program, "small"}, o)
		require.NotEmpty(t, list)
		require.Positive(t, summary.Different)
		for _, out := range list {
			if out.Status == Different {
				require.Contains(t, out.Native.Failed, "its calls nest without end: more than ")
			} else {
				// The argument has passed zero. From there the interpreter also recurses without end.
				require.Equal(t, "native code has used up its stack", out.Why)
			}
		}
	}
}
