package deopt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestCodeOfAnotherModule requires that the calls in the code and their arguments distinguish the module that a JIT compiled from one with the
// same sites. frametest.Look compares the right module with the code in all live tests.
func TestCodeOfAnotherModule(t *testing.T) {
	const text = livetest.Prelude + `
@last = global i64 0
define void @g(i64 %a, i64 %b) noinline {
  store volatile i64 %a, ptr @last
  ret void
}
define void @h(i64 %a, i64 %b) noinline {
  store volatile i64 %b, ptr @last
  ret void
}
define i64 @work(i64 %a) noinline {
  call void @g(i64 77, i64 %a)
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 8, i32 0, i64 %a)
  ret i64 %r
}
` + livetest.Start
	path := livetest.Module(t, text)
	for _, version := range []int{14, 19, 22} {
		for _, kind := range livetest.ShareOf([]string{"mcjit", "orc", ""}, "another", version) {
			var p *livetest.Process
			if kind == "" {
				p = livetest.Linked(t, version, path, "-pie")
			} else {
				p = livetest.Lli(t, version, path, kind)
			}
			for _, c := range []struct{ from, to, sure, why string }{
				{"", "", "likely", "2 symbols and 1 constant in the code match this module"},
				{"call void @g(i64 77", "call void @h(i64 77", "contradicted", "sum.ll defines @work with a call of @h where the code calls @g"},
				{"i64 77", "i64 78", "contradicted", "sum.ll defines @work with 78 for @g, in line 33, where the code has 77"},
			} {
				m, err := ir.Parse("sum.ll", []byte(strings.ReplaceAll(text, c.from, c.to)))
				require.NoError(t, err)
				target, err := ptrace.Capture(p.PID, ptrace.Options{})
				require.NoError(t, err)
				v, err := deopt.Frames(target, deopt.Options{Modules: []*ir.Module{m}})
				require.NoError(t, err)
				got := deopt.ProvenanceOfFrame(frametest.One(t, v, "work"))
				target.Close()
				got.Why = strings.ReplaceAll(got.Why, "code names @g", "code calls @g") // in the large code model it calls through a register
				require.Equal(t, &frame.CompiledFrom{Module: "sum.ll", Function: "work", Sure: c.sure, Why: c.why}, got, "LLVM %d, %s", version, kind)
			}
		}
	}
}
