package regset

import (
	"debug/elf"
	"strconv"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
)

// Place is the offset and size of a register in a note.
type Place struct {
	Reg  machine.DWARFReg
	At   int // offset in the registers of the note
	Size int // in bytes
}

// inTurn returns adjacent places for count registers with consecutive numbers.
func inTurn(first machine.DWARFReg, count, at, size int) []Place {
	list := make([]Place, count)
	for i := range list {
		list[i] = Place{first + machine.DWARFReg(i), at + i*size, size}
	}
	return list
}

// ppcVMX is NT_PPC_VMX of linux/elf.h, with the owner LINUX.
const ppcVMX = 0x100

// Note is a note of a core that contains registers, with the place of each register.
type Note struct {
	Owner  string
	Kind   elf.NType
	Places []Place
}

// Notes holds the notes of each architecture, called register sets by ptrace(2). The note of the general registers is first. The structs are from
// asm/ptrace.h, for x86-64 from asm/user.h. If a vector register contains a floating-point register, the note of floating-point registers holds only
// that part of the vector register.
var Notes = map[*machine.Arch][]Note{
	machine.AMD64: { // user_regs_struct, user_fpregs_struct
		{elfcore.OwnerCore, elf.NT_PRSTATUS, amd64General()},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(17, 16, 160, 16)},
	},
	machine.ARM64:   arm64Notes(machine.ARM64),
	machine.ARM64BE: arm64Notes(machine.ARM64BE),
	machine.PPC64:   ppc64Notes(machine.PPC64),
	machine.PPC64LE: ppc64Notes(machine.PPC64LE),
	machine.RISCV64: { // user_regs_struct, __riscv_d_ext_state
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(inTurn(machine.RISCV64.PC, 1, 0, 8), inTurn(1, 31, 8, 8)...)},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(32, 32, 0, 8)},
	},
	machine.S390X: { // s390_regs (the mask of the program status word is first), s390_fp_regs (fpc is first)
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(append(inTurn(machine.S390X.PC, 1, 8, 8), inTurn(0, 16, 16, 8)...), inTurn(48, 16, 144, 4)...)},
		{elfcore.OwnerCore, elf.NT_FPREGSET, s390xFloating()},
	},
}

// GeneralSize and FloatSize are the sizes of the sets of general and of floating-point registers: elf_gregset_t and elf_fpregset_t of asm/elf.h, in bytes.
var (
	GeneralSize = map[*machine.Arch]int{machine.AMD64: 27 * 8, machine.ARM64: 34 * 8, machine.ARM64BE: 34 * 8, machine.RISCV64: 32 * 8, machine.S390X: 27 * 8,
		machine.PPC64: 48 * 8, machine.PPC64LE: 48 * 8, machine.LOONG64: 45 * 8}
	FloatSize = map[*machine.Arch]int{machine.AMD64: 512, machine.ARM64: 528, machine.ARM64BE: 528, machine.RISCV64: 33 * 8, machine.S390X: 17 * 8,
		machine.PPC64: 33 * 8, machine.PPC64LE: 33 * 8}
)

// arm64Notes returns struct user_pt_regs, with pc after x0 to x30 and sp, and struct user_fpsimd_state.
func arm64Notes(a *machine.Arch) []Note {
	return []Note{
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(inTurn(0, 32, 0, 8), Place{a.PC, 32 * 8, 8})},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(64, 32, 0, 16)},
	}
}

// ppc64Notes returns struct pt_regs, in which msr and orig_gpr3 follow nip, and the register sets elf_fpregset_t and elf_vrregset_t of asm/elf.h.
func ppc64Notes(a *machine.Arch) []Note {
	return []Note{
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(inTurn(0, 32, 0, 8), Place{a.PC, 32 * 8, 8},
			Place{66, 35 * 8, 8}, Place{65, 36 * 8, 8}, Place{76, 37 * 8, 8})},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(32, 32, 0, 8)},
		{elfcore.OwnerLinux, ppcVMX, inTurn(77, 32, 0, 16)},
	}
}

func amd64General() []Place {
	var list []Place
	for i, reg := range []int{15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, -1, -1, 7} {
		if reg >= 0 { // orig_rax, cs and eflags have no DWARF numbers
			list = append(list, Place{machine.DWARFReg(reg), 8 * i, 8})
		}
	}
	return list
}

// s390xFloating returns the places of f0 to f15 in the order of their names. Their DWARF numbers have another order.
func s390xFloating() []Place {
	var list []Place
	for _, reg := range machine.S390X.Registers() {
		name := machine.S390X.RegisterName(reg)
		if n, err := strconv.Atoi(name[1:]); name[0] == 'f' && err == nil {
			list = append(list, Place{reg, 8 + 8*n, 8})
		}
	}
	return list
}
