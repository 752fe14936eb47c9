package ptrace

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"reframe/deopt/machine"
	"reframe/ptrace/elfcore"
	"reframe/ptrace/guard"
	"reframe/ptrace/system"
	"reframe/ptrace/xsave"
)

// arch is that of the processes that this build can look at.
var arch = hostArch()

func hostArch() *machine.Arch {
	a, _ := machine.ByName(runtime.GOARCH)
	if registerSets[a] != nil {
		return a
	}
	if guard.Supported {
		panic("ptrace is built for processes of " + runtime.GOARCH + ", of which it has no registerSets")
	}
	return machine.AMD64 // whose processes this build cannot look at either
}

// registerSet is what ptrace(2) hands out at once (PTRACE_GETREGSET), and what cores have as a note.
type registerSet struct {
	owner string
	kind  elf.NType
	room  int // bytes
}

// Notes of cores that linux/elf.h names.
const (
	ntX86XState     = 0x202 // NT_X86_XSTATE
	ntX86Layout     = 0x205 // NT_X86_XSAVE_LAYOUT
	ntARMTLS        = 0x401 // NT_ARM_TLS
	ntARMSystemCall = 0x404 // NT_ARM_SYSTEM_CALL
	ntARMPACMask    = 0x406 // NT_ARM_PAC_MASK
)

// An XSAVE area larger than this has never been seen; AMX makes it 11 KiB.
const (
	maxXsave  = 1 << 16
	xsaveRoom = 16 << 10
)

// registerSets are those that a capture reads, the first one that of the general registers. A kernel or a
// processor may be without any but the first.
var registerSets = map[*machine.Arch][]registerSet{
	machine.AMD64: { // struct user_regs_struct, an XSAVE area in its standard form
		{elfcore.OwnerCore, elf.NT_PRSTATUS, 27 * 8},
		{elfcore.OwnerLinux, ntX86XState, xsaveRoom},
	},
	machine.ARM64: { // struct user_pt_regs, struct user_fpsimd_state, tpidr_el0 and tpidr2_el0, an int, struct user_pac_mask
		{elfcore.OwnerCore, elf.NT_PRSTATUS, 34 * 8},
		{elfcore.OwnerCore, elf.NT_FPREGSET, 528},
		{elfcore.OwnerLinux, ntARMTLS, 16},
		{elfcore.OwnerLinux, ntARMSystemCall, 4},
		{elfcore.OwnerLinux, ntARMPACMask, 16},
	},
}

// rawRegisters is what the kernel hands out for one thread, as it came: the
// stop is kept short by reading it later.
type rawRegisters struct {
	arch *machine.Arch
	sets [][]byte // as registerSets has them; nil where there is none
}

// newRawRegisters makes room, so that the stop does not have to.
func newRawRegisters(a *machine.Arch) rawRegisters {
	r := rawRegisters{arch: a}
	for _, set := range registerSets[a] {
		r.sets = append(r.sets, make([]byte, set.room))
		touch(r.sets[len(r.sets)-1])
	}
	return r
}

// touch makes the kernel back new memory with pages now: while a process stands still that would take longer than to fill them.
func touch(b []byte) {
	for i := 0; i < len(b); i += elfcore.Page {
		b[i] = 0
	}
}

// guardRegisters are what the guard read of a thread.
func guardRegisters(raw *guard.Raw) rawRegisters {
	r := rawRegisters{arch, append([][]byte{bytes.Clone(generalBytes(&raw.General))}, raw.Others...)}
	for len(r.sets) < len(registerSets[arch]) {
		r.sets = append(r.sets, nil)
	}
	return r
}

// generalBytes are the registers as the kernel has them; they change together.
func generalBytes(g *guard.General) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(g)), unsafe.Sizeof(*g))
}

// fetch reads the registers of a stopped thread. Without the other sets the general registers are still worth
// having; decode says what is missing.
func (r *rawRegisters) fetch(tid int) error {
	for i, set := range registerSets[r.arch] {
		n, err := system.RegisterSet(tid, set.kind, r.sets[i])
		if err != nil && i == 0 {
			return err
		}
		if r.sets[i] = r.sets[i][:n]; err != nil {
			r.sets[i] = nil
		}
	}
	return nil
}

// set returns the set that a core has as a note of this kind.
func (r *rawRegisters) set(kind elf.NType) []byte {
	for i, set := range registerSets[r.arch] {
		if set.kind == kind && i < len(r.sets) {
			return r.sets[i]
		}
	}
	return nil
}

// is64 says whether the thread runs 64-bit code: of one that does not, the kernel hands out smaller registers.
func (r *rawRegisters) is64() bool { return len(r.sets[0]) == registerSets[r.arch][0].room }

