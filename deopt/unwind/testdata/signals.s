# Functions that fault at one instruction of their prologue or epilogue each, and code for
# signal handlers to return to that has no CFI.
	.text
	.macro	fault at
	.global	\at
	.type	\at, @function
\at:
	.cfi_startproc
	.endm

	fault	early
	movq	(%rdi), %rax
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	early, .-early

	fault	saved
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	(%rdi), %rax
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq	$1, -8(%rbp)
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	saved, .-saved

	fault	set
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rbx
	.cfi_rel_offset %rbx, -8
	subq	$40, %rsp
	movl	$77, %ebx
	movq	(%rdi), %rax
	addq	$40, %rsp
	popq	%rbx
	.cfi_restore %rbx
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	set, .-set

	fault	leaf
	movq	%rdi, -8(%rsp)
	movq	(%rdi), %rax
	ret
	.cfi_endproc
	.size	leaf, .-leaf

	fault	restored
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	movl	$78, %ebx
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	movq	(%rdi), %rax
	ret
	.cfi_endproc
	.size	restored, .-restored

# Without symbols: gdb takes a function with a name for one.
	nop
.Lrax:
	movq	$15, %rax
	syscall
.Leax:
	movl	$15, %eax
	syscall
	nop
	ud2

	.section .data.rel.ro, "aw"
	.global	by_rax, by_eax
	.balign	8
by_rax:	.quad	.Lrax
by_eax:	.quad	.Leax
	.section .note.GNU-stack, "", @progbits
