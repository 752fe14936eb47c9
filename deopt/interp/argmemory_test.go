package interp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// TestInAllocaIsAsNative compares inalloca arguments with native code. LLVM also compiles inalloca for x86-64, where no C++ compiler emits it.
func TestInAllocaIsAsNative(t *testing.T) {
	const src = `declare i32 @printf(ptr, ...)
declare ptr @llvm.stacksave()
declare void @llvm.stackrestore(ptr)
%pair = type { i32, i32 }
%frame = type <{ %pair, %pair }>
@f = private constant [7 x i8] c"%d %d\0A\00"
define i32 @show(ptr inalloca(%frame) %a) {
  %1 = load i32, ptr %a
  %q = getelementptr %frame, ptr %a, i32 0, i32 1, i32 1
  %2 = load i32, ptr %q
  %n = call i32 (ptr, ...) @printf(ptr @f, i32 %1, i32 %2)
  ret i32 %2
}
define i32 @main() {
  %s = call ptr @llvm.stacksave()
  %m = alloca inalloca %frame
  store i32 5, ptr %m
  %q = getelementptr %frame, ptr %m, i32 0, i32 1, i32 1
  %s2 = call ptr @llvm.stacksave()
  %m2 = alloca inalloca %frame
  store i32 15, ptr %m2
  %q2 = getelementptr %frame, ptr %m2, i32 0, i32 1, i32 1
  store i32 16, ptr %q2
  %r = call i32 @show(ptr inalloca(%frame) %m2)
  call void @llvm.stackrestore(ptr %s2)
  store i32 %r, ptr %q
  %r2 = call i32 @show(ptr inalloca(%frame) %m)
  call void @llvm.stackrestore(ptr %s)
  ret i32 %r2
}`
	sameAsLinked(t, src, "16")
	sameAsLinked(t, src, "19")
}

// TestVAArgIsAsNative compares va_arg with native code. clang does not emit va_arg on x86-64, but LLVM compiles it.
func TestVAArgIsAsNative(t *testing.T) {
	const src = `declare void @llvm.va_start(ptr)
declare void @llvm.va_copy(ptr, ptr)
declare void @llvm.va_end(ptr)
define i64 @sum(i32 %n, ...) {
  %list = alloca [24 x i8], align 16
  %copy = alloca [24 x i8], align 16
  call void @llvm.va_start(ptr %list)
  %a = va_arg ptr %list, i32
  %d = va_arg ptr %list, double
  call void @llvm.va_copy(ptr %copy, ptr %list)
  %b = va_arg ptr %list, i64
  %c = va_arg ptr %list, i64
  %e = va_arg ptr %list, i64
  %f = va_arg ptr %list, i64
  %g = va_arg ptr %list, i64
  %b2 = va_arg ptr %copy, i64
  call void @llvm.va_end(ptr %copy)
  call void @llvm.va_end(ptr %list)
  %a64 = sext i32 %a to i64
  %d64 = fptosi double %d to i64
  %1 = mul i64 %a64, 3
  %2 = add i64 %1, %d64
  %3 = mul i64 %2, 3
  %4 = add i64 %3, %b
  %5 = mul i64 %4, 3
  %6 = add i64 %5, %c
  %7 = mul i64 %6, 3
  %8 = add i64 %7, %e
  %9 = mul i64 %8, 3
  %10 = add i64 %9, %f
  %11 = mul i64 %10, 3
  %12 = add i64 %11, %g
  %13 = mul i64 %12, 3
  %14 = add i64 %13, %b2
  ret i64 %14
}
define i32 @main() {
  %r = call i64 (i32, ...) @sum(i32 7, i32 -1, double 5.5, i64 11, i64 12, i64 13, i64 14, i64 15)
  %s = urem i64 %r, 251
  %t = trunc i64 %s to i32
  ret i32 %t
}`
	sameAsLinked(t, src, "16")
	sameAsLinked(t, src, "19")
}

func TestVariadicArgumentsEnd(t *testing.T) {
	const head = `declare void @llvm.va_start(ptr)
declare void @llvm.va_end(ptr)
declare i32 @vprintf(ptr, ptr)
@s = constant [3 x i8] c"%d\00"
`
	for _, c := range []struct {
		name, body, message string
		kind                interp.Kind
	}{
		{"past the last", `define i32 @f(i32 %n, ...) {
  %l = alloca [24 x i8]
  call void @llvm.va_start(ptr %l)
  %a = va_arg ptr %l, i32
  %b = va_arg ptr %l, i32
  %c = icmp eq i32 %b, 0
  %r = select i1 %c, i32 1, i32 2
  br i1 %c, label %x, label %x
x:
  ret i32 %r
}`, "the condition %c is undefined", interp.KindUndef},
		{"after va_end", `define i32 @f(i32 %n, ...) {
  %l = alloca [24 x i8]
  call void @llvm.va_start(ptr %l)
  call void @llvm.va_end(ptr %l)
  %r = call i32 @vprintf(ptr @s, ptr %l)
  ret i32 %r
}`, "is undefined", interp.KindUndef},
		{"not variadic", `define i32 @f(i32 %n, i32 %m) {
  %l = alloca [24 x i8]
  call void @llvm.va_start(ptr %l)
  ret i32 0
}`, "which is not variadic", interp.KindModule},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, m := machineOf(t, head+c.body)
			_, err := in.Call(context.Background(), m.Func("f"), []interp.Value{interp.FromUint(ir.I32, 0), interp.FromUint(ir.I32, 1)})
			var run *interp.RunError
			require.ErrorAs(t, err, &run)
			require.Equal(t, c.kind.String(), run.Kind.String())
			require.ErrorContains(t, err, c.message)
		})
	}
}

