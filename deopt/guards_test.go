package deopt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestRecordOfALoweredGuard requires the values of a guard that the JIT lowered to a branch to a deoptimize call. The module still has the guard.
// The record has its values, and the frame resumes by a layout. The guard of %acc fails at the first i at which the sum of the squares below i
// reaches 5000; that of %i never fails.
func TestRecordOfALoweredGuard(t *testing.T) {
	livetest.Slow(t)
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	const written = `  br i1 %g, label %ok, label %exit
ok:
`
	require.Contains(t, string(source), written)
	guarded := strings.Replace(string(source), written, `  %h = icmp ult i64 %i, 100000
  call void (i1, ...) @llvm.experimental.guard(i1 %h) [ "deopt"(i32 2, i64 %acc, i64 %i, i64 %n) ]
  call void (i1, ...) @llvm.experimental.guard(i1 %g) [ "deopt"(i32 3, i64 %i, i64 %acc, i64 %n) ]
  br label %ok
ok:
`, 1)
	from := strings.Index(guarded, "exit:\n")
	to := strings.Index(guarded, "done:\n")
	guarded = guarded[:from] + guarded[to:]
	described, err := layout.Read(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	i, acc := 0, 0
	for acc < 5000 {
		acc += i * i
		i++
	}
	for _, passes := range []string{"lower-guard-intrinsic", "make-guards-explicit,lower-widenable-condition"} {
		for _, gc := range []bool{false, true} {
			for _, version := range []int{16, 19, 22} {
				t.Run(fmt.Sprintf("%s gc %v lli-%d", passes, gc, version), func(t *testing.T) {
					text, id := guarded, uint64(0xABCDEF00)
					if !gc {
						text, id = strings.ReplaceAll(text, ` gc "statepoint-example"`, ""), 0xABCDEF0F
					}
					path := program(t, text)
					m, err := ir.ParseFile(path)
					require.NoError(t, err)
					lowered := filepath.Join(t.TempDir(), "lowered.ll")
					frametest.Command(t, "", livetest.LLVM(t, version, "opt"), "-passes="+passes, "-S", path, "-o", lowered)
					p := livetest.Lli(t, version, lowered, "mcjit")
					f := frametest.One(t, frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{m}}), "sum_opt")
					require.Equal(t, id, f.Record.ID)
					require.Equal(t, "deoptimize", f.Record.Site)
					require.Equal(t, frame.InCall, f.Record.Moment)
					for name, want := range map[string]int{"%i": i, "%acc": acc, "%n": 1000} {
						require.Equal(t, strconv.Itoa(want), frametest.Slot(t, f, name).Value)
					}
					v := frametest.Look(t, p, true, deopt.Options{Modules: []*ir.Module{m}, Layouts: []*layout.Layout{described}})
					out, err := v.Run(context.Background(), frametest.StackOf(v, frametest.One(t, v, "sum_opt")), deopt.Limits{})
					require.NoError(t, err)
					require.Equal(t, "332833500", out.Result.Value)
				})
			}
		}
	}
}
