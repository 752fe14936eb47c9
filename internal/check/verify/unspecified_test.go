package verify

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// severalResults has an exit before each operation with several results in LLVM's IR: a freeze, the order of two allocas, the payload of NaN + NaN.
// In each case native code has another result than the interpreter. In @sure, which has one result, a changed "i64 3" is a difference.
const severalResults = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@nan = internal global double 0x7FF8000000000007
@nans = internal global <4 x float> <float 1.0, float 1.0, float 1.0, float 0x7FF80000E0000000>, align 16
define i64 @frozen(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  %p = shl nuw i64 %x, 63
  %f = freeze i64 %p
  %r = add i64 %f, %x
  ret i64 %r
}
define i64 @order() noinline {
  %a = alloca [64 x i8]
  %b = alloca [64 x i8]
  store volatile i8 1, ptr %a
  store volatile i8 2, ptr %b
  %c = icmp ult ptr %a, %b
  %r = zext i1 %c to i64
  ret i64 %r
}
define i64 @ordered(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %x)
  %r = call i64 @order()
  ret i64 %r
}
define i64 @distance() noinline {
  %a = alloca [64 x i8]
  %b = alloca [64 x i8]
  store volatile i8 1, ptr %a
  store volatile i8 2, ptr %b
  %i = ptrtoint ptr %a to i64
  %j = ptrtoint ptr %b to i64
  %d = sub i64 %i, %j
  ret i64 %d
}
define i64 @far(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %x)
  %d = call i64 @distance()
  ret i64 %d
}
define i64 @payload(double %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, double %a)
  %n = load double, ptr @nan
  %s = fadd double %n, %a
  %r = bitcast double %s to i64
  ret i64 %r
}
define i64 @stored(double %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, double %a)
  %n = load double, ptr @nan
  %s = fadd double %n, %a
  %p = alloca double
  store volatile double %s, ptr %p
  %r = load volatile i64, ptr %p
  ret i64 %r
}
define i64 @lanes(<4 x float> %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, <4 x float> %a)
  %n = load <4 x float>, ptr @nans
  %s = fadd <4 x float> %n, %a
  %b = bitcast <4 x float> %s to <2 x i64>
  %r = extractelement <2 x i64> %b, i32 1
  ret i64 %r
}
define i64 @sure(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %x)
  %r = mul i64 %x, 3
  ret i64 %r
}
define i64 @entry(i64 %s) {
  %odd = or i64 %s, 3
  %1 = call i64 @frozen(i64 %odd)
  %2 = call i64 @ordered(i64 %s)
  %3 = call i64 @far(i64 %s)
  %4 = call i64 @payload(double 0x7FF8000000000009)
  %5 = call i64 @stored(double 0x7FF8000000000009)
  %6 = call i64 @lanes(<4 x float> <float 1.0, float 1.0, float 1.0, float 0x7FF8000120000000>)
  %7 = call i64 @sure(i64 %odd)
  ret i64 %7
}
`

// TestVerifyWhereTheIRIsOpen requires that a result other than the interpreter's is not a difference if several results are right.
func TestVerifyWhereTheIRIsOpen(t *testing.T) {
	const (
		frozen  = "it freezes a value that is poison or undefined, for which any value is right"
		allocas = "it compares the addresses of two allocas, whose order is unspecified"
		nan     = "it uses the bits of a NaN as an integer, and the payload is unspecified"
	)
	for _, version := range []int{16, 19} {
		path := livetest.Module(t, severalResults)
		m, err := ir.ParseFile(path)
		require.NoError(t, err)
		command := livetest.ObjectHostCommand(t, livetest.PICObject(t, version, path, "-O2"), livetest.ObjectHostOptions{Rounds: 1})
		_, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
		want := map[string][]string{"frozen": {frozen}, "ordered": {allocas}, "far": {allocas}, "payload": {nan}, "stored": {nan}, "lanes": {nan}, "sure": {Same}}
		require.Equal(t, want, outcomes(list), "LLVM %d", version)
	}
}

// comparedBytes has sites after bcmp and memcmp, with the result as a value. LLVM compares the two bytes inline, with other results than the
// interpreter's. @other does not record the result.
const comparedBytes = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i32 @bcmp(ptr, ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)
@a = internal global [8 x i8] c"01234567"
@b = internal global [8 x i8] c"0123xx67"
define i64 @bytes(ptr %p, ptr %q) noinline {
  %r = call i32 @bcmp(ptr %p, ptr %q, i64 2)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %r)
  %z = icmp eq i32 %r, 0
  %e = zext i1 %z to i64
  ret i64 %e
}
define i64 @order(ptr %p, ptr %q) noinline {
  %r = call i32 @memcmp(ptr %p, ptr %q, i64 2)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i32 %r)
  %z = icmp slt i32 %r, 0
  %e = zext i1 %z to i64
  ret i64 %e
}
define i64 @other(ptr %p, ptr %q) noinline {
  %r = call i32 @bcmp(ptr %p, ptr %q, i64 2)
  %s = mul i32 %r, 0
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i32 %s)
  ret i64 0
}
define i64 @entry(i64 %s) {
  %p = getelementptr i8, ptr @a, i64 4
  %q = getelementptr i8, ptr @b, i64 4
  %1 = call i64 @bytes(ptr %p, ptr %q)
  %2 = call i64 @bytes(ptr @a, ptr @b)
  %3 = call i64 @order(ptr %p, ptr %q)
  %4 = call i64 @other(ptr %p, ptr %q)
  ret i64 %2
}
`

