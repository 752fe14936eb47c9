package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt"
	"reframe/deopt/ir"
	"reframe/internal/livetest"
)

// severalResults has an exit before each of what LLVM's IR leaves open: the value of a freeze, the order of two allocas, the payload of a NaN. The function @sure
// does something else than was compiled where "i64 3" is changed.
const severalResults = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @frozen(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  %p = shl nuw i64 %x, 63
  %f = freeze i64 %p
  %r = add i64 %f, %x
  ret i64 %r
}
define i64 @ordered(i64 %x) noinline {
  %a = alloca [64 x i8]
  %b = alloca [64 x i8]
  store volatile i8 1, ptr %a
  store volatile i8 2, ptr %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %x, ptr %a, ptr %b)
  %c = icmp ult ptr %a, %b
  %r = zext i1 %c to i64
  ret i64 %r
}
define i64 @reversed(i64 %x) noinline {
  %a = alloca [64 x i8]
  %b = alloca [64 x i8]
  store volatile i8 1, ptr %a
  store volatile i8 2, ptr %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %x, ptr %a, ptr %b)
  %i = ptrtoint ptr %a to i64
  %j = ptrtoint ptr %b to i64
  %d = sub i64 %i, %j
  ret i64 %d
}
define i64 @payload(double %a, double %b) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, double %a, double %b)
  %s = fadd double %b, %a
  %r = bitcast double %s to i64
  ret i64 %r
}
define i64 @sure(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %x)
  %r = mul i64 %x, 3
  ret i64 %r
}
define i64 @entry(i64 %s) {
  %odd = or i64 %s, 3
  %1 = call i64 @frozen(i64 %odd)
  %2 = call i64 @ordered(i64 %s)
  %3 = call i64 @reversed(i64 %s)
  %4 = call i64 @payload(double 0x7FF8000000000007, double 0x7FF8000000000009)
  %5 = call i64 @sure(i64 %odd)
  ret i64 %5
}
`

// Where several results are right, another one than the interpreter's is no difference.
func TestVerifyWhereTheIRIsOpen(t *testing.T) {
	for _, version := range []int{16, 19} {
		path := livetest.Module(t, severalResults)
		m, err := ir.ParseFile(path)
		require.NoError(t, err)
		command := livetest.ObjectHostCommand(t, livetest.PICObject(t, version, path, "-O2"), livetest.ObjectHostOptions{Rounds: 1})
		_, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
		got := outcomes(list)
		t.Log(got)
		for _, c := range []struct{ function, why string }{
			{"frozen", "it freezes a value that is poison or undefined, for which any value is right"},
			{"ordered", "it compares the addresses of two allocas, whose order is open"},
			{"reversed", "it compares the addresses of two allocas, whose order is open"},
			{"payload", "it uses the bits of a NaN as an integer, and the payload is open"},
		} {
			require.Subset(t, []string{c.why, Same}, got[c.function], "LLVM %d: @%s", version, c.function)
		}
		require.Equal(t, []string{Same}, got["sure"])
	}
}
