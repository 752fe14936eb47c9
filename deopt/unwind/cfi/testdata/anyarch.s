/* Call frame instructions for any architecture and byte order: registers are
   numbers, and the code is zeros, which nobody runs. */
	.cfi_sections .eh_frame, .debug_frame
	.text
	.globl	rare
	.type	rare, %function
rare:
	.cfi_startproc
	.space 4
	.cfi_def_cfa 15, 160
	.space 4
	.cfi_undefined 6
	.space 4
	.cfi_same_value 12
	.space 4
	.cfi_register 13, 10
	.space 4
	.cfi_offset 11, -24
	.cfi_offset 20, -32
	.space 4
	.cfi_remember_state
	.cfi_def_cfa 9, 48
	.space 4
	.cfi_remember_state
	.cfi_def_cfa_register 10
	.cfi_restore 11
	.space 4
	.cfi_restore_state
	.space 4
	.cfi_restore_state
	.space 4
	.cfi_escape 0x05, 0x11, 0x04		/* offset_extended 17, 4 */
	.space 4
	.cfi_escape 0x11, 0x12, 0x7c		/* offset_extended_sf 18, -4 */
	.space 4
	.cfi_escape 0x2f, 0x13, 0x05		/* GNU_negative_offset_extended 19, 5 */
	.space 4
	.cfi_escape 0x14, 0x03, 0x06		/* val_offset 3, 6 */
	.space 4
	.cfi_escape 0x15, 0x03, 0x7a		/* val_offset_sf 3, -6 */
	.space 4
	.cfi_escape 0x12, 0x0f, 0x7e		/* def_cfa_sf 15, -2 */
	.space 4
	.cfi_escape 0x13, 0x7d			/* def_cfa_offset_sf -3 */
	.space 4
	.cfi_escape 0x10, 0x0c, 0x02, 0x7f, 0x08	/* expression 12: breg15 8 */
	.space 4
	.cfi_escape 0x16, 0x0d, 0x02, 0x79, 0x10	/* val_expression 13: breg9 16 */
	.space 4
	.cfi_escape 0x0f, 0x03, 0x7f, 0x08, 0x06	/* def_cfa_expression: breg15 8, deref */
	.space 300
	.cfi_restore 20
	.cfi_escape 0x06, 0x0c			/* restore_extended 12 */
	.space 1200
	.cfi_restore 13
	.space 300000
	.cfi_def_cfa 15, 8
	.space 4
	.cfi_endproc
	.size	rare, .-rare

	.globl	trampoline
	.type	trampoline, %function
trampoline:
	.cfi_startproc
	.cfi_signal_frame
	.space 4
	.cfi_def_cfa 15, 16
	.space 4
	.cfi_endproc
	.size	trampoline, .-trampoline
