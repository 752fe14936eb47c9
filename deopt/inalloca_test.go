package deopt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestFramesWithInAlloca requires the frames and registers that gdb finds, for functions with inalloca arguments. Such a function has a base
// pointer, because its stack pointer moves ("Introduction" of InAlloca). Two allocations of arguments exist at the same time ("Nested Calls and
// Copy Elision"), and all values recorded before and in them must be available.
func TestFramesWithInAlloca(t *testing.T) {
	livetest.Slow(t)
	text := prelude + start + `
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
%pair = type <{ i64, i64, i64 }>
define internal i64 @inner(ptr inalloca(%pair) %p) noinline gc  "statepoint-example" {
  %q = getelementptr %pair, ptr %p, i64 0, i32 2
  %v = load i64, ptr %q
  %t = call ` + livetest.Statepoint(2, "@wait", "1", "i64 %v, ptr %p") + `
  ret i64 %v
}
define i64 @work(i64 %s) noinline gc  "statepoint-example" {
  %fixed = alloca [2 x i64], align 64
  %x = add i64 %s, 1
  store i64 %x, ptr %fixed
  %save = call ptr @llvm.stacksave.p0()
  %outer = alloca inalloca %pair
  store i64 %x, ptr %outer
  %save2 = call ptr @llvm.stacksave.p0()
  %args = alloca inalloca %pair
  %third = getelementptr %pair, ptr %args, i64 0, i32 2
  store i64 77, ptr %third
  %r = call i64 @inner(ptr inalloca(%pair) %args)
  call void @llvm.stackrestore.p0(ptr %save2)
  %o = getelementptr %pair, ptr %outer, i64 0, i32 2
  store i64 %r, ptr %o
  %r2 = call i64 @inner(ptr inalloca(%pair) %outer)
  call void @llvm.stackrestore.p0(ptr %save)
  %y = load i64, ptr %fixed
  %z = add i64 %r2, %y
  ret i64 %z
}`
	for _, version := range []int{19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, program(t, text), "mcjit")
			v := frametest.Look(t, p, true, frametest.Known(t, p))
			f := frametest.One(t, v, "inner")
			require.Equal(t, "77", frametest.Slot(t, f, "%v").Value)
			require.Equal(t, f.Index+1, frametest.One(t, v, "work").Index)
			v.Target().Close()

			pairs := captured(t, p)
			require.Len(t, pairs, 1)
			require.Empty(t, pairs[0].gaps)
			require.Empty(t, pairs[0].registers)
			require.True(t, pairs[0].end.Complete)
		})
	}
}
