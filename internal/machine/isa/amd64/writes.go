package amd64

import (
	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// Set is a set of general registers: bit n is DWARF register n.
type Set uint16

// Has reports whether reg is in the set.
func (s Set) Has(reg machine.DWARFReg) bool { return reg < 16 && s>>reg&1 != 0 }

// Of returns the set of some general registers.
func Of(regs ...machine.DWARFReg) Set {
	var s Set
	for _, reg := range regs {
		s |= 1 << reg
	}
	return s
}

// NotKept holds the general registers that are caller-saved in the C convention (System V ABI, AMD64 supplement, §3.2.1). Code that runs before the
// function, such as a PLT stub, may also change them.
var NotKept = func() (s Set) {
	for reg := range machine.DWARFReg(16) {
		if !machine.AMD64.Preserved(reg) {
			s |= Of(reg)
		}
	}
	return s
}()

// These are DWARF numbers of registers.
const (
	rax, rdx, rcx, rbx = 0, 1, 2, 3
	rsi, rdi, rbp, rsp = 4, 5, 6, 7
	r11                = 11
)

// Writes returns the general registers that an instruction may write, fully or in part. It does not include registers that a callee, a system call or a
// handler writes. Operands are in Intel's order, the destination first. An instruction without an entry below writes at most the first operand.
func Writes(inst x86asm.Inst) Set {
	s := implicit[inst.Op]
	if !readsFirst[inst.Op] {
		s |= operand(inst.Args[0])
	}
	switch inst.Op {
	case x86asm.XCHG, x86asm.XADD, x86asm.MULX:
		s |= operand(inst.Args[1])
	case x86asm.IMUL, x86asm.MUL, x86asm.DIV, x86asm.IDIV:
		if inst.Args[1] == nil { // the form with one operand only reads it
			return Of(rax, rdx)
		}
	}
	return s
}

// operand returns the set with the register that arg names, or the empty set.
func operand(arg x86asm.Arg) Set {
	if r, ok := arg.(x86asm.Reg); ok {
		if reg, _, ok := Register(r); ok {
			return Of(reg)
		}
	}
	return 0
}

// Stores returns the memory that an instruction may write through its first operand, and the number of bytes. For a repeated instruction this is the first
// iteration. ok is false if the instruction writes no memory.
func Stores(inst x86asm.Inst) (at x86asm.Mem, size int, ok bool) {
	at, ok = inst.Args[0].(x86asm.Mem)
	if !ok || readsFirst[inst.Op] {
		return x86asm.Mem{}, 0, false
	}
	size = inst.MemBytes
	if size == 0 { // x86asm omits the size for these instructions
		switch inst.Op {
		case x86asm.FSTP, x86asm.FBSTP:
			size = 10
		case x86asm.FXSAVE, x86asm.FXSAVE64:
			size = 512
		case x86asm.FNSTENV:
			size = 28
		case x86asm.FNSAVE:
			size = 108
		default:
			size = 8 // string instructions
		}
	}
	return at, size, true
}

// readsFirst lists instructions that only read their first operand.
var readsFirst = ops(
	x86asm.BOUND, x86asm.BT, x86asm.CALL, x86asm.CLFLUSH, x86asm.CMP, x86asm.CMPSB, x86asm.CMPSD, x86asm.CMPSQ, x86asm.CMPSW,
	x86asm.FBLD, x86asm.FLD, x86asm.FLDCW, x86asm.FLDENV, x86asm.FRSTOR, x86asm.FXRSTOR, x86asm.FXRSTOR64, x86asm.INVLPG,
	x86asm.JMP, x86asm.LCALL, x86asm.LDMXCSR, x86asm.LJMP, x86asm.NOP, x86asm.OUT, x86asm.PREFETCHNTA, x86asm.PREFETCHT0, x86asm.PREFETCHT1, x86asm.PREFETCHT2,
	x86asm.PREFETCHW, x86asm.PUSH, x86asm.TEST, x86asm.XRSTOR, x86asm.XRSTOR64,
)

// implicit maps instructions to the registers that they write without naming them.
var implicit = map[x86asm.Op]Set{
	x86asm.CALL: Of(rsp), x86asm.LCALL: Of(rsp), x86asm.RET: Of(rsp), x86asm.LRET: Of(rsp),
	x86asm.PUSH: Of(rsp), x86asm.PUSHF: Of(rsp), x86asm.PUSHFQ: Of(rsp),
	x86asm.POP: Of(rsp), x86asm.POPF: Of(rsp), x86asm.POPFQ: Of(rsp),
	x86asm.ENTER: Of(rsp, rbp), x86asm.LEAVE: Of(rsp, rbp),
	x86asm.IRET: Of(rsp), x86asm.IRETD: Of(rsp), x86asm.IRETQ: Of(rsp), x86asm.SYSEXIT: Of(rsp),
	x86asm.SYSCALL: Of(rax, rcx, r11), x86asm.SYSENTER: Of(rax, rsp), x86asm.INT: Of(rax),

	x86asm.CBW: Of(rax), x86asm.CWDE: Of(rax), x86asm.CDQE: Of(rax),
	x86asm.CWD: Of(rdx), x86asm.CDQ: Of(rdx), x86asm.CQO: Of(rdx),
	x86asm.CMPXCHG: Of(rax), x86asm.CMPXCHG8B: Of(rax, rdx), x86asm.CMPXCHG16B: Of(rax, rdx),
	x86asm.CPUID: Of(rax, rbx, rcx, rdx), x86asm.LAHF: Of(rax), x86asm.XLATB: Of(rax),
	x86asm.RDMSR: Of(rax, rdx), x86asm.RDPMC: Of(rax, rdx), x86asm.XGETBV: Of(rax, rdx),
	x86asm.RDTSC: Of(rax, rdx), x86asm.RDTSCP: Of(rax, rcx, rdx), x86asm.XBEGIN: Of(rax),
	x86asm.PCMPESTRI: Of(rcx), x86asm.PCMPISTRI: Of(rcx), x86asm.VPCMPESTRI: Of(rcx), x86asm.VPCMPISTRI: Of(rcx),
	x86asm.LOOP: Of(rcx), x86asm.LOOPE: Of(rcx), x86asm.LOOPNE: Of(rcx),

	// With a REP prefix these also count rcx down.
	x86asm.MOVSB: Of(rcx, rsi, rdi), x86asm.MOVSW: Of(rcx, rsi, rdi), x86asm.MOVSQ: Of(rcx, rsi, rdi),
	x86asm.CMPSB: Of(rcx, rsi, rdi), x86asm.CMPSW: Of(rcx, rsi, rdi), x86asm.CMPSQ: Of(rcx, rsi, rdi),
	x86asm.MOVSD: Of(rcx, rsi, rdi), x86asm.CMPSD: Of(rcx, rsi, rdi),
	x86asm.STOSB: Of(rcx, rdi), x86asm.STOSW: Of(rcx, rdi), x86asm.STOSD: Of(rcx, rdi), x86asm.STOSQ: Of(rcx, rdi),
	x86asm.SCASB: Of(rcx, rdi), x86asm.SCASW: Of(rcx, rdi), x86asm.SCASD: Of(rcx, rdi), x86asm.SCASQ: Of(rcx, rdi),
	x86asm.LODSB: Of(rax, rcx, rsi), x86asm.LODSW: Of(rax, rcx, rsi), x86asm.LODSD: Of(rax, rcx, rsi), x86asm.LODSQ: Of(rax, rcx, rsi),
	x86asm.INSB: Of(rcx, rdi), x86asm.INSW: Of(rcx, rdi), x86asm.INSD: Of(rcx, rdi),
	x86asm.OUTSB: Of(rcx, rsi), x86asm.OUTSW: Of(rcx, rsi), x86asm.OUTSD: Of(rcx, rsi),
}

func ops(list ...x86asm.Op) map[x86asm.Op]bool {
	m := make(map[x86asm.Op]bool, len(list))
	for _, op := range list {
		m[op] = true
	}
	return m
}
