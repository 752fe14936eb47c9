package patches_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A stub is code of a runtime to which patches jump, or which they call. It ends in a call of handler.
type stub struct {
	number int
	cfi    bool // its CFI describes it as a called function
	traits []string
	text   string // its code
	once   bool   // it switches to a single other stack, so only one frame of it can be active
}

func (s *stub) name() string { return fmt.Sprintf("stub%d", s.number) }

// A coder writes the assembly of a stub.
type coder struct {
	strings.Builder
	stub   *stub
	random *rand.Rand
	labels int
}

// line writes an instruction, with CFI if it moves the stack pointer down by moves bytes.
func (c *coder) line(moves int, format string, args ...any) {
	fmt.Fprintf(c, "\t"+format+"\n", args...)
	if c.stub.cfi && moves != 0 {
		fmt.Fprintf(c, "\t.cfi_adjust_cfa_offset %d\n", moves)
	}
}

func (c *coder) trait(name string) { c.stub.traits = append(c.stub.traits, name) }

func (p *program) randomStub(r *rand.Rand, number int) *stub {
	s := &stub{number: number, cfi: chance(r, 40)}
	c := &coder{stub: s, random: r}
	fmt.Fprintf(c, "\t.globl %s\n\t.type %s,%%function\n%s:\n", s.name(), s.name(), s.name())
	if s.cfi {
		c.WriteString("\t.cfi_startproc\n")
	}
	if p.machine == "arm64" {
		c.arm64()
	} else {
		c.amd64()
	}
	if s.cfi {
		c.WriteString("\t.cfi_endproc\n")
		c.trait("with CFI")
	} else {
		c.trait("without CFI")
	}
	fmt.Fprintf(c, "\t.size %s,.-%s\n", s.name(), s.name())
	s.text = c.String()
	return s
}

// scratch lists caller-saved registers, and kept lists callee-saved registers.
var (
	scratch = []string{"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"}
	kept    = []string{"rbx", "r12", "r13", "r14", "r15"}
)

// amd64 writes the code of a stub for x86-64.
func (c *coder) amd64() {
	r := c.random
	any := func() string { return pick(r, append(append([]string{"rbp"}, scratch...), kept...)...) }
	if chance(r, 6) {
		c.trait("switches stacks")
		c.stub.once, c.stub.cfi = true, false
		c.Reset()
		fmt.Fprintf(c, "\t.globl %s\n\t.type %s,%%function\n%s:\n", c.stub.name(), c.stub.name(), c.stub.name())
		switch r.IntN(2) {
		case 0:
			c.line(0, "mov %%rsp, saved%d(%%rip)", c.stub.number)
			c.line(0, "lea stack%d+65536(%%rip), %%rsp", c.stub.number)
			c.line(8, "push saved%d(%%rip)", c.stub.number)
		default:
			c.line(0, "mov %%rsp, %%rax")
			c.line(0, "lea stack%d+65536(%%rip), %%rsp", c.stub.number)
			c.line(8, "push %%rax")
		}
	}
	for range r.IntN(5) {
		c.labels++
		switch r.IntN(14) {
		case 0, 1, 2:
			for range 1 + r.IntN(4) {
				c.line(8, "push %%%s", any())
			}
		case 3:
			c.trait("pushes flags")
			c.line(8, "pushf")
		case 4:
			n := 8 * (1 + r.IntN(40))
			c.line(n, "sub $%d, %%rsp", n)
			c.line(0, "mov %%rax, (%%rsp)")
		case 5:
			c.line(128, "lea -128(%%rsp), %%rsp")
		case 6:
			c.line(0, "mov $%d, %%%s", r.IntN(1000), pick(r, scratch...))
		case 7:
			if chance(r, 50) {
				break
			}
			c.trait("changes a callee-saved register")
			reg := pick(r, kept...)
			if chance(r, 60) {
				c.line(8, "push %%%s", reg)
			}
			c.line(0, "mov $%d, %%%s", r.IntN(1000), strings.Replace(reg, "rbx", "rbx", 1))
		case 8:
			c.trait("branches")
			c.line(0, "cmpq $0, zero(%%rip)")
			c.line(0, "%s .L%d_%d", pick(r, "je", "jne"), c.stub.number, c.labels)
			c.line(0, "mov $3, %%eax")
			fmt.Fprintf(c, ".L%d_%d:\n", c.stub.number, c.labels)
		case 9:
			c.trait("calls inside")
			c.line(8, "push %%rdi")
			c.line(0, "call stub_back")
			if chance(r, 50) {
				c.line(-8, "pop %%rdi")
			}
		case 10:
			c.trait("pops again")
			c.line(8, "push %%rax")
			c.line(8, "push %%rcx")
			c.line(-8, "add $8, %%rsp")
		case 11:
			if c.stub.cfi || chance(r, 50) {
				break
			}
			c.trait("aligns the stack")
			c.line(0, "mov %%rsp, %%rax")
			c.line(0, "and $-64, %%rsp")
			c.line(0, "push %%rax")
			c.line(0, "push %%rax")
		case 12:
			c.trait("stores to the stack")
			c.line(16, "sub $16, %%rsp")
			c.line(0, "movq $5, 8(%%rsp)")
			c.line(0, "movq $6, (%%rsp)")
		case 13:
			if c.stub.cfi || chance(r, 50) {
				break
			}
			c.trait("has a frame")
			c.line(0, "push %%rbp")
			c.line(0, "mov %%rsp, %%rbp")
			c.line(0, "sub $64, %%rsp")
		}
	}
	switch r.IntN(8) {
	case 0:
		c.trait("calls through memory")
		c.line(0, "call *handlerslot(%%rip)")
	case 1:
		c.trait("calls a register")
		c.line(0, "mov $handler, %%eax")
		c.line(0, "call *%%rax")
	case 2:
		c.trait("jumps to common code")
		c.line(8, "push $%d", r.IntN(100))
		c.line(0, "jmp stub_common")
	default:
		c.line(0, "call handler")
	}
	c.line(0, "ud2")
}

