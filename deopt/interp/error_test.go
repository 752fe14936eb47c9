package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// ended lists functions @f, each with the error that ends its run under small limits.
var ended = []struct {
	name, src string
	kind      interp.Kind
	message   string
}{
	{"endless loop", `define void @f() {
l:
  br label %l
}`, interp.KindSteps, "@f, block %l, line 3: br: not finished after 10000 steps"},
	{"endless loop of bulk work", `declare ptr @memset(ptr, i32, i64)
define void @f() {
  %p = alloca [65536 x i8]
  br label %l
l:
  %x = call ptr @memset(ptr %p, i32 0, i64 65536)
  br label %l
}`, interp.KindSteps, "@f, block %l, line 6: %x = call @memset: not finished after 10000 steps"},
	{"endless recursion", `define i64 @f() {
  %r = call i64 @f()
  ret i64 %r
}`, interp.KindDepth, "@f, block %0, line 2: %r = call @f: calls are nested deeper than 100"},
	{"too much malloc", `declare ptr @malloc(i64)
define void @f() {
l:
  %p = call ptr @malloc(i64 65536)
  br label %l
}`, interp.KindMemory, "@f, block %l, line 4: %p = call @malloc: the program needs more than 524288 bytes of memory"},
	{"malloc of everything", `declare ptr @malloc(i64)
define void @f() {
  %p = call ptr @malloc(i64 1099511627776)
  ret void
}`, interp.KindMemory, "@f, block %0, line 3: %p = call @malloc: the program needs more than 524288 bytes of memory"},
	{"a huge alloca", `define void @f() {
  %p = alloca i64, i64 2305843009213693953
  ret void
}`, interp.KindMemory, "@f, block %0, line 2: %p = alloca ptr: alloca of 2305843009213693953 elements of 8 bytes"},
	{"too much output", `@s = constant [4 x i8] c"%*d\00"
declare i32 @printf(ptr, ...)
define void @f() {
l:
  %n = call i32 (ptr, ...) @printf(ptr @s, i32 60000, i32 1)
  br label %l
}`, interp.KindMemory, "@f, block %l, line 5: %n = call @printf: the program needs more than 524288 bytes of memory"},
	{"unreachable", `define void @f() {
  unreachable
}`, interp.KindUnreachable, "@f, block %0, line 2: unreachable: unreachable was reached"},
	{"trap", `declare void @llvm.trap()
define void @f() {
  call void @llvm.trap()
  ret void
}`, interp.KindUnreachable, "@f, block %0, line 3: call @llvm.trap: a trap was reached"},
	{"division by zero", `define i32 @f() {
  %x = sdiv i32 1, 0
  ret i32 %x
}`, interp.KindDivision, "@f, block %0, line 2: %x = sdiv i32: division by zero"},
	{"division that overflows", `define i8 @f() {
  %x = srem i8 -128, -1
  ret i8 %x
}`, interp.KindDivision, "@f, block %0, line 2: %x = srem i8: division of -128 by -1 overflows"},
	{"wide division by zero", `define i128 @f() {
  %x = urem i128 1, 0
  ret i128 %x
}`, interp.KindDivision, "@f, block %0, line 2: %x = urem i128: division by zero"},
	{"wide division that overflows", `define i128 @f() {
  %x = sdiv i128 -170141183460469231731687303715884105728, -1
  ret i128 %x
}`, interp.KindDivision, "@f, block %0, line 2: %x = sdiv i128: division of -170141183460469231731687303715884105728 by -1 overflows"},
	{"branch on undef", `define void @f() {
  br i1 undef, label %a, label %a
a:
  ret void
}`, interp.KindUndef, "@f, block %0, line 2: br: the condition undef is undefined"},
	{"branch on what was never stored", `define void @f() {
  %p = alloca i32
  %v = load i32, ptr %p
  %c = icmp eq i32 %v, 0
  br i1 %c, label %a, label %a
a:
  ret void
}`, interp.KindUndef, "@f, block %0, line 5: br: the condition %c is undefined"},
	{"switch on poison", `define void @f() {
  %x = shl i8 1, 8
  switch i8 %x, label %a []
a:
  ret void
}`, interp.KindUndef, "@f, block %0, line 3: switch: the operand of the switch, %x, is poison"},
	{"nsw", `define void @f() {
  %x = add nsw i8 127, 1
  %c = icmp eq i8 %x, 0
  br i1 %c, label %a, label %a
a:
  ret void
}`, interp.KindUndef, "@f, block %0, line 4: br: the condition %c is poison"},
	{"undefined address", `define void @f(ptr %p) {
  store i32 1, ptr undef
  ret void
}`, interp.KindUndef, "@f, block %0, line 2: store: the address is undefined"},
	{"undefined output", `declare i32 @putchar(i32)
define void @f() {
  %x = call i32 @putchar(i32 undef)
  ret void
}`, interp.KindUndef, "@f, block %0, line 3: %x = call @putchar: argument 1 of @putchar is undefined"},
	{"undefined string", `declare i32 @puts(ptr)
define void @f() {
  %p = alloca [4 x i8]
  store i8 65, ptr %p
  %x = call i32 @puts(ptr %p)
  ret void
}`, interp.KindUndef, "@f, block %0, line 5: %x = call @puts: the byte at 0x4800000000000001 is undefined"},
	{"null", `define i32 @f() {
  %x = load i32, ptr null
  ret i32 %x
}`, interp.KindFault, "@f, block %0, line 2: %x = load i32: read of 4 bytes at 0x0: a null pointer, or an address near null"},
	{"past the end", `declare ptr @malloc(i64)
define void @f() {
  %p = call ptr @malloc(i64 10)
  %q = getelementptr i8, ptr %p, i64 9
  store i32 0, ptr %q
  ret void
}`, interp.KindFault, "@f, block %0, line 5: store: write of 4 bytes at 0x4000000000000009: outside of every block of malloc, or in a freed one"},
	{"use after free", `declare ptr @malloc(i64)
declare void @free(ptr)
define i8 @f() {
  %p = call ptr @malloc(i64 10)
  call void @free(ptr %p)
  %x = load i8, ptr %p
  ret i8 %x
}`, interp.KindFault, "@f, block %0, line 6: %x = load i8: read of 1 bytes at 0x4000000000000000: outside of every block of malloc, or in a freed one"},
	{"double free", `declare ptr @malloc(i64)
declare void @free(ptr)
define void @f() {
  %p = call ptr @malloc(i64 10)
  call void @free(ptr %p)
  call void @free(ptr %p)
  ret void
}`, interp.KindFault, "@f, block %0, line 6: call @free: free of 0x4000000000000000, which malloc did not return, or which was freed before"},
	{"alloca of a function that returned", `define ptr @g() {
  %p = alloca i32
  store i32 1, ptr %p
  ret ptr %p
}
define i32 @f() {
  %p = call ptr @g()
  %x = load i32, ptr %p
  ret i32 %x
}`, interp.KindFault, "@f, block %0, line 8: %x = load i32: read of 4 bytes at 0x4800000000000000: outside of every alloca of the running functions"},
	{"past a global", `@g = global i32 5
define i64 @f() {
  %x = load i64, ptr @g
  ret i64 %x
}`, interp.KindFault, "@f, block %0, line 3: %x = load i64: read of 8 bytes at 0x5000000000000000: outside of every global"},
	{"code as data", `define ptr @f() {
  %x = load ptr, ptr @f
  ret ptr %x
}`, interp.KindFault, "@f, block %0, line 2: %x = load ptr: read of 8 bytes at 0x6000000000000010: the address of code cannot be read or written"},
	{"no target", `define i8 @f() {
  %x = load i8, ptr inttoptr (i64 12345678 to ptr)
  ret i8 %x
}`, interp.KindFault, "@f, block %0, line 2: %x = load i8: read of 1 bytes at 0xbc614e: there is no target, and the address is not in the interpreter's own memory"},
	{"around the end", `define i64 @f() {
  %x = load i64, ptr inttoptr (i64 -4 to ptr)
  ret i64 %x
}`, interp.KindFault, "@f, block %0, line 2: %x = load i64: read of 8 bytes at 0xfffffffffffffffc: past the end of the address space"},
	{"native only", `declare i32 @pause()
define void @f() {
  %x = call i32 @pause()
  ret void
}`, interp.KindUnsupported, "@f, block %0, line 3: %x = call @pause: a call of @pause is not supported: it exists only as native code; link the module that defines it (llvm-link), or resume a frame further out"},
	{"stream", `declare i32 @fputs(ptr, ptr)
define void @f() {
  %x = call i32 @fputs(ptr null, ptr null)
  ret void
}`, interp.KindFault, "@f, block %0, line 3: %x = call @fputs: @fputs got a null pointer as its FILE"},
	{"index narrower than its pointer", `target datalayout = "e-p:64:64:64:32"
define ptr @f() {
  %x = getelementptr i8, ptr null, i64 4294967296
  ret ptr %x
}`, interp.KindUnsupported, "@f, block %0, line 3: %x = getelementptr ptr: an index of 32 bits for a pointer of 64 is not supported"},
	{"inline assembly", `define void @f() {
  call void asm sideeffect "hlt", "~{memory}"()
  ret void
}`, interp.KindUnsupported, `@f, block %0, line 2: call asm hlt: inline assembly "hlt" with "~{memory}" is not supported: build the module without it, or resume a frame further out`},
	{"inline assembly of another machine", `target triple = "aarch64-linux-gnu"
define void @f() {
  call void asm sideeffect "nop", ""()
  ret void
}`, interp.KindUnsupported, `@f, block %0, line 3: call asm nop: inline assembly "nop" with "" is not supported: build the module without it, or resume a frame further out`},
	{"inline assembly of another width", `define i16 @f() {
  %y = call i16 asm "bswap $0", "=r,0,~{flags}"(i16 1)
  ret i16 %y
}`, interp.KindUnsupported, `@f, block %0, line 2: %y = call asm bswap $0: inline assembly "bswap $0" with "=r,0,~{flags}" is not supported: build the module without it, or resume a frame further out`},
	{"output of assembly without text", `define i32 @f() {
  %x = call i32 asm "", "=r"()
  %c = icmp eq i32 %x, 0
  br i1 %c, label %a, label %a
a:
  ret i32 0
}`, interp.KindUndef, "@f, block %0, line 4: br: the condition %c is undefined"},
	{"assembly with an operand too few", `define i32 @f() {
  %x = call i32 asm "", "=r,0"()
  ret i32 %x
}`, interp.KindModule, ""},
	{"unknown intrinsic", `declare i64 @llvm.readcyclecounter()
define i64 @f() {
  %x = call i64 @llvm.readcyclecounter()
  ret i64 %x
}`, interp.KindUnsupported, "@f, block %0, line 3: %x = call @llvm.readcyclecounter: the intrinsic @llvm.readcyclecounter is not supported"},
	{"a segment register", `target triple = "x86_64-linux-gnu"
define i64 @f() {
  %x = load i64, ptr addrspace(257) inttoptr (i64 40 to ptr addrspace(257))
  ret i64 %x
}`, interp.KindUnsupported, "@f, block %0, line 3: %x = load i64: memory at the segment register fs is not supported"},
	{"abort", `declare void @abort()
define void @f() {
  call void @abort()
  unreachable
}`, interp.KindAbort, "@f, block %0, line 3: call @abort: the program called abort"},
	{"guard", `declare void @llvm.experimental.guard(i1, ...)
define void @f() {
  call void (i1, ...) @llvm.experimental.guard(i1 true) [ "deopt"(i32 1) ]
  call void (i1, ...) @llvm.experimental.guard(i1 false) [ "deopt"(i32 2, i64 3) ]
  ret void
}`, interp.KindDeoptimize, "@f, block %0, line 4: call @llvm.experimental.guard: the code deoptimizes: call of @llvm.experimental.guard with 2 live values"},
	{"wrong signature", `define i32 @g(i32 %x) {
  ret i32 %x
}
define void @f() {
  %p = select i1 true, ptr @g, ptr null
  %x = call i32 %p(double 1.0)
  ret void
}`, interp.KindModule, "@f, block %0, line 6: %x = call %p: argument 1 of @g has type double; expected i32"},
	{"an alias of itself", `@a = alias i32, ptr @b
@b = alias i32, ptr @a
define i32 @f() {
  %x = load i32, ptr @a
  ret i32 %x
}`, interp.KindModule, "@f, block %0, line 4: %x = load i32: the alias @a refers to more than 100 others, or to itself"},
	{"a value that is too wide", `define void @f() {
  %x = load [100000000 x i64], ptr null
  ret void
}`, interp.KindUnsupported, "@f, block %0, line 2: %x = load [100000000 x i64]: a value of type [100000000 x i64] is not supported: use it through memory"},
}

