# The handler of SIGTRAP for x86-64; Linux's arch/x86/include/uapi/asm/sigcontext.h has the offsets of the context.
# rsi: siginfo_t, rdx: ucontext_t. All signals are blocked.
	.intel_syntax noprefix
	.set UC_PC, 168
	.set UC_FLAGS, 176
	.set TF, 0x100
	.set RF, 0x10000

	endbr64
	mov r9, rsi
	mov rax, [rdx+UC_PC]
	mov ecx, [rsi+8]                # si_code
	cmp ecx, 0x80                   # SI_KERNEL: int3
	jne other
	test dword ptr [rdx+UC_FLAGS], RF # the tracer has moved the thread back already, and has marked it so
	jnz find
	dec rax
find:
	lea r8, [rip+table]
	mov ecx, [r8]                   # number of slots
next:
	test ecx, ecx
	jz default
	dec ecx
	add r8, 16
	cmp [r8], rax
	jne next
	cmp byte ptr [r8+12], 0
	je next
	mov [rdx+UC_PC], rax
	and dword ptr [rdx+UC_FLAGS], ~RF
	mov ecx, 0x100000
wait:
	cmp byte ptr [rax], 0xcc
	jne back
	cmp byte ptr [r8+12], 1         # it is restored: this int3 is the program's own
	jne default
	pause
	dec ecx
	jnz wait
	mov r10, rax                    # the last argument of pwrite64
	lea rdi, [rip+path]
	mov esi, 0x80002                # O_RDWR|O_CLOEXEC
	mov eax, 2                      # open
	syscall
	test eax, eax
	js default
	mov edi, eax
	lea rsi, [r8+8]
	mov edx, 1
	mov eax, 18                     # pwrite64
	syscall
	mov r10d, eax
	mov eax, 3                      # close
	syscall
	dec r10d
	jnz default
back:
	ret

other:                                  # the end of a single step, or a debug register
	cmp ecx, 4                      # TRAP_HWBKPT
	je step
	cmp ecx, 2                      # TRAP_TRACE
	je step
	cmp ecx, 1                      # TRAP_BRKPT: a single step of a system call, a debug register without its bit in DR6, or int1
	jne default
	cmp byte ptr [rax], 0xf1        # int1: some virtual machines report it with the pc at it
	je default
	test eax, 0xfff
	jz step                         # the page before may not be there
	cmp byte ptr [rax-1], 0xf1      # int1, which is the program's own
	je default
step:
	test dword ptr [rdx+UC_FLAGS], TF # of the program's own
	jnz default
	or dword ptr [rdx+UC_FLAGS], RF   # let it pass a debug register
	ret

default:
	mov edi, 5                      # SIGTRAP
	lea rsi, [rip+action]
	xor edx, edx
	mov r10d, 8
	mov eax, 13                     # rt_sigaction
	syscall
	test eax, eax
	js die
	mov eax, 39                     # getpid
	syscall
	mov edi, eax
	mov eax, 186                    # gettid
	syscall
	mov esi, eax
	mov edx, 5
	mov r10, r9
	mov eax, 297                    # rt_tgsigqueueinfo
	syscall
	test eax, eax
	js die
	ret
die:
	int3                            # SIGTRAP is blocked: it ends the process

	.balign 16
restorer:
	mov eax, 15                     # rt_sigreturn
	syscall
	int3                            # ends a system call that the tracer makes a thread run

path:	.asciz "/proc/self/mem"
	.balign 16
action:	.fill 64, 1, 0                  # SIG_DFL, and the action that makes this the handler
	.org 4096
table:
