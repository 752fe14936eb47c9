// How compiled code is called, and how it exits at a deoptimize. No code follows LLVM's call of __llvm_deoptimize that could take a result,
// so the runtime abandons the frame: the interpreter's result is returned to the caller of the compiled code. The .cfi lines let debuggers
// walk through. For x86-64.
  .text
  .globl tinyvm_enter, tinyvm_interpret, __llvm_deoptimize
  .type tinyvm_enter, @function
  .type tinyvm_interpret, @function
  .type __llvm_deoptimize, @function

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

// tinyvm_enter(code, depth, args): abandoned code does not restore the callee-saved registers that it has saved, so they are saved here.
tinyvm_enter:
  .cfi_startproc
  keep rbp
  keep rbx
  keep r12
  keep r13
  keep r14
  keep r15
  push kept(%rip) // of the activation outside this one
  .cfi_adjust_cfa_offset 8
  mov %rsp, kept(%rip)
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  call *%rax
returned:
  pop kept(%rip)
  .cfi_adjust_cfa_offset -8
  restore r15
  restore r14
  restore r13
  restore r12
  restore rbx
  restore rbp
  ret
  .cfi_endproc
  .size tinyvm_enter, .-tinyvm_enter

// tinyvm_interpret(frames, depth, returned, result): while tinyvm_run runs, rbx of this frame is the address of the frames, whatever the compiler
// of tinyvm_run does. A debugger finds rbx by the .cfi lines of the functions that are called.
tinyvm_interpret:
  .cfi_startproc
  keep rbx
  mov %rdi, %rbx
  call tinyvm_run
  restore rbx
  ret
  .cfi_endproc
  .size tinyvm_interpret, .-tinyvm_interpret

// Called by compiled code at an exit: struct Left of deopt.cpp is the registers pushed here, and the return address.
__llvm_deoptimize:
  .cfi_startproc
  keep rbx
  keep rbp
  keep r12
  keep r13
  keep r14
  keep r15
  mov %rsp, %rdi
  sub $8, %rsp // the stack is aligned to 16 at a call
  .cfi_adjust_cfa_offset 8
  call tinyvm_leave
  mov kept(%rip), %rsp
  jmp returned
  .cfi_endproc
  .size __llvm_deoptimize, .-__llvm_deoptimize

  .local kept
  .comm kept, 8, 8
  .section .note.GNU-stack, "", @progbits
