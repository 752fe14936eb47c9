package ptrace

import (
	"debug/elf"
	"strconv"

	"reframe/deopt/machine"
	"reframe/ptrace/elfcore"
	"reframe/ptrace/xsave"
)

// noted is where a note has a register.
type noted struct {
	reg  machine.DWARFReg
	at   int // in the registers that the note holds
	size int // bytes
}

// inTurn places registers with consecutive numbers one after the other.
func inTurn(first machine.DWARFReg, count, at, size int) []noted {
	list := make([]noted, count)
	for i := range list {
		list[i] = noted{first + machine.DWARFReg(i), at + i*size, size}
	}
	return list
}

// ntPPCVMX is NT_PPC_VMX of linux/elf.h, of the owner LINUX.
const ntPPCVMX = 0x100

// coreNote says which note it is that holds registers, and where.
type coreNote struct {
	owner  string
	kind   elf.NType
	places []noted
}

// coreRegisters are the notes of each architecture, the first one that of the general
// registers: what ptrace(2) calls its register sets. The structs are those of asm/ptrace.h,
// or of asm/user.h for x86-64; those of floating-point registers that a vector register is wider
// than hold the part of the former alone.
var coreRegisters = map[*machine.Arch][]coreNote{
	machine.AMD64: { // struct user_regs_struct, struct user_fpregs_struct
		{elfcore.OwnerCore, elf.NT_PRSTATUS, amd64General()},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(17, 16, 160, 16)},
	},
	machine.ARM64:   arm64Notes(machine.ARM64),
	machine.ARM64BE: arm64Notes(machine.ARM64BE),
	machine.PPC64:   ppc64Notes(machine.PPC64),
	machine.PPC64LE: ppc64Notes(machine.PPC64LE),
	machine.RISCV64: { // struct user_regs_struct, struct __riscv_d_ext_state
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(inTurn(machine.RISCV64.PC, 1, 0, 8), inTurn(1, 31, 8, 8)...)},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(32, 32, 0, 8)},
	},
	machine.S390X: { // s390_regs (the mask of the program status word comes first), s390_fp_regs (fpc does)
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(append(inTurn(machine.S390X.PC, 1, 8, 8), inTurn(0, 16, 16, 8)...), inTurn(48, 16, 144, 4)...)},
		{elfcore.OwnerCore, elf.NT_FPREGSET, s390xFloating()},
	},
}

// arm64Notes are struct user_pt_regs, pc after x0 to x30 and sp, and struct user_fpsimd_state.
func arm64Notes(a *machine.Arch) []coreNote {
	return []coreNote{
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(inTurn(0, 32, 0, 8), noted{a.PC, 32 * 8, 8})},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(64, 32, 0, 16)},
	}
}

// ppc64Notes are struct pt_regs, in which msr and orig_gpr3 follow nip, and the register sets
// elf_fpregset_t and elf_vrregset_t of asm/elf.h.
func ppc64Notes(a *machine.Arch) []coreNote {
	return []coreNote{
		{elfcore.OwnerCore, elf.NT_PRSTATUS, append(inTurn(0, 32, 0, 8), noted{a.PC, 32 * 8, 8},
			noted{66, 35 * 8, 8}, noted{65, 36 * 8, 8}, noted{76, 37 * 8, 8})},
		{elfcore.OwnerCore, elf.NT_FPREGSET, inTurn(32, 32, 0, 8)},
		{elfcore.OwnerLinux, ntPPCVMX, inTurn(77, 32, 0, 16)},
	}
}

func amd64General() []noted {
	var list []noted
	for i, reg := range []int{15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, -1, -1, 7} {
		if reg >= 0 { // orig_rax, cs and eflags are no registers of DWARF's
			list = append(list, noted{machine.DWARFReg(reg), 8 * i, 8})
		}
	}
	return list
}

// s390xFloating has f0 to f15 in the order of their names, which that of their numbers is not.
func s390xFloating() []noted {
	var list []noted
	for _, reg := range machine.S390X.Registers() {
		name := machine.S390X.RegisterName(reg)
		if n, err := strconv.Atoi(name[1:]); name[0] == 'f' && err == nil {
			list = append(list, noted{reg, 8 + 8*n, 8})
		}
	}
	return list
}

// maxRegisterNote is more than any of these notes has.
const maxRegisterNote = 4 << 10

// readRegisters reads a note that may hold registers: of a new thread, or more of those of the
// thread before.
func (c *core) readRegisters(n elfcore.Note) {
	if n.Owner == elfcore.OwnerLinux && n.Kind == ntX86XState && c.target.arch == machine.AMD64 {
		if len(c.target.threads) > 0 {
			c.vectors = append(c.vectors, vectorNote{len(c.target.threads) - 1, n})
		}
		return
	}
	if n.Owner == elfcore.OwnerLinux && n.Kind == ntX86Layout && c.target.arch == machine.AMD64 {
		c.readLayout(n)
		return
	}
	if n.Owner == elfcore.OwnerCore && n.Kind == elf.NT_PRSTATUS {
		b, ok := n.Read(statusRegisters, statusRegisters)
		if !ok || len(c.target.threads) == maxThreads {
			return
		}
		c.target.threads = append(c.target.threads, machine.Thread{
			ID: int(int32(c.header.Order.Uint32(b[statusPID:]))), Missing: "the registers of this core are not known"})
	}
	for i, known := range coreRegisters[c.target.arch] {
		if known.owner != n.Owner || known.kind != n.Kind {
			continue
		}
		skip := 0
		if i == 0 {
			skip = statusRegisters
		}
		c.setRegisters(n, known.places, skip, i == 0)
	}
}

// setRegisters gives the newest thread the registers of a note that has them after skip bytes.
func (c *core) setRegisters(n elfcore.Note, places []noted, skip int, general bool) {
	if len(c.target.threads) == 0 {
		return
	}
	th := &c.target.threads[len(c.target.threads)-1]
	last := places[0]
	for _, p := range places {
		if p.at > last.at {
			last = p
		}
	}
	b, ok := n.Read(int64(skip+last.at+last.size), maxRegisterNote)
	if !ok {
		return
	}
	if general {
		th.Registers, th.Missing = machine.NewRegisters(c.target.arch, "not in the core"), ""
	}
	if th.Registers == nil {
		return
	}
	for _, p := range places {
		th.Registers.Set(p.reg, b[skip+p.at:][:p.size])
	}
}

// vectorNote is an XSAVE area of a core, and whose it is.
type vectorNote struct {
	thread int
	area   elfcore.Note
}

// readVectors reads the XSAVE areas: of x86-64's vector registers more than xmm. Where in an area they lie the core tells behind
// all threads, where it does.
func (c *core) readVectors() {
	for _, v := range c.vectors {
		regs := c.target.threads[v.thread].Registers
		b, ok := v.area.Read(xsave.Legacy, maxXsave)
		if !ok || regs == nil {
			continue
		}
		area := xsave.Area{Bytes: b}
		if c.layout != nil {
			area.Layout = *c.layout
		} else {
			area.Layout, area.Why = xsave.Find(b, c.frame)
		}
		setVectors(regs, &area)
	}
	c.vectors = nil
}

// readLayout reads where registers lie in the XSAVE areas of the core.
func (c *core) readLayout(n elfcore.Note) {
	b, ok := n.Read(0, xsave.MaxNote+1)
	if !ok || c.layout != nil {
		return
	}
	layout, err := xsave.Parse(b)
	if err != nil {
		c.target.Notes = append(c.target.Notes, err.Error())
	}
	c.layout = &layout // none, where it is corrupt: the tables are for cores that say nothing
}
