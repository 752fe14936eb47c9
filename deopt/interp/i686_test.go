package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
)

// TestNarrowPointers requires that 32-bit addresses are computed, stored and passed correctly, and that invalid ones cause an error.
func TestNarrowPointers(t *testing.T) {
	for _, c := range []struct{ name, src, says string }{
		{"a pointer has four bytes", `  %p = getelementptr ptr, ptr null, i32 3
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "12"},
		{"an index that is wider is cut", `  %p = getelementptr i8, ptr inttoptr (i32 16 to ptr), i64 8589934593
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "17"},
		{"an address wraps", `  %p = getelementptr i8, ptr inttoptr (i32 -1 to ptr), i32 3
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "2"},
		{"not inbounds", `  %p = getelementptr inbounds i8, ptr inttoptr (i32 -1 to ptr), i32 3
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "poison"},
		{"a negative index inbounds", `  %p = getelementptr inbounds i8, ptr inttoptr (i32 -1 to ptr), i32 -3
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "4294967292"},
		{"a product of more than 31 bits", `  %p = getelementptr nusw i64, ptr null, i32 268435456
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "poison"},
		{"the largest one", `  %p = getelementptr nusw i64, ptr null, i32 268435455
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "2147483640"},
		{"the same without a sign", `  %p = getelementptr nuw i64, ptr null, i32 268435456
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "2147483648"},
		{"a product of more than 32 bits", `  %p = getelementptr nuw i64, ptr null, i32 536870912
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "poison"},
		{"nuw of the largest index", `  %p = getelementptr nuw i8, ptr null, i32 -1
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "4294967295"},
		{"an index that loses bits inbounds", `  %p = getelementptr inbounds i8, ptr inttoptr (i32 16 to ptr), i64 4294967297
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "poison"},
		{"an index in a register", `  %p = alloca [8 x i64]
  %n = load i32, ptr @three
  %q = getelementptr inbounds i64, ptr %p, i32 %n
  %a = ptrtoint ptr %p to i32
  %b = ptrtoint ptr %q to i32
  %d = sub i32 %b, %a
  %r = zext i32 %d to i64
  ret i64 %r`, "24"},
		{"a negative one behind a constant", `  %p = alloca [8 x { i32, i32 }]
  %q = getelementptr inbounds { i32, i32 }, ptr %p, i32 4
  %n = load i32, ptr @three
  %m = sub i32 0, %n
  %x = getelementptr inbounds { i32, i32 }, ptr %q, i32 %m, i32 1
  %a = ptrtoint ptr %p to i32
  %b = ptrtoint ptr %x to i32
  %d = sub i32 %b, %a
  %r = zext i32 %d to i64
  ret i64 %r`, "12"},
		{"one in a register that leads around", `  %n = load i32, ptr @three
  %p = getelementptr inbounds i8, ptr inttoptr (i32 -2 to ptr), i32 %n
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "poison"},
		{"a struct of LLVM's", `  %p = getelementptr { i8, i64, i8, double, x86_fp80, ptr }, ptr null, i32 1
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "40"},
		{"a pointer in memory", `  %p = alloca [2 x ptr]
  store ptr inttoptr (i32 -1 to ptr), ptr %p
  %q = getelementptr ptr, ptr %p, i32 1
  store ptr null, ptr %q
  %r = load i64, ptr %p
  ret i64 %r`, "4294967295"},
		{"a pointer of another address space", `  %p = addrspacecast ptr null to ptr addrspace(272)
  ret i64 0`, "addrspacecast of ptr to ptr addrspace(272) is not supported"},
		{"past a block", `  %p = call ptr @malloc(i32 6)
  %q = getelementptr i8, ptr %p, i32 4
  %r = load i32, ptr %q
  ret i64 0`, "read of 4 bytes at 0x8000004: outside of every block of malloc, or in a freed one"},
		{"a null pointer", `  %r = load i64, ptr null
  ret i64 %r`, "read of 8 bytes at 0x0: a null pointer, or an address near null"},
		{"an address of nothing", `  %r = load i64, ptr inttoptr (i32 -16 to ptr)
  ret i64 %r`, "read of 8 bytes at 0xfffffff0: there is no target, and the address is not in the interpreter's own memory"},
		{"a store to a constant", `  store i32 1, ptr @three
  ret i64 0`, "write of 4 bytes at 0x6c240000: a constant"},
		{"more than a ptrdiff_t", `  %p = call ptr @malloc(i32 -2147483648)
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "0"},
		{"a product of more than a size_t", `  %p = call ptr @calloc(i32 65536, i32 65536)
  %r = ptrtoint ptr %p to i64
  ret i64 %r`, "0"},
		{"more than all addresses, and all given back", `  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %p = call ptr @aligned_alloc(i32 134217728, i32 16) ; an alignment of 128 MiB, which leaves as much behind it
  store i32 %i, ptr %p
  call void @free(ptr %p)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 100
  br i1 %more, label %loop, label %end
end:
  %r = load i32, ptr %p
  ret i64 0`, "outside of every block of malloc, or in a freed one"},
		{"blocks that are kept stay as they are", `  %first = call ptr @malloc(i32 16)
  store i64 7, ptr %first
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %p = call ptr @aligned_alloc(i32 134217728, i32 16)
  call void @free(ptr %p)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 100
  br i1 %more, label %loop, label %end
end:
  %r = load i64, ptr %first
  ret i64 %r`, "7"},
		{"no gap is large enough", `  %a = call ptr @malloc(i32 16)
  %b = call ptr @aligned_alloc(i32 536870912, i32 16)
  %c = call ptr @aligned_alloc(i32 1073741824, i32 16)
  %d = call ptr @aligned_alloc(i32 1073741824, i32 16)
  ret i64 0`, "the interpreter has no free addresses left"},
		{"a global of nowhere", `  %r = load i64, ptr @elsewhere
  ret i64 %r`, "read of 8 bytes at 0x78300000: @elsewhere is defined outside of the module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, m := machineOf(t, `target triple = "i686-linux-gnu"
@three = constant i32 3
@elsewhere = external global i64
declare ptr @malloc(i32)
declare ptr @calloc(i32, i32)
declare ptr @aligned_alloc(i32, i32)
declare void @free(ptr)
define i64 @f() {
`+c.src+"\n}")
			res, err := in.Call(context.Background(), m.Func("f"), nil)
			if err != nil {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.Equal(t, c.says, res.Value.Format())
		})
	}
}

// TestVAArgOfNarrowLists reads va_lists of 32-bit x86 with LLVM's va_arg, which no C compiler emits for this target.
func TestVAArgOfNarrowLists(t *testing.T) {
	in, m := machineOf(t, `target triple = "i686-linux-gnu"
declare void @llvm.va_start(ptr)
declare void @llvm.va_copy(ptr, ptr)
declare void @llvm.va_end(ptr)
define i64 @sum(i32 %n, ...) {
  %list = alloca ptr
  %copy = alloca ptr
  call void @llvm.va_start(ptr %list)
  %a = va_arg ptr %list, i32
  %d = va_arg ptr %list, double
  call void @llvm.va_copy(ptr %copy, ptr %list)
  %b = va_arg ptr %list, i64
  %l = va_arg ptr %list, x86_fp80
  %c = va_arg ptr %list, i32
  %b2 = va_arg ptr %copy, i64
  call void @llvm.va_end(ptr %copy)
  call void @llvm.va_end(ptr %list)
  %first = load ptr, ptr %list
  %gone = icmp eq ptr %first, null
  %w = zext i32 %a to i64
  %x = fptosi double %d to i64
  %y = fptosi x86_fp80 %l to i64
  %z = zext i32 %c to i64
  %1 = mul i64 %w, 1000
  %2 = add i64 %1, %x
  %3 = mul i64 %2, 1000
  %4 = add i64 %3, %b
  %5 = mul i64 %4, 1000
  %6 = add i64 %5, %y
  %7 = mul i64 %6, 1000
  %8 = add i64 %7, %z
  %9 = mul i64 %8, 1000
  %10 = add i64 %9, %b2
  ret i64 %10
}
define i64 @f() {
  %r = call i64 (i32, ...) @sum(i32 1, i32 2, double 30.0, i64 400, x86_fp80 0xK4001A000000000000000, i32 6)
  ret i64 %r
}`)
	res, err := in.Call(context.Background(), m.Func("f"), []interp.Value{})
	require.NoError(t, err)
	require.Equal(t, "2030400005006400", res.Value.Format())
}