// TestVerifyComparesTheSign requires that a slot with the result of bcmp or memcmp is a difference only if the part of the result that the C standard
// defines differs.
func TestVerifyComparesTheSign(t *testing.T) {
	path := livetest.Module(t, comparedBytes)
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	// The given module also has the result of the call as the operand in @other, for which the compiled code records zero.
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	given, err := ir.Parse("given.ll", []byte(strings.Replace(string(text), "i32 0, i32 %s)", "i32 0, i32 %r)", 1)))
	require.NoError(t, err)
	command := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, path, "-O2"), livetest.ObjectHostOptions{Rounds: 1})
	_, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}, FromEntry: true})
	require.Equal(t, map[string][]string{"bytes": {Same}, "order": {Same}, "other": {Same}}, outcomes(list))
	_, list = verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{given}}, FromEntry: true})
	require.Equal(t, map[string][]string{"bytes": {Same}, "order": {Same}, "other": {Different}}, outcomes(list))
}

// ownComparison has a site after @strcmp with the result as a value. The module defines @strcmp itself: 3 is its only right result.
const ownComparison = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i32 @strcmp(ptr %p, ptr %q) noinline nobuiltin "no-builtins" {
  %a = load volatile i8, ptr %p
  %b = load volatile i8, ptr %q
  %x = zext i8 %a to i32
  %y = zext i8 %b to i32
  %d = sub i32 %x, %y
  %r = mul i32 %d, 3
  ret i32 %r
}
@a = internal global [2 x i8] c"2\00"
@b = internal global [2 x i8] c"1\00"
define i64 @own(i64 %s) noinline {
  %r = call i32 @strcmp(ptr @a, ptr @b) nobuiltin
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %r)
  ret i64 0
}
define i64 @entry(i64 %s) {
  %1 = call i64 @own(i64 %s)
  ret i64 %1
}
`

// TestVerifyComparesOwnFunctions requires that the result of a function that a module defines is compared exactly, although the C library has a
// function with this name that has several right results. The definition may be in any module of the program.
func TestVerifyComparesOwnFunctions(t *testing.T) {
	path := livetest.Module(t, ownComparison)
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	other := strings.Replace(ownComparison, "mul i32 %d, 3", "mul i32 %d, 5", 1)
	body := other[strings.Index(other, "define i32"):strings.Index(other, "@a =")]
	parse := func(text string) *ir.Module {
		m, err := ir.Parse("given.ll", []byte(text))
		require.NoError(t, err)
		return m
	}
	const triple = "target triple = \"x86_64-pc-linux-gnu\"\n"
	for _, test := range []struct {
		modules []*ir.Module
		want    string
	}{
		{[]*ir.Module{m}, Same},
		{[]*ir.Module{parse(other)}, Different},
		{[]*ir.Module{parse(strings.Replace(other, body, "declare i32 @strcmp(ptr, ptr)\n", 1)), parse(triple + body)}, Different},
	} {
		command := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, path, "-O2"), livetest.ObjectHostOptions{Rounds: 1})
		_, list := verified(t, command, Options{Options: deopt.Options{Modules: test.modules}, FromEntry: true})
		require.Equal(t, map[string][]string{"own": {test.want}}, outcomes(list))
	}
}
