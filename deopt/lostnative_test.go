package deopt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestConfusedX87 covers a bug of LLVM: after a stackmap with a value in an x87 register, the compiled code reads wrong x87 registers. %w is 7, but
// the compiled program uses and records 3, the value of %v. The slot of %w must therefore be unavailable, and values computed from %w must be those
// that the program prints.
func TestConfusedX87(t *testing.T) {
	t.Parallel()
	const program = prelude + `
@v = global x86_fp80 0xK4000C000000000000000
@w = global x86_fp80 0xK4001E000000000000000
@line = private constant [8 x i8] c"w %lld\0A\00"
declare i32 @printf(ptr, ...)
define i64 @work(i64 %s) noinline {
  %v = load volatile x86_fp80, ptr @v
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, x86_fp80 %v)
  %w = load volatile x86_fp80, ptr @w
  %c = icmp eq i64 %s, 100
  br i1 %c, label %there, label %elsewhere
there:
  %n = fptosi x86_fp80 %w to i64
  %p = call i32 (ptr, ...) @printf(ptr @line, i64 %n)
  %r = call i64 @wait(i64 %s) [ "deopt"(x86_fp80 %w, i64 %n) ]
  ret i64 %n
elsewhere:
  ret i64 0
}
` + start
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, livetest.Raw(t, program), "mcjit", "-O2")
			require.Contains(t, p.Output(), "w 3\n", "LLVM no longer confuses them")
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
			require.Equal(t, frame.Missing, frametest.Slot(t, f, "%w").Status)
			require.Equal(t, sites.ConfusedX87, frametest.Slot(t, f, "%w").Reason)
			require.Empty(t, frametest.Slot(t, f, "%w").Hex)
			require.Equal(t, "3", frametest.Slot(t, f, "%n").Value)
		})
	}
}
