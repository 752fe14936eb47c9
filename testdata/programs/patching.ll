; Six sites that a program patches while it runs (patching.c): the sleds of patchpoints without a target, and shadows of stackmaps, each of 16 bytes that begin
; at a multiple of 16. x86-64.
target triple = "x86_64-pc-linux-gnu"

declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare i32 @drive(i32, ptr, ptr, ptr, ptr, ptr)

@calls = hidden global i64 0
@sites = global [6 x ptr] zeroinitializer
@functions = global [6 x ptr] [ptr @f0, ptr @f1, ptr @f2, ptr @f3, ptr @f4, ptr @f5]

; What is patched in calls this. It keeps all registers.
define void @stub() naked noinline {
  call void asm sideeffect "lock incq calls(%rip)\0Aret", ""()
  unreachable
}

define i64 @f0(i64 %n) noinline noredzone {
  call void asm sideeffect ".p2align 4\0A.Lsite0:", ""()
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 100, i32 16, ptr null, i32 0, i64 %n)
  %r = mul i64 %n, 3
  ret i64 %r
}

define i64 @f1(i64 %n) noinline noredzone {
  call void asm sideeffect ".p2align 4\0A.Lsite1:", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 101, i32 16, i64 %n)
  call void asm sideeffect ".byte 0x0f,0x1f,0x84,0,0,0,0,0,0x0f,0x1f,0x84,0,0,0,0,0", ""()
  %r = mul i64 %n, 4
  ret i64 %r
}

define i64 @f2(i64 %n) noinline noredzone {
  call void asm sideeffect ".p2align 4\0A.Lsite2:", ""()
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 102, i32 16, ptr null, i32 0, i64 %n)
  %r = mul i64 %n, 5
  ret i64 %r
}

define i64 @f3(i64 %n) noinline noredzone {
  call void asm sideeffect ".p2align 4\0A.Lsite3:", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 103, i32 16, i64 %n)
  call void asm sideeffect ".byte 0x0f,0x1f,0x84,0,0,0,0,0,0x0f,0x1f,0x84,0,0,0,0,0", ""()
  %r = mul i64 %n, 6
  ret i64 %r
}

define i64 @f4(i64 %n) noinline noredzone {
  call void asm sideeffect ".p2align 4\0A.Lsite4:", ""()
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 104, i32 16, ptr null, i32 0, i64 %n)
  %r = mul i64 %n, 7
  ret i64 %r
}

define i64 @f5(i64 %n) noinline noredzone {
  call void asm sideeffect ".p2align 4\0A.Lsite5:", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 105, i32 16, i64 %n)
  call void asm sideeffect ".byte 0x0f,0x1f,0x84,0,0,0,0,0,0x0f,0x1f,0x84,0,0,0,0,0", ""()
  %r = mul i64 %n, 8
  ret i64 %r
}

define i32 @main(i32 %argc, ptr %argv) {
  %p0 = call ptr asm "leaq .Lsite0(%rip), $0", "=r"()
  %s0 = getelementptr [6 x ptr], ptr @sites, i64 0, i64 0
  store ptr %p0, ptr %s0
  %p1 = call ptr asm "leaq .Lsite1(%rip), $0", "=r"()
  %s1 = getelementptr [6 x ptr], ptr @sites, i64 0, i64 1
  store ptr %p1, ptr %s1
  %p2 = call ptr asm "leaq .Lsite2(%rip), $0", "=r"()
  %s2 = getelementptr [6 x ptr], ptr @sites, i64 0, i64 2
  store ptr %p2, ptr %s2
  %p3 = call ptr asm "leaq .Lsite3(%rip), $0", "=r"()
  %s3 = getelementptr [6 x ptr], ptr @sites, i64 0, i64 3
  store ptr %p3, ptr %s3
  %p4 = call ptr asm "leaq .Lsite4(%rip), $0", "=r"()
  %s4 = getelementptr [6 x ptr], ptr @sites, i64 0, i64 4
  store ptr %p4, ptr %s4
  %p5 = call ptr asm "leaq .Lsite5(%rip), $0", "=r"()
  %s5 = getelementptr [6 x ptr], ptr @sites, i64 0, i64 5
  store ptr %p5, ptr %s5
  %status = call i32 @drive(i32 %argc, ptr %argv, ptr @sites, ptr @functions, ptr @stub, ptr @calls)
  ret i32 %status
}