func TestRunsThatEndWithAnError(t *testing.T) {
	for _, c := range ended {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.src)
			in, err := interp.New(m, interp.Options{MaxSteps: 10000, MaxMemory: 1 << 19, MaxDepth: 100})
			require.NoError(t, err)
			var args []interp.Value
			for range m.Func("f").Params {
				args = append(args, interp.FromUint(ir.Ptr, 0))
			}
			_, err = in.Call(context.Background(), m.Func("f"), args)
			var run *interp.RunError
			require.ErrorAs(t, err, &run)
			require.Equal(t, c.kind.String(), run.Kind.String(), "%v", err)
			if c.message != "" {
				require.EqualError(t, err, c.message)
			}
		})
	}
}

func TestAFailedRunKeepsWhatItPrinted(t *testing.T) {
	in, m := machineOf(t, `declare i32 @putchar(i32)
define void @f() {
  %x = call i32 @putchar(i32 65)
  unreachable
}`)
	res, err := in.Call(context.Background(), m.Func("f"), nil)
	require.Error(t, err)
	require.Equal(t, "A", res.Output)
}

func TestAContextStopsARun(t *testing.T) {
	in, m := machineOf(t, "define void @f() {\nl:\n  br label %l\n}")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := in.Call(ctx, m.Func("f"), nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestArgumentsMustFit(t *testing.T) {
	in, m := machineOf(t, "define i32 @f(i32 %x) {\n  ret i32 %x\n}")
	_, err := in.Call(context.Background(), m.Func("f"), nil)
	require.EqualError(t, err, "@f takes 1 arguments, got 0")
	_, err = in.Call(context.Background(), m.Func("f"), []interp.Value{i64(1)})
	require.EqualError(t, err, "argument 1 of @f: a value of type i64; expected i32")
	_, err = in.Call(context.Background(), m.Func("f"), []interp.Value{{}})
	require.EqualError(t, err, "argument 1 of @f: a value of type void; expected i32")
}

func TestOnlyPointersOfTheTargetsWidth(t *testing.T) {
	for _, c := range []struct{ module, says string }{
		{`target datalayout = "e-p:16:16"`, "a module with pointers of 2 bytes is not supported: pointers must have 4 or 8 bytes"},
		{"target datalayout = \"e-p:32:32\"\ntarget triple = \"armv7-linux-gnueabihf\"", "a module for armv7-linux-gnueabihf is not supported: x86 is the only supported 32-bit architecture"},
		{"target datalayout = \"e-p:32:32\"\ntarget triple = \"x86_64-linux-gnux32\"", "a module for x86_64-linux-gnux32 is not supported: x86 is the only supported 32-bit architecture"},
		{`target datalayout = "E-p:32:32"`, "the module's byte order is not that of 32-bit x86"},
	} {
		_, err := interp.New(parse(t, c.module), interp.Options{})
		require.EqualError(t, err, c.says)
	}
	narrow := parse(t, `target triple = "i686-linux-gnu"`)
	_, err := interp.New(narrow, interp.Options{Arch: machine.AMD64})
	require.EqualError(t, err, "test.ll has pointers of 4 bytes, but x86-64 has pointers of 8: the module does not belong to this program")
	_, err = interp.New(parse(t, ""), interp.Options{Arch: machine.I386})
	require.EqualError(t, err, "test.ll has pointers of 8 bytes, but 32-bit x86 has pointers of 4: the module does not belong to this program")
	_, err = interp.New(narrow, interp.Options{Memory: storingTarget()})
	require.EqualError(t, err, "the memory of a target with pointers of 4 bytes is not supported: run the module from its start")
	_, err = interp.New(parse(t, `target datalayout = "E"`), interp.Options{})
	require.EqualError(t, err, "the module's byte order is not that of x86-64")
}

// TestUndefinedBitsTravel checks which bits of a result are known if a part of an operand is undefined.
func TestUndefinedBitsTravel(t *testing.T) {
	for _, c := range []struct{ body, result, want string }{
		{"%r = and i8 undef, 0", "i8", "0"},
		{"%r = or i8 undef, -1", "i8", "-1"},
		{"%r = xor i8 undef, 1", "i8", "undef"},
		{"%a = shl i16 undef, 8\n  %r = trunc i16 %a to i8", "i8", "0"},
		{"%a = zext i8 undef to i16\n  %r = lshr i16 %a, 8", "i16", "0"},
		{"%a = shl i32 undef, 4\n  %b = add i32 %a, 7\n  %r = and i32 %b, 15", "i32", "7"},
		{"%a = or i8 undef, 1\n  %r = icmp ne i8 %a, 0", "i1", "true"},
		{"%r = icmp ult i8 undef, 5", "i1", "undef"},
		{"%r = select i1 undef, i8 1, i8 2", "i8", "undef"},
		{"%r = select i1 true, i8 1, i8 undef", "i8", "1"},
		{"%r = insertelement <2 x i8> undef, i8 5, i32 1", "<2 x i8>", "<undef, 5>"},
		{"%r = insertelement <2 x i8> zeroinitializer, i8 5, i32 2", "<2 x i8>", "<poison, poison>"},
		{"%r = insertvalue { i8, i32 } poison, i32 5, 1", "{ i8, i32 }", "{poison, 5}"},
		{"%a = freeze i8 undef\n  %b = freeze i8 %a\n  %r = icmp eq i8 %a, %b", "i1", "true"},
		{"%r = fptoui double -1.5 to i8", "i8", "poison"},
		{"%r = fptosi double 0x7FF8000000000000 to i64", "i64", "poison"},
		{"%r = lshr exact i8 3, 1", "i8", "poison"},
		{"%r = mul nuw i64 4294967296, 4294967296", "i64", "poison"},
		{"%r = mul nsw i64 -4294967296, 2147483648", "i64", "-9223372036854775808"},
		{"%r = sub nuw i128 0, 1", "i128", "poison"},
		{"%r = shl nsw i128 1, 127", "i128", "poison"},
		{"%a = shl i128 undef, 64\n  %b = or i128 %a, 9\n  %r = trunc i128 %b to i64", "i64", "9"},
		// Bits of a product that no undefined bit can affect are known.
		{"%a = shl i32 undef, 24\n  %b = or i32 %a, 5\n  %r = mul i32 %b, -16777216", "i32", "-83886080"},
		{"%a = shl i32 undef, 24\n  %b = or i32 %a, 5\n  %c = mul i32 -8, %b\n  %r = and i32 %c, 134217727", "i32", "134217688"},
		{"%a = shl i32 undef, 24\n  %b = or i32 %a, 5\n  %c = mul i32 %b, 8\n  %r = and i32 %c, 134217728", "i32", "undef"},
		{"%a = shl i32 undef, 24\n  %b = mul i32 %a, %a\n  %r = add i32 %b, 3", "i32", "3"},
		{"%a = shl i32 undef, 24\n  %b = or i32 %a, 1\n  %r = mul nuw i32 %b, 256", "i32", "undef"},
		{"%r = mul i32 undef, 0", "i32", "0"},
		{"%r = mul i32 undef, 3", "i32", "undef"},
		{"%a = shl i128 undef, 64\n  %b = or i128 %a, 5\n  %r = mul i128 %b, 18446744073709551616", "i128", "92233720368547758080"},
		{"%a = shl i128 undef, 64\n  %b = or i128 %a, 5\n  %c = mul i128 %b, 8\n  %d = lshr i128 %c, 3\n  %r = trunc i128 %d to i64", "i64", "5"},
		{"%r = mul i128 undef, 0", "i128", "0"},
		// A bit-field in memory that is not initialized.
		{"%p = alloca i8\n  %a = load i8, ptr %p\n  %b = and i8 %a, -8\n  %c = or i8 %b, 5\n  store i8 %c, ptr %p\n" +
			"  %d = load i8, ptr %p\n  %r = and i8 %d, 7", "i8", "5"},
	} {
		in, m := machineOf(t, "define "+c.result+" @f() {\n  "+c.body+"\n  ret "+c.result+" %r\n}")
		res, err := in.Call(context.Background(), m.Func("f"), nil)
		require.NoError(t, err, c.body)
		require.Equal(t, c.want, res.Value.Format(), c.body)
	}
}
