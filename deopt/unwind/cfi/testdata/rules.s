# Call frame instructions that compilers seldom write, for readelf to agree on.
	.text
	.globl	rare
	.type	rare, @function
rare:
	.cfi_startproc
	.cfi_personality 0x9b, personality_pointer
	.cfi_lsda 0x1b, table
	nop
	.cfi_undefined rbx
	nop
	.cfi_same_value r12
	nop
	.cfi_register r13, r10
	nop
	.cfi_offset r14, -24
	.cfi_rel_offset r15, 16
	nop
	.cfi_val_offset rbp, 32
	nop
	.cfi_remember_state
	.cfi_def_cfa rbp, 48
	nop
	.cfi_remember_state
	.cfi_def_cfa_register r11
	.cfi_restore r14
	nop
	.cfi_restore_state
	nop
	.cfi_restore_state
	nop
	.cfi_escape 0x05, 0x21, 0x04		# offset_extended st0, 4
	nop
	.cfi_escape 0x11, 0x22, 0x7c		# offset_extended_sf st1, -4
	nop
	.cfi_escape 0x2f, 0x23, 0x05		# GNU_negative_offset_extended st2, 5
	nop
	.cfi_escape 0x14, 0x03, 0x06		# val_offset rbx, 6
	nop
	.cfi_escape 0x15, 0x03, 0x7a		# val_offset_sf rbx, -6
	nop
	.cfi_escape 0x12, 0x07, 0x7e		# def_cfa_sf rsp, -2
	nop
	.cfi_escape 0x13, 0x7d			# def_cfa_offset_sf -3
	nop
	.cfi_escape 0x2e, 0x10			# GNU_args_size 16
	nop
	.cfi_escape 0x10, 0x0c, 0x02, 0x77, 0x08	# expression r12: breg7 8
	nop
	.cfi_escape 0x16, 0x0d, 0x02, 0x76, 0x10	# val_expression r13: breg6 16
	nop
	.cfi_escape 0x0f, 0x03, 0x77, 0x08, 0x06	# def_cfa_expression: breg7 8, deref
	.skip	100, 0x90
	.cfi_restore r15
	.cfi_escape 0x06, 0x0c			# restore_extended r12
	.skip	300, 0x90
	.cfi_restore r13
	.skip	70000, 0x90
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size	rare, .-rare

	.globl	trampoline
	.type	trampoline, @function
trampoline:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_undefined rip
	nop
	.cfi_restore rip
	ret
	.cfi_endproc
	.size	trampoline, .-trampoline

	.data
	.hidden	personality_pointer
	.globl	personality_pointer
personality_pointer:
	.quad	0
	.section .rodata
table:
	.quad	0
	.section .note.GNU-stack,"",@progbits
