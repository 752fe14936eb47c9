package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestVerifyVectorsOfIllegalTypes requires that the interpreter and native code store the same elements of a vector of an illegal type. No register
// holds such elements, and the vector is spilled across the calls before and after a stackmap.
func TestVerifyVectorsOfIllegalTypes(t *testing.T) {
	livetest.Slow(t)
	var turns livetest.Turns
	for _, version := range []int{16, 19, 22} {
		for _, v := range []frametest.Vector{{N: 16, Element: "i1"}, {N: 8, Element: "i7"}, {N: 2, Element: "i7"}, {N: 4, Element: "i24"}, {N: 2, Element: "i33"}} {
			if turns.Out(2) {
				continue
			}
			t.Run(fmt.Sprintf("LLVM %d %v", version, v), func(t *testing.T) {
				bits := v.N * v.Bits()
				path := filepath.Join(t.TempDir(), "spilled.ll")
				require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@in = internal global [4 x i64] [i64 -5123456789012345679, i64 4123456789012345697, i64 -1, i64 7]
@out = internal global [4 x i64] zeroinitializer
@sink = internal global i64 0
define void @nothing(i64 %%a) noinline {
  store volatile i64 %%a, ptr @sink
  ret void
}
define void @f(ptr %%p, i64 %%a) noinline {
%s  call void @nothing(i64 %%a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 4, %s %%v, i64 %%a)
  call void @nothing(i64 %%a)
  %%n = bitcast %[2]s %%v to i%d
  store volatile i%[3]d %%n, ptr @out
  ret void
}
define i64 @entry(i64 %%n) {
  call void @f(ptr @in, i64 1)
  call void @f(ptr getelementptr (i8, ptr @in, i64 3), i64 2)
  ret i64 0
}
`, v.Load("%v", "ptr %p"), v, bits)), 0o600))
				object := livetest.PICObject(t, version, path, "-O2")
				m, err := ir.ParseFile(livetest.IR(t, version, path))
				require.NoError(t, err)
				command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
				_, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
				require.Len(t, list, 2)
				for _, e := range list {
					require.Equal(t, Same, e.Status, "%+v", e.Report())
				}
			})
		}
	}
}
