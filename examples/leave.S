// How a host gets out of optimized code at a deoptimize exit. LLVM's call of __llvm_deoptimize has nothing behind it that
// could take a result, so the runtime abandons the frame:
//
//   call_optimized(f, a)     returns f(a)
//   leave_optimized(value)   called from below f, has call_optimized return value in its place
//
// longjmp would do as well, but then f never returns to its caller, and reframe verify has nothing to compare. For x86-64; one
// activation at a time. The .cfi lines let debuggers walk through; code that a compiler made has them anyway.
  .text
  .globl call_optimized, leave_optimized
  .type call_optimized, @function
  .type leave_optimized, @function

.macro keep r
  push %\r
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %\r, 0
.endm
.macro restore r
  pop %\r
  .cfi_adjust_cfa_offset -8
  .cfi_restore %\r
.endm

// Nobody restores the callee-saved registers that f has saved when it is left, so they are kept here.
call_optimized:
  .cfi_startproc
  keep rbp
  keep rbx
  keep r12
  keep r13
  keep r14
  keep r15
  sub $8, %rsp // a call is made at a multiple of 16
  .cfi_adjust_cfa_offset 8
  mov %rsp, kept(%rip)
  mov %rdi, %rax
  mov %rsi, %rdi
  call *%rax
returned:
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  restore r15
  restore r14
  restore r13
  restore r12
  restore rbx
  restore rbp
  ret
  .cfi_endproc
  .size call_optimized, .-call_optimized

leave_optimized:
  .cfi_startproc
  .cfi_undefined %rip // the frame that called it is gone
  mov %rdi, %rax
  mov kept(%rip), %rsp
  jmp returned
  .cfi_endproc
  .size leave_optimized, .-leave_optimized

  .local kept
  .comm kept, 8, 8
  .section .note.GNU-stack, "", @progbits
