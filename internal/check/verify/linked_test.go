package verify

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

const weakly = `
@words = internal constant [4 x i8] c"HERE"
declare i32 @putchar(i32)
define LINKAGE i64 @said(ptr %p) noinline {
  %c = load i8, ptr getelementptr ([4 x i8], ptr @words, i64 0, i64 1)
  %w = zext i8 %c to i32
  %r = call i32 @putchar(i32 %w)
  %f = call i64 @write(i32 2, ptr @words, i64 4)
  %a = load i64, ptr %p
  %s = add i64 %a, %f
  ret i64 %s
}
declare i64 @write(i32, ptr, i64)
`

const weaklyMain = `
@zero = global i64 0
@own = internal global i64 0
@shared = common global i64 0
declare void @qsort(ptr, i64, i64, ptr)
define linkonce_odr i32 @order(ptr %a, ptr %b) noinline {
  %x = load i64, ptr %a
  %y = load i64, ptr %b
  %less = icmp slt i64 %x, %y
  %r = select i1 %less, i32 -1, i32 1
  ret i32 %r
}
define i64 @outer(i64 %n) noinline {
  %v = alloca [2 x i64]
  %second = getelementptr [2 x i64], ptr %v, i64 0, i64 1
  store i64 %n, ptr %v
  store i64 2, ptr %second
  call void @qsort(ptr %v, i64 2, i64 8, ptr @order)
  %s = call i64 @said(ptr %v)
  %z = load i64, ptr @zero
  %z1 = add i64 %z, %s
  store i64 %z1, ptr @zero
  %o = load i64, ptr @own
  %o1 = add i64 %o, %z1
  store i64 %o1, ptr @own
  %c = load i64, ptr @shared
  %c1 = add i64 %c, %o1
  store i64 %c1, ptr @shared
  ret i64 %c1
}
define i32 @main() {
  %a = call i64 @outer(i64 1)
  %b = call i64 @outer(i64 %a)
  %c = call i64 @outer(i64 %b)
  ret i32 0
}
`

// TestVerifyWhereTheJITPutThings covers globals and functions whose address only the relocated code contains: .bss and common symbols, whose sections
// have no address, and the selected definitions of weak functions.
func TestVerifyWhereTheJITPutThings(t *testing.T) {
	livetest.Slow(t)
	first := linkage(weakly, "linkonce_odr") + weaklyMain
	second := linkage(weakly, "")
	for _, version := range []int{19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			a, m := frametest.Written(t, "first.ll", first)
			b, n := frametest.Written(t, "second.ll", second)
			command := []string{livetest.LLVM(t, version, "lli"), "-jit-kind=" + kind, "-extra-module=" + b, a}
			t.Setenv("JITDUMPDIR", t.TempDir())
			o := Options{Options: deopt.Options{}, EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, "outer"), frametest.Pattern(names.Exact, "said")}}
			o.Modules = append(o.Modules, m, n)
			summary, all := verified(t, command, o)
			for _, v := range all {
				require.Equal(t, Same, v.Status, "%s %d: %s %+v", kind, version, v.Why, v.Call)
			}
			require.Equal(t, uint64(6), summary.Same, "%s %d: %+v", kind, version, summary)
		}
	}
}

func linkage(text, is string) string { return strings.Replace(text, "LINKAGE", is, 1) }
