package unwind

// line is an instruction and the expected row before it; row is "" if no path reaches the instruction.
type line struct{ code, text, row string }

// functionsRead lists functions with the expected state before each instruction: the CFA, and the places of the caller's rbx and rbp. A place is
// same, an offset from the CFA, a register plus an offset in brackets, another register, or unknown.
var functionsRead = []struct {
	name  string
	lines []line
}{
	{"the usual frame", []line{
		{"55", "pushq %rbp", "rsp+8 rbx same rbp same"},
		{"48 89 e5", "movq %rsp, %rbp", "rsp+16 rbx same rbp -16"},
		{"53", "pushq %rbx", "rsp+16 rbx same rbp -16"},
		{"48 83 ec 18", "subq $0x18, %rsp", "rsp+24 rbx -24 rbp -16"},
		{"e8 fb 00 00 00", "callq 0x109", "rsp+48 rbx -24 rbp -16"},
		{"48 89 c3", "movq %rax, %rbx", "rsp+48 rbx -24 rbp -16"},
		{"48 83 c4 18", "addq $0x18, %rsp", "rsp+48 rbx -24 rbp -16"},
		{"5b", "popq %rbx", "rsp+24 rbx -24 rbp -16"},
		{"5d", "popq %rbp", "rsp+16 rbx same rbp -16"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"a call that does not come back, before the code that asks Go for more stack", []line{
		{"49 3b 66 10", "cmpq 0x10(%r14), %rsp", "rsp+8 rbx same rbp same"},
		{"76 1d", "jbe 0x23", "rsp+8 rbx same rbp same"},
		{"55", "pushq %rbp", "rsp+8 rbx same rbp same"},
		{"48 89 e5", "movq %rsp, %rbp", "rsp+16 rbx same rbp -16"},
		{"48 83 ec 10", "subq $0x10, %rsp", "rsp+16 rbx same rbp -16"},
		{"85 c0", "testl %eax, %eax", "rsp+32 rbx same rbp -16"},
		{"75 0b", "jne 0x1d", "rsp+32 rbx same rbp -16"},
		{"e8 fb 00 00 00", "callq 0x112", "rsp+32 rbx same rbp -16"},
		{"48 83 c4 10", "addq $0x10, %rsp", "rsp+32 rbx same rbp -16"},
		{"5d", "popq %rbp", "rsp+16 rbx same rbp -16"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
		{"e8 fb 00 00 00", "callq 0x11d", "rsp+32 rbx same rbp -16"},
		{"90", "nop", ""},
		{"48 89 44 24 08", "movq %rax, 0x8(%rsp)", "rsp+8 rbx same rbp same"},
		{"e8 fb 00 00 00", "callq 0x128", "rsp+8 rbx same rbp same"},
		{"48 8b 44 24 08", "movq 0x8(%rsp), %rax", "rsp+8 rbx same rbp same"},
		{"eb cc", "jmp 0x0", "rsp+8 rbx same rbp same"},
	}},
	{"enter and leave", []line{
		{"c8 20 00 00", "enter $0x20, $0x0", "rsp+8 rbx same rbp same"},
		{"48 29 c4", "subq %rax, %rsp", "rsp+48 rbx same rbp -16"},
		{"51", "pushq %rcx", "rbp+16 rbx same rbp -16"},
		{"c9", "leave", "rbp+16 rbx same rbp -16"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"a loop that touches pages", []line{
		{"4c 8d 9c 24 00 b0 ff ff", "leaq -0x5000(%rsp), %r11", "rsp+8 rbx same rbp same"},
		{"48 81 ec 00 10 00 00", "subq $0x1000, %rsp", "r11+20488 rbx same rbp same"},
		{"48 83 0c 24 00", "orq $0x0, (%rsp)", "r11+20488 rbx same rbp same"},
		{"4c 39 dc", "cmpq %r11, %rsp", "r11+20488 rbx same rbp same"},
		{"75 ef", "jne 0x8", "r11+20488 rbx same rbp same"},
		{"48 83 ec 10", "subq $0x10, %rsp", "rsp+20488 rbx same rbp same"},
		{"48 81 c4 10 50 00 00", "addq $0x5010, %rsp", "rsp+20504 rbx same rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"realigned by gcc, with an argument on the stack", []line{
		{"4c 8d 54 24 08", "leaq 0x8(%rsp), %r10", "rsp+8 rbx same rbp same"},
		{"48 83 e4 c0", "andq $-0x40, %rsp", "rsp+8 rbx same rbp same"},
		{"41 ff 72 f8", "pushq -0x8(%r10)", "r10+0 rbx same rbp same"},
		{"55", "pushq %rbp", "r10+0 rbx same rbp same"},
		{"48 89 e5", "movq %rsp, %rbp", "r10+0 rbx same rbp [rsp+0]"},
		{"41 52", "pushq %r10", "r10+0 rbx same rbp [rsp+0]"},
		{"53", "pushq %rbx", "r10+0 rbx same rbp [rsp+8]"},
		{"48 83 ec 40", "subq $0x40, %rsp", "r10+0 rbx [rsp+0] rbp [rsp+16]"},
		{"e8 fb 00 00 00", "callq 0x118", "r10+0 rbx [rsp+64] rbp [rsp+80]"},
		{"48 8d 65 f0", "leaq -0x10(%rbp), %rsp", "[rsp+72]+0 rbx [rsp+64] rbp [rsp+80]"},
		{"5b", "popq %rbx", "[rsp+8]+0 rbx [rsp+0] rbp [rsp+16]"},
		{"41 5a", "popq %r10", "[rsp+0]+0 rbx same rbp [rsp+8]"},
		{"5d", "popq %rbp", "r10+0 rbx same rbp [rsp+0]"},
		{"49 8d 62 f8", "leaq -0x8(%r10), %rsp", "r10+0 rbx same rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"pushed when it was no more the caller's", []line{
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+8 rbx same rbp same"},
		{"53", "pushq %rbx", "rsp+8 rbx ? rbp same"},
		{"5b", "popq %rbx", "rsp+16 rbx ? rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"saved and written over in part", []line{
		{"53", "pushq %rbx", "rsp+8 rbx same rbp same"},
		{"89 44 24 04", "movl %eax, 0x4(%rsp)", "rsp+16 rbx -16 rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+16 rbx same rbp same"},
		{"5b", "popq %rbx", "rsp+16 rbx ? rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"saved in the red zone", []line{
		{"48 89 5c 24 f8", "movq %rbx, -0x8(%rsp)", "rsp+8 rbx same rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+8 rbx same rbp same"},
		{"48 8b 5c 24 f8", "movq -0x8(%rsp), %rbx", "rsp+8 rbx -16 rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"saved below the stack pointer, where a call writes", []line{
		{"48 89 5c 24 f8", "movq %rbx, -0x8(%rsp)", "rsp+8 rbx same rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+8 rbx same rbp same"},
		{"e8 fb 00 00 00", "callq 0x10a", "rsp+8 rbx -16 rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"saved on one of two ways", []line{
		{"48 83 ec 10", "subq $0x10, %rsp", "rsp+8 rbx same rbp same"},
		{"85 ff", "testl %edi, %edi", "rsp+24 rbx same rbp same"},
		{"74 05", "je 0xd", "rsp+24 rbx same rbp same"},
		{"48 89 5c 24 08", "movq %rbx, 0x8(%rsp)", "rsp+24 rbx same rbp same"},
		{"bb 01 00 00 00", "movl $0x1, %ebx", "rsp+24 rbx same rbp same"},
		{"48 83 c4 10", "addq $0x10, %rsp", "rsp+24 rbx ? rbp same"},
		{"c3", "retq", "rsp+8 rbx ? rbp same"},
	}},
	{"a call that does not come back", []line{
		{"85 ff", "testl %edi, %edi", "rsp+8 rbx same rbp same"},
		{"74 09", "je 0xd", "rsp+8 rbx same rbp same"},
		{"48 83 ec 08", "subq $0x8, %rsp", "rsp+8 rbx same rbp same"},
		{"e8 fb 00 00 00", "callq 0x108", "rsp+16 rbx same rbp same"},
		{"b8 01 00 00 00", "movl $0x1, %eax", "rsp+8 rbx same rbp same"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"a jump through a table", []line{
		{"53", "pushq %rbx", "rsp+8 rbx same rbp same"},
		{"ff 24 f8", "jmpq *(%rax,%rdi,8)", "rsp+16 rbx -16 rbp same"},
		{"5b", "popq %rbx", ""},
		{"c3", "retq", ""},
	}},
	{"half of the stack pointer", []line{
		{"89 ec", "movl %ebp, %esp", "rsp+8 rbx same rbp same"},
		{"90", "nop", "?"},
		{"c3", "retq", "?"},
	}},
	{"registers change places", []line{
		{"48 87 eb", "xchgq %rbx, %rbp", "rsp+8 rbx same rbp same"},
		{"48 89 e0", "movq %rsp, %rax", "rsp+8 rbx in rbp rbp in rbx"},
		{"31 e4", "xorl %esp, %esp", "rsp+8 rbx in rbp rbp in rbx"},
		{"48 89 c4", "movq %rax, %rsp", "rax+8 rbx in rbp rbp in rbx"},
		{"48 87 eb", "xchgq %rbx, %rbp", "rsp+8 rbx in rbp rbp in rbx"},
		{"c3", "retq", "rsp+8 rbx same rbp same"},
	}},
	{"traps end it", []line{
		{"83 ff 01", "cmpl $0x1, %edi", "rsp+8 rbx same rbp same"},
		{"77 03", "ja 0x8", "rsp+8 rbx same rbp same"},
		{"cc", "int3", "rsp+8 rbx same rbp same"},
		{"0f 0b", "ud2", ""},
		{"f4", "hlt", "rsp+8 rbx same rbp same"},
		{"c3", "retq", ""},
	}},
	{"nothing that is known to be code", []line{
		{"53", "pushq %rbx", "rsp+8 rbx same rbp same"},
		{"0f c7 f8", "rdseedl %eax", "rsp+16 rbx -16 rbp same"},
		{"c3", "retq", ""},
	}},
}

// returnsRead lists pieces of code with the row that reading from their start to the returns must give.
var returnsRead = []struct {
	name, code string
	row        string // or an error
	certain    bool
}{
	// addq $0x8, %rsp; popq %rbx; popq %rbp; retq
	{"an epilogue", "48 83 c4 08 5b 5d c3", "rsp+32 rbx -24 rbp -16", true},
	// leave; retq
	{"leave", "c9 c3", "rbp+16 rbx same rbp -16", true},
	// leaq -0x8(%rbp), %rsp; popq %rbx; popq %rbp; retq
	{"from the frame pointer", "48 8d 65 f8 5b 5d c3", "rbp+16 rbx -24 rbp -16", true},
	// movq -0x8(%rbp), %r10; leave; leaq -0x8(%r10), %rsp; retq
	{"realigned by gcc", "4c 8b 55 f8 c9 49 8d 62 f8 c3", "[rbp-8]+0 rbx same rbp [rbp+0]", true},
	// pushq %rbp; movq %rsp, %rbp; pushq %rbx; popq %rbx; leave; retq
	{"from the first instruction", "55 48 89 e5 53 5b c9 c3", "rsp+8 rbx same rbp same", true},
	// pushq %rbx; movl $0x1, %ebx; leaq -0x8(%rbp), %rsp; popq %rbx; popq %rbp; retq
	{"before it is saved where the frame pointer leads", "53 bb 01 00 00 00 48 8d 65 f8 5b 5d c3", "rbp+16 rbx ? rbp -16", true},
	// callq 0x100; addq $0x8, %rsp; retq
	{"behind a call", "e8 fb 00 00 00 48 83 c4 08 c3", "rsp+16 rbx same rbp same", false},
	// testl %edi, %edi; je 0x9; movq 0x8(%rsp), %rbx; addq $0x18, %rsp; retq
	{"two returns that agree, but not on rbx", "85 ff 74 05 48 8b 5c 24 08 48 83 c4 18 c3", "rsp+32 rbx ? rbp same", true},
	// testl %edi, %edi; je 0x5; retq; popq %rax; retq
	{"two returns that do not agree", "85 ff 74 01 c3 58 c3", "the returns that it leads to do not agree where its frame ends: that at 0x1006 is one of them", false},
	// callq 0x100; retq
	{"a call that is the last instruction", "e8 fb 00 00 00 c3", "its calls lead to returns that are not of this frame", false},
	// callq 0x100; pushq %rax; callq 0x106; popq %rax; popq %rax; retq
	{"two calls that cannot both be aligned", "e8 fb 00 00 00 50 e8 fb 00 00 00 58 58 c3", "it leads to no return", false},
	// jmp 0x0; retq
	{"an endless loop", "eb fe c3", "it leads to no return", false},
	// ud2; retq
	{"a trap", "0f 0b c3", "it leads to no return", false},
	// pushq %rbx; retq
	{"a jump to an address that was pushed", "53 c3", "it leads to no return", false},
	// movq %rax, (%rsp); retq
	{"a jump to an address that was put where the return address is", "48 89 04 24 c3", "it leads to no return", false},
	// testq %rax, %rax; je 0xa; addq $0x18, %rsp; retq; pushq %rbx; retq
	{"a return and such a jump", "48 85 c0 74 05 48 83 c4 18 c3 53 c3", "rsp+32 rbx same rbp same", true},
	// jmpq *%rax; retq
	{"a jump through a register", "ff e0 c3", "it leads to no return", false},
	// movq 0x8(%rdx), %rsp; retq
	{"another stack", "48 8b 62 08 c3", "[rdx+8]+8 rbx same rbp same", true},
	// subq %rax, %rsp; retq
	{"a stack of run-time size", "48 29 c4 c3", "the stack pointer at the return at 0x1003 is unknown", false},
	// andq $-0x10, %rsp; retq
	{"realigned, and not given back", "48 83 e4 f0 c3", "the stack pointer at the return at 0x1004 is unknown", false},
}
