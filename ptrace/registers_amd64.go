package ptrace

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/go-delve/delve/pkg/proc/native/cpuid"
	"golang.org/x/sys/unix"

	"reframe/deopt/machine"
)

var arch = machine.AMD64

// rawRegisters is what the kernel hands out for one thread, as it came: the
// stop is kept short by reading it later.
type rawRegisters struct {
	general unix.PtraceRegs
	xsave   []byte // the XSAVE area in its standard form
}

// An XSAVE area larger than this has never been seen; AMX makes it 11 KiB.
const maxXsave = 1 << 16

// fetch reads the registers of a stopped thread.
func (r *rawRegisters) fetch(tid int) error {
	if err := unix.PtraceGetRegs(tid, &r.general); err != nil {
		return err
	}
	// Without a vector state the general registers are still worth having; decode says what is missing.
	if r.xsave == nil {
		r.xsave = make([]byte, maxXsave)
	}
	iov := unix.Iovec{Base: &r.xsave[0], Len: uint64(len(r.xsave))}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), ntX86XState, uintptr(unsafe.Pointer(&iov)), 0, 0)
	r.xsave = r.xsave[:iov.Len]
	if errno != 0 {
		r.xsave = nil
	}
	return nil
}

const ntX86XState = 0x202 // NT_X86_XSTATE, elf.h

// is64 says whether the thread runs 64-bit code: its code segment is the
// kernel's __USER_CS.
func (r *rawRegisters) is64() bool { return r.general.Cs == userCode }

const userCode = 0x33

// inSyscall says whether the thread was stopped in a system call: the kernel notes its
// number, and -1 elsewhere.
func (r *rawRegisters) inSyscall() bool { return int64(r.general.Orig_rax) >= 0 }

func (r *rawRegisters) sp() machine.Addr { return machine.Addr(r.general.Rsp) }
func (r *rawRegisters) pc() machine.Addr { return machine.Addr(r.general.Rip) }

// decode makes a register file of it.
func (r *rawRegisters) decode() *machine.Registers {
	regs := machine.NewRegisters(arch, "a capture does not read this register")
	setGeneral(regs, &r.general)
	vectors, err := decodeXsave(r.xsave, cpuid.AMD64XstateZMMHi256Offset())
	for i := range 16 {
		reg := machine.DWARFReg(17 + i)
		if err != nil {
			regs.Forget(reg, arch.RegisterName(reg)+": "+err.Error())
			continue
		}
		regs.Set(reg, vectors[i])
	}
	return regs
}

// setGeneral sets the general registers and the program counter.
func setGeneral(regs *machine.Registers, g *unix.PtraceRegs) {
	for n, v := range []uint64{g.Rax, g.Rdx, g.Rcx, g.Rbx, g.Rsi, g.Rdi, g.Rbp, g.Rsp,
		g.R8, g.R9, g.R10, g.R11, g.R12, g.R13, g.R14, g.R15, g.Rip} {
		regs.SetUint(machine.DWARFReg(n), v)
	}
}

// Offsets in an XSAVE area (Intel SDM vol. 1, 13.4 and 13.5). That of the upper
// halves of zmm0 to zmm15 differs between makers and comes from CPUID.
const (
	xsaveXMM   = 160
	xsaveXCR0  = 464 // where Linux notes which parts the area has
	xsaveYMM   = 576
	xsaveHasY  = 1 << 2
	xsaveHasZ  = 1 << 6
	xmmSize    = 16
	zmmHalf    = 32
	xsaveLeast = 512
)

// decodeXsave returns xmm0 to xmm15, each as wide as the processor has it. A part
// that is in its initial state the kernel fills with zeros, which is its value.
func decodeXsave(area []byte, zmmOffset int) ([16][]byte, error) {
	var out [16][]byte
	if len(area) < xsaveLeast {
		return out, errors.New("the kernel gave no vector registers")
	}
	features := binary.LittleEndian.Uint64(area[xsaveXCR0:])
	for i := range out {
		v := append([]byte(nil), area[xsaveXMM+i*xmmSize:][:xmmSize]...)
		if at := xsaveYMM + i*xmmSize; features&xsaveHasY != 0 && at+xmmSize <= len(area) {
			v = append(v, area[at:][:xmmSize]...)
			if at := zmmOffset + i*zmmHalf; features&xsaveHasZ != 0 && zmmOffset > 0 && at+zmmHalf <= len(area) {
				v = append(v, area[at:][:zmmHalf]...)
			}
		}
		out[i] = v
	}
	return out, nil
}