// inSyscall says whether the thread was stopped in a system call: the kernel notes its
// number, and -1 elsewhere.
func (r *rawRegisters) inSyscall() bool {
	if !r.is64() {
		return false // and it will not be looked at
	}
	if r.arch == machine.AMD64 {
		return int64(r.arch.Order.Uint64(r.sets[0][15*8:])) >= 0 // orig_rax
	}
	b := r.set(ntARMSystemCall)
	return len(b) == 4 && int32(r.arch.Order.Uint32(b)) >= 0
}

// general returns a general register, or the program counter.
func (r *rawRegisters) general(reg machine.DWARFReg) machine.Addr {
	for _, p := range coreRegisters[r.arch][0].places {
		if p.reg == reg {
			return machine.Addr(r.arch.Order.Uint64(r.sets[0][p.at:]))
		}
	}
	return 0 // no table is without them
}

// threadBlock is where the register points to that threads find what is their own by: on x86-64 fs_base of struct user_regs_struct
// (sys/user.h), on arm64 tpidr_el0. 0 where it is not known.
func (r *rawRegisters) threadBlock() machine.Addr {
	set, at := elf.NT_PRSTATUS, 21*8
	if r.arch == machine.ARM64 {
		set, at = ntARMTLS, 0
	}
	b := r.set(set)
	if len(b) < at+8 {
		return 0
	}
	return machine.Addr(r.arch.Order.Uint64(b[at:]))
}

// words are the registers that may hold pointers. The few among them that cannot do no harm.
func (r *rawRegisters) words() (list []uint64) {
	for _, b := range [][]byte{r.sets[0], r.set(ntARMTLS)} {
		for ; len(b) >= 8; b = b[8:] {
			list = append(list, r.arch.Order.Uint64(b))
		}
	}
	return list
}

// decode makes a register file of it.
func (r *rawRegisters) decode() *machine.Registers {
	regs := machine.NewRegisters(r.arch, "a capture does not read this register")
	setPlaces(regs, coreRegisters[r.arch][0].places, r.sets[0])
	if r.arch == machine.AMD64 {
		setVectors(regs, &xsave.Area{Bytes: r.set(ntX86XState), Layout: xsave.Host()})
		return regs
	}
	for _, note := range coreRegisters[r.arch][1:] {
		b := r.set(note.kind)
		for _, p := range note.places {
			if p.at+p.size > len(b) {
				regs.Forget(p.reg, r.arch.RegisterName(p.reg)+": "+errNoVectors.Error())
				continue
			}
			regs.Set(p.reg, b[p.at:][:p.size])
		}
	}
	return regs
}

// setVectors sets the registers that an XSAVE area has.
func setVectors(regs *machine.Registers, area *xsave.Area) {
	area.Registers(func(reg machine.DWARFReg, b []byte, why error) {
		if why != nil {
			regs.Forget(reg, regs.Arch().RegisterName(reg)+": "+why.Error())
			return
		}
		regs.Set(reg, b)
	})
}

// setPlaces sets registers of which b has all.
func setPlaces(regs *machine.Registers, places []noted, b []byte) {
	for _, p := range places {
		regs.Set(p.reg, b[p.at:][:p.size])
	}
}

var errNoVectors = errors.New("the kernel gave no vector registers")

// registerWord is the place of a general register in what the guard reads, in words.
func registerWord(reg machine.DWARFReg) (word uint8, ok bool) {
	for _, p := range coreRegisters[arch][0].places {
		if p.reg == reg {
			return uint8(p.at / 8), true
		}
	}
	return 0, false
}

// setRaw changes one register in what the kernel takes back: a general one, or the first bytes of
// a vector register.
func setRaw(raw *guard.Raw, reg machine.DWARFReg, b []byte) error {
	if word, ok := registerWord(reg); ok && len(b) == 8 {
		copy(generalBytes(&raw.General)[8*int(word):], b)
		return nil
	}
	for _, p := range coreRegisters[arch][1].places { // an XSAVE area begins as the older set of the floating-point registers
		if p.reg != reg || len(b) > p.size {
			continue
		}
		least := p.at + p.size
		if arch == machine.AMD64 {
			least = xsave.Legacy + 8
		}
		if len(raw.Others) == 0 || len(raw.Others[0]) < least {
			return errNoVectors
		}
		copy(raw.Others[0][p.at:], b)
		if arch == machine.AMD64 {
			raw.Others[0][xsave.Legacy] |= 1 << xsave.SSE // XSTATE_BV: without its bit the part counts as zero (Intel SDM vol. 1, 13.4.2)
		}
		return nil
	}
	return fmt.Errorf("%d bytes cannot be set in %s", len(b), arch.RegisterName(reg))
}
