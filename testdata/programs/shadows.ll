; Stackmaps and statepoints into whose shadows and regions shadows.c writes calls. Each stackmap is marked by the nop before it.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare void @nothing()
declare i32 @shadows_run(ptr)
define i64 @sled_start(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 101, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @sled_middle(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 102, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @sled_end(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 103, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @sled_register(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 104, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @sled_memory(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 105, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @sled_jump(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 106, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @sled_jumpreg(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 107, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @epilogue(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "", "~{r12}"()
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 108, i32 32, i64 %sum, ptr %slot, i64 7)
  %y = load volatile i64, ptr %slot
  ret i64 %y
}
define i64 @epilogue_ran(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "", "~{r12}"()
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 109, i32 32, i64 %sum, ptr %slot, i64 7)
  %y = load volatile i64, ptr %slot
  ret i64 %y
}
define i64 @own(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 110, i32 16, i64 %sum, ptr %slot, i64 7)
  call void @nothing()
  ret i64 %sum
}
define i64 @own_over(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 111, i32 16, i64 %sum, ptr %slot, i64 7)
  call void @nothing()
  ret i64 %sum
}
define i64 @taken_back(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 112, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @region_start(i64 %a, i64 %b) noinline {
  %x = mul i64 %a, %b
  %sum = add i64 %a, %b
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void @nothing() #301 [ "deopt"(i64 %sum, i64 %x, i64 7) ]
  ret i64 %x
}
define i64 @region_middle(i64 %a, i64 %b) noinline {
  %x = mul i64 %a, %b
  %sum = add i64 %a, %b
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void @nothing() #302 [ "deopt"(i64 %sum, i64 %x, i64 7) ]
  ret i64 %x
}
define i64 @region_end(i64 %a, i64 %b) noinline {
  %x = mul i64 %a, %b
  %sum = add i64 %a, %b
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void @nothing() #303 [ "deopt"(i64 %sum, i64 %x, i64 7) ]
  ret i64 %x
}
define i64 @region_jump(i64 %a, i64 %b) noinline {
  %x = mul i64 %a, %b
  %sum = add i64 %a, %b
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void @nothing() #304 [ "deopt"(i64 %sum, i64 %x, i64 7) ]
  ret i64 %x
}
define i64 @pp_jump(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 401, i32 24, ptr null, i32 0, i64 %sum, ptr %slot, i64 7)
  %y = load volatile i64, ptr %slot
  ret i64 %y
}
define i64 @pp_changed(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 402, i32 24, ptr null, i32 0, i64 %sum, ptr %slot, i64 7)
  %y = load volatile i64, ptr %slot
  ret i64 %y
}
define i64 @shared_one(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 113, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
define i64 @shared_two(i64 %a, i64 %b) noinline {
  %slot = alloca i64
  %x = mul i64 %a, %b
  store volatile i64 %x, ptr %slot
  %sum = call i64 asm sideeffect "leaq ($1,$2), %rbx", "={rbx},r,r"(i64 %a, i64 %b)
  call void asm sideeffect "nopl 0x5add0001(%rax)", ""()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 114, i32 32, i64 %sum, ptr %slot, i64 7)
  unreachable
}
@functions = constant [21 x ptr] [ptr @shared_one, ptr @shared_two, ptr @region_jump, ptr @sled_start, ptr @sled_middle, ptr @sled_end, ptr @sled_register, ptr @sled_memory, ptr @sled_jump, ptr @sled_jumpreg, ptr @epilogue, ptr @epilogue_ran, ptr @own, ptr @own_over, ptr @taken_back, ptr @region_start, ptr @region_middle, ptr @region_end, ptr @pp_jump, ptr @pp_changed, ptr null]
define i32 @main() {
  %r = call i32 @shadows_run(ptr @functions)
  ret i32 %r
}
attributes #301 = { "statepoint-id"="301" "statepoint-num-patch-bytes"="24" }
attributes #302 = { "statepoint-id"="302" "statepoint-num-patch-bytes"="24" }
attributes #303 = { "statepoint-id"="303" "statepoint-num-patch-bytes"="24" }
attributes #304 = { "statepoint-id"="304" "statepoint-num-patch-bytes"="24" }