// TestUsersFunctions requires that a user's function can read, write, print and call back.
func TestUsersFunctions(t *testing.T) {
	m := parse(t, `declare i32 @each(ptr, i32, ptr)
@a = global [3 x i32] [i32 1, i32 2, i32 3]
define i32 @double(i32 %x) {
  %y = mul i32 %x, 2
  ret i32 %y
}
define i32 @main() {
  %r = call i32 @each(ptr @a, i32 3, ptr @double)
  %p = getelementptr i32, ptr @a, i32 2
  %v = load i32, ptr %p
  %s = add i32 %r, %v
  ret i32 %s
}`)
	each := func(c *interp.Invocation) (interp.Value, error) {
		base, err := c.Addr(0)
		if err != nil {
			return interp.Value{}, err
		}
		n, err := c.Uint(1)
		if err != nil {
			return interp.Value{}, err
		}
		f, err := c.Addr(2)
		if err != nil {
			return interp.Value{}, err
		}
		var p [4]byte
		for k := range n {
			at := base + machine.Addr(4*k)
			if err := c.Read(p[:], at); err != nil {
				return interp.Value{}, err
			}
			v, err := c.Call(f, interp.FromUint(ir.I32, uint64(p[0])))
			if err != nil {
				return interp.Value{}, err
			}
			u, _ := v.Uint()
			if err := c.Write(at, []byte{byte(u), 0, 0, 0}); err != nil {
				return interp.Value{}, err
			}
		}
		return c.Return(n)
	}
	in, err := interp.New(m, interp.Options{Funcs: map[string]interp.Builtin{"each": each}})
	require.NoError(t, err)
	res, err := in.Main(context.Background(), []string{"p"})
	require.NoError(t, err)
	require.Equal(t, "9", res.Value.Format())
}

// failing is a writer that always fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestStreamsOfTheOptions(t *testing.T) {
	const src = `declare i32 @putchar(i32)
declare i32 @getchar()
declare i64 @write(i32, ptr, i64)
define i32 @main() {
  br label %l
l:
  %c = call i32 @getchar()
  %end = icmp eq i32 %c, -1
  br i1 %end, label %done, label %more
more:
  %n = call i32 @putchar(i32 %c)
  br label %l
done:
  %p = alloca i8
  store i8 33, ptr %p
  %w = call i64 @write(i32 2, ptr %p, i64 1)
  ret i32 0
}`
	run := func(o interp.Options) (*interp.Result, error) {
		in, err := interp.New(parse(t, src), o)
		require.NoError(t, err)
		return in.Main(context.Background(), []string{"p"})
	}
	text := strings.Repeat("some text ", 10000)
	var stdout, stderr bytes.Buffer
	res, err := run(interp.Options{Stdin: strings.NewReader(text), Stdout: &stdout, Stderr: &stderr, MaxMemory: 1 << 17})
	require.NoError(t, err)
	require.Equal(t, text, stdout.String())
	require.Equal(t, "!", stderr.String())
	require.Empty(t, res.Output+res.Errors)

	res, err = run(interp.Options{Stdin: strings.NewReader("abc")})
	require.NoError(t, err)
	require.Equal(t, "abc!", res.Output+res.Errors)

	res, err = run(interp.Options{})
	require.NoError(t, err)
	require.Empty(t, res.Output)

	_, err = run(interp.Options{Stdin: strings.NewReader(text), MaxMemory: 1 << 16})
	require.ErrorContains(t, err, "the program needs more than 65536 bytes of memory")
	_, err = run(interp.Options{Stdin: strings.NewReader("x"), Stdout: failing{}})
	require.ErrorContains(t, err, "the program's output cannot be written: no room")
	_, err = run(interp.Options{Stdin: io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("broken")))})
	require.ErrorContains(t, err, "the program's input cannot be read: broken")
}

// TestStreamsOfATarget requires that a run with a target uses the FILE addresses of the target's C library.
func TestStreamsOfATarget(t *testing.T) {
	m := parse(t, `declare i32 @fputs(ptr, ptr)
@stderr = external global ptr
@s = constant [3 x i8] c"hi\00"
define void @f() {
  %e = load ptr, ptr @stderr
  %n = call i32 @fputs(ptr @s, ptr %e)
  ret void
}`)
	symbols := map[string]machine.Addr{"stderr": memoryAt, "_IO_2_1_stderr_": 0x7f0000001234}
	in, err := interp.New(m, interp.Options{
		Memory: flat{nil, []byte{0x34, 0x12, 0, 0, 0, 0x7f, 0}},
		Symbol: func(_ *ir.Module, name string) (machine.Addr, bool) { a, ok := symbols[name]; return a, ok },
	})
	require.NoError(t, err)
	res, err := in.Call(context.Background(), m.Func("f"), nil)
	require.NoError(t, err)
	require.Equal(t, "hi", res.Errors)
}
