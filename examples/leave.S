// How a host leaves optimized code at a deoptimize exit. No code follows LLVM's call of __llvm_deoptimize that could take a
// result, so the runtime abandons the frame:
//
//   call_optimized(f, a)     returns f(a)
//   leave_optimized(value)   called by f or its callees; makes call_optimized return value instead
//
// longjmp would work too, but then f never returns to its caller, and reframe verify cannot compare the result. For x86-64;
// one activation at a time. The .cfi lines let debuggers walk through; compilers generate them anyway.
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

// An abandoned f does not restore the callee-saved registers that it has saved, so call_optimized saves them.
call_optimized:
  .cfi_startproc
  keep rbp
  keep rbx
  keep r12
  keep r13
  keep r14
  keep r15
  sub $8, %rsp // the stack is aligned to 16 at a call
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
  .cfi_undefined %rip // the frame that called it no longer exists
  mov %rdi, %rax
  mov kept(%rip), %rsp
  jmp returned
  .cfi_endproc
  .size leave_optimized, .-leave_optimized

  .local kept
  .comm kept, 8, 8
  .section .note.GNU-stack, "", @progbits
