package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestLintCalleeOutOfAnAggregate requires that lint reports exactly the statepoints that LLVM miscompiles because their callee is extracted from an
// aggregate (llvm-project issue 207508). LLVM then calls the first element of the aggregate. The program returns 42 if it calls @one, the right
// callee, and not if it calls @zero, the first element.
func TestLintCalleeOutOfAnAggregate(t *testing.T) {
	livetest.Slow(t)
	const (
		statepoint = "%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) CALLEE, i32 1, i32 0, i64 %x, i32 0, i32 0)\n" +
			"  %r = call i64 @llvm.experimental.gc.result.i64(token %t)"
		bundle  = "%r = call i64 CALLEE(i64 %x) [ \"deopt\"(i64 %x) ]"
		extract = "%p = extractvalue { ptr, ptr } %c, 1\n  "
		wrong   = 232 // exit status if @zero is called: the low byte of its result, 1000
	)
	for name, c := range map[string]struct {
		pair, body, callee string
		want               int
	}{
		"statepoint":            {"{ ptr @zero, ptr @one }", extract + statepoint, "%p", wrong},
		"call with a bundle":    {"{ ptr @zero, ptr @one }", extract + bundle, "%p", wrong},
		"bitcast":               {"{ ptr @zero, ptr @one }", extract + "%q = bitcast ptr %p to ptr\n  " + statepoint, "%q", wrong},
		"freeze":                {"{ ptr @zero, ptr @one }", extract + "%q = freeze ptr %p\n  " + statepoint, "%q", 42},
		"of another block":      {"{ ptr @zero, ptr @one }", extract + "br label %next\nnext:\n  " + statepoint, "%p", 42},
		"first element":         {"{ ptr @one, ptr @zero }", "%p = extractvalue { ptr, ptr } %c, 0\n  " + statepoint, "%p", 42},
		"first that is no zero": {"{ {} zeroinitializer, ptr @one }", "%p = extractvalue { {}, ptr } %c, 1\n  " + statepoint, "%p", 42},
		"array":                 {"[ptr @zero, ptr @one]", "%p = extractvalue [2 x ptr] %c, 1\n  " + statepoint, "%p", wrong},
		"nested":                {"{ ptr @zero, { i64, ptr } { i64 1, ptr @one } }", "%p = extractvalue { ptr, { i64, ptr } } %c, 1, 1\n  " + statepoint, "%p", wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, typ, _ := strings.Cut(c.body, "extractvalue ")
			typ, _, _ = strings.Cut(typ, " %c")
			body := c.body
			if name == "of another block" { // a block that only branches would be folded into its predecessor
				body = strings.Replace(body, "br label %next", "%b = icmp eq i64 %x, 5\n  br i1 %b, label %other, label %next\nother:\n  ret i64 0", 1)
			}
			text := `target triple = "x86_64-pc-linux-gnu"
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare i64 @llvm.experimental.gc.result.i64(token)
@pair = global ` + typ + " " + c.pair + `
define i64 @zero(i64 %x) noinline {
  ret i64 1000
}
define i64 @one(i64 %x) noinline {
  %y = mul i64 %x, 3
  ret i64 %y
}
define i64 @f(` + typ + ` %c, i64 %x) noinline gc "statepoint-example" {
  ` + strings.ReplaceAll(body, "CALLEE", c.callee) + `
  ret i64 %r
}
define i32 @main() {
  %c = load ` + typ + `, ptr @pair
  %r = call i64 @f(` + typ + ` %c, i64 14)
  %i = trunc i64 %r to i32
  ret i32 %i
}
`
			var named []string
			for _, f := range linted(t, frametest.ReadModule(t, "callee.ll", text)) {
				if strings.Contains(f, "wrong-callee") {
					named = append(named, f)
				}
			}
			require.Equal(t, c.want == wrong, len(named) == 1, "%v", named)
			path := filepath.Join(t.TempDir(), "callee.ll")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			for _, version := range livetest.ShareOf([]int{16, 19, 22}, name) {
				cmd := exec.Command(livetest.LLVM(t, version, "lli"), path)
				out, _ := cmd.CombinedOutput() // the exit status is the result
				require.Equal(t, c.want, cmd.ProcessState.ExitCode(), "lli %d: %s", version, out)
			}
		})
	}
}
