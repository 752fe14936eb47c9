#include "textflag.h"

// The C function has the frame, so that the stack need not grow in what it calls.
TEXT ·Enter(SB), 0, $65536-24
	MOVQ fn+0(FP), AX
	MOVQ arg+8(FP), DI
	MOVQ SP, R12
	ADDQ $61440, SP
	ANDQ $~15, SP
	CALL AX
	MOVQ R12, SP
	MOVQ AX, ret+16(FP)
	RET

TEXT ·PassAddress(SB), NOSPLIT, $0-8
	LEAQ pass<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// pass has the calling convention of C.
TEXT pass<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	PUSHQ BP
	PUSHQ BX
	PUSHQ R12
	PUSHQ R13
	PUSHQ R14
	PUSHQ R15
	SUBQ $24, SP
	MOVQ DI, 0(SP)
	CALL ·passed(SB)
	MOVQ 8(SP), AX
	ADDQ $24, SP
	POPQ R15
	POPQ R14
	POPQ R13
	POPQ R12
	POPQ BX
	POPQ BP
	RET