// arm64 writes the code of a stub for arm64.
func (c *coder) arm64() {
	r := c.random
	if chance(r, 70) {
		c.trait("saves the link register")
		c.line(16, "stp x29, x30, [sp, #-16]!")
		if c.stub.cfi {
			c.WriteString("\t.cfi_offset 29, -16\n\t.cfi_offset 30, -8\n")
		}
	}
	for range r.IntN(4) {
		switch r.IntN(5) {
		case 0, 1:
			n := 2 * r.IntN(8)
			c.line(16, "stp x%d, x%d, [sp, #-16]!", n, n+1)
		case 2:
			n := 16 * (1 + r.IntN(20))
			c.line(n, "sub sp, sp, #%d", n)
		case 3:
			c.line(0, "mov x%d, #%d", r.IntN(18), r.IntN(1000))
		case 4:
			if c.stub.cfi || chance(r, 50) {
				break
			}
			c.trait("has a frame")
			c.line(0, "stp x29, x30, [sp, #-16]!")
			c.line(0, "mov x29, sp")
		}
	}
	if chance(r, 20) {
		c.trait("calls a register")
		c.line(0, "adrp x16, handler")
		c.line(0, "add x16, x16, :lo12:handler")
		c.line(0, "blr x16")
	} else {
		c.line(0, "bl handler")
	}
	c.line(0, "brk #0")
}

// assembly returns the text of all stubs of the program. For each there is also a thunk, and a data slot with the stub's address.
func (p *program) assembly() string {
	var b strings.Builder
	b.WriteString("\t.text\n")
	for _, s := range p.stubs {
		b.WriteString(s.text)
		if p.machine == "amd64" {
			fmt.Fprintf(&b, "\t.type thunk%d,@function\n\t.globl thunk%d\nthunk%d:\n\tjmp *slot%d(%%rip)\n\t.size thunk%d,.-thunk%d\n", s.number, s.number, s.number, s.number, s.number, s.number)
		} else {
			fmt.Fprintf(&b, "\t.type thunk%d,%%function\n\t.globl thunk%d\nthunk%d:\n\tadrp x16, slot%d\n\tldr x16, [x16, :lo12:slot%d]\n\tbr x16\n\t.size thunk%d,.-thunk%d\n", s.number, s.number, s.number, s.number, s.number, s.number, s.number)
		}
	}
	if p.machine == "amd64" {
		b.WriteString("\t.type stub_back,@function\nstub_back:\n\tret\n\t.size stub_back,.-stub_back\n")
		b.WriteString("\t.type stub_common,@function\nstub_common:\n\tpush %rdi\n\tpush %rsi\n\tmov %rsp, %rdi\n\tcall handler\n\tud2\n\t.size stub_common,.-stub_common\n")
	}
	b.WriteString("\t.data\n\t.balign 8\n\t.globl handlerslot\nhandlerslot:\n\t.quad handler\n")
	for _, s := range p.stubs {
		fmt.Fprintf(&b, "\t.globl slot%d\nslot%d:\n\t.quad %s\n", s.number, s.number, s.name())
	}
	b.WriteString("\t.bss\n\t.balign 16\n")
	for _, s := range p.stubs {
		if s.once {
			fmt.Fprintf(&b, "saved%d:\n\t.skip 16\nstack%d:\n\t.skip 65536\n", s.number, s.number)
		}
	}
	b.WriteString("\t.section .note.GNU-stack,\"\",%progbits\n")
	return b.String()
}
