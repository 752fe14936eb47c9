; What LLVM 17 to 19 added, as far as LLVM 22 still reads it.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@v = global <4 x i32> splat (i32 7)
@code = global i32 0, code_model "large", align 4
@san = global i32 0, no_sanitize_address, no_sanitize_hwaddress, align 4
@dle = global ptr dso_local_equivalent @f
@nocfi = global ptr no_cfi @f
@range = constant ptr getelementptr inbounds inrange(-16, 16) ({ [4 x ptr] }, ptr @vtable, i32 0, i32 0, i32 2)
@vtable = constant { [4 x ptr] } zeroinitializer, align 8
@hex = global [3 x i16] [i16 u0xFFFE, i16 s0x0001, i16 u0x10]
@ext = global target("spirv.Event") poison

define range(i32 0, 10) i32 @f(i32 range(i32 -5, 5) %x, ptr dead_on_unwind writable align(8) %p, i64 %n, double nofpclass(nan) %d) memory(argmem: readwrite, inaccessiblemem: none) {
  %g = getelementptr nuw i8, ptr %p, i64 %n
  %h = getelementptr nusw nuw { i32, i32 }, ptr %p, i64 %n, i32 1
  %t = trunc nuw nsw i64 %n to i32
  %z = zext nneg i32 %x to i64
  %u = uitofp nneg i32 %x to double
  %o = or disjoint i32 %x, 8
  %s = add <4 x i32> splat (i32 1), <i32 0, i32 1, i32 2, i32 3>
  %f = fadd <2 x double> splat (double 2.5), zeroinitializer
  %w = atomicrmw uinc_wrap ptr %p, i32 %x syncscope("agent") seq_cst
  %cp = cmpxchg ptr %p, ptr null, ptr %p seq_cst seq_cst
  %call = call range(i32 0, 3) i32 @f(i32 %t, ptr %p, i64 %n, double 1.0) memory(none)
  call preserve_nonecc void @g(ptr @captures_free)
  ret i32 %o
}
@captures_free = global i32 0
declare preserve_nonecc void @g(ptr)
