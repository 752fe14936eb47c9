package ptrace

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/regset"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/tracer"
	"example.com/reframe/ptrace/xsave"
)

// arch is the architecture of the processes that this build can read.
var arch = hostArch()

func hostArch() *machine.Arch {
	a, _ := machine.ByName(runtime.GOARCH)
	if regset.Sets[a] != nil {
		return a
	}
	if tracer.Supported {
		panic("ptrace is built for processes of " + runtime.GOARCH + ", of which it has no regset.Sets")
	}
	return machine.AMD64 // this build cannot read processes
}

// maxXsave bounds the size of an XSAVE area. With AMX it has 11 KiB.
const maxXsave = 1 << 16

// rawRegisters holds the registers of one thread as the kernel provides them. They are decoded after the stop, to keep the stop short.
type rawRegisters struct {
	arch *machine.Arch
	sets [][]byte // in the order of regset.Sets; nil for a missing set
}

// newRawRegisters allocates the sets before the stop.
func newRawRegisters(a *machine.Arch) rawRegisters {
	r := rawRegisters{arch: a}
	for _, set := range regset.Sets[a] {
		r.sets = append(r.sets, make([]byte, set.Room))
		touch(r.sets[len(r.sets)-1])
	}
	return r
}

// touch makes the kernel allocate the pages of new memory before the stop, because allocating them takes longer than filling them.
func touch(b []byte) {
	for i := 0; i < len(b); i += elfcore.Page {
		b[i] = 0
	}
}

// tracerRegisters returns the registers of a thread that the tracer has read.
func tracerRegisters(raw *tracer.Raw) rawRegisters {
	r := rawRegisters{arch, append([][]byte{bytes.Clone(generalBytes(&raw.General))}, raw.Others...)}
	for len(r.sets) < len(regset.Sets[arch]) {
		r.sets = append(r.sets, nil)
	}
	return r
}

// generalBytes returns the memory of the general registers, which has the kernel's layout, without copying it.
func generalBytes(g *tracer.General) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(g)), unsafe.Sizeof(*g))
}

// fetch reads the registers of a stopped thread. It fails only if the general registers cannot be read; decode reports other missing sets.
func (r *rawRegisters) fetch(tid int) error {
	for i, set := range regset.Sets[r.arch] {
		n, err := system.RegisterSet(tid, set.Kind, r.sets[i])
		if err != nil && i == 0 {
			return err
		}
		if r.sets[i] = r.sets[i][:n]; err != nil {
			r.sets[i] = nil
		}
	}
	return nil
}

// set returns the register set that a core stores in a note of the given type.
func (r *rawRegisters) set(kind elf.NType) []byte {
	for i, set := range regset.Sets[r.arch] {
		if set.Kind == kind && i < len(r.sets) {
			return r.sets[i]
		}
	}
	return nil
}

// is64 reports whether the thread runs 64-bit code. For a 32-bit thread the kernel provides a smaller set of general registers.
func (r *rawRegisters) is64() bool { return len(r.sets[0]) == regset.Sets[r.arch][0].Room }

// inSyscall reports whether the thread was stopped in a system call. In that case the kernel provides the call's number, otherwise -1.
func (r *rawRegisters) inSyscall() bool {
	if !r.is64() {
		return false // frames of this thread are not examined
	}
	if r.arch == machine.AMD64 {
		return int64(r.arch.Order.Uint64(r.sets[0][15*8:])) >= 0 // orig_rax
	}
	b := r.set(regset.ARMSystemCall)
	return len(b) == 4 && int32(r.arch.Order.Uint32(b)) >= 0
}

// general returns a general register or the program counter.
func (r *rawRegisters) general(reg machine.DWARFReg) machine.Addr {
	for _, p := range regset.Notes[r.arch][0].Places {
		if p.Reg == reg {
			return machine.Addr(r.arch.Order.Uint64(r.sets[0][p.At:]))
		}
	}
	return 0 // every table contains the register
}

// fsBase is the offset of fs_base in struct user_regs_struct (sys/user.h).
const fsBase = 21 * 8

// threadBlock returns the thread pointer: fs_base of struct user_regs_struct (sys/user.h) on x86-64, tpidr_el0 on arm64. It returns 0 if unknown.
func (r *rawRegisters) threadBlock() machine.Addr {
	set, at := elf.NT_PRSTATUS, fsBase
	if r.arch == machine.ARM64 {
		set, at = regset.ARMTLS, 0
	}
	b := r.set(set)
	if len(b) < at+8 {
		return 0
	}
	return machine.Addr(r.arch.Order.Uint64(b[at:]))
}

// words returns the registers that may contain pointers. The result includes a few that never contain pointers, which does no harm.
func (r *rawRegisters) words() (list []uint64) {
	for _, b := range [][]byte{r.sets[0], r.set(regset.ARMTLS)} {
		for ; len(b) >= 8; b = b[8:] {
			list = append(list, r.arch.Order.Uint64(b))
		}
	}
	return list
}

// decode returns the decoded registers.
func (r *rawRegisters) decode() *machine.Registers {
	regs := machine.NewRegisters(r.arch, "a capture does not read this register")
	setPlaces(regs, regset.Notes[r.arch][0].Places, r.sets[0])
	regs.SetThreadPointer(r.threadBlock())
	if r.arch == machine.AMD64 {
		setFloatControl(regs, r.set(regset.X86XState))
		setVectors(regs, &xsave.Area{Bytes: r.set(regset.X86XState), Layout: xsave.Host()})
		return regs
	}
	if r.arch == machine.ARM64 {
		setVectorLength(regs, r.set(regset.ARMSVE), "the kernel provides no SVE vectors of this thread")
	}
	for _, note := range regset.Notes[r.arch][1:] {
		b := r.set(note.Kind)
		setFloatControl(regs, b)
		for _, p := range note.Places {
			if p.At+p.Size > len(b) {
				regs.Forget(p.Reg, frame.Because(frame.NotCaptured, r.arch.RegisterName(p.Reg), errNoVectors))
				continue
			}
			regs.Set(p.Reg, b[p.At:][:p.Size])
		}
	}
	return regs
}

// setVectors sets the registers that an XSAVE area holds.
func setVectors(regs *machine.Registers, area *xsave.Area) {
	area.Registers(func(reg machine.DWARFReg, b []byte, why error) {
		if why != nil {
			regs.Forget(reg, frame.Because(frame.NotCaptured, regs.Arch().RegisterName(reg), why))
			return
		}
		regs.Set(reg, b)
	})
}

// setFloatControl sets the registers that control floating-point arithmetic. b is the set that contains them. An XSAVE area begins like an FXSAVE
// area: in its copy, the kernel fills in components that are in their initial state (copy_xstate_to_uabi_buf of arch/x86/kernel/fpu/xstate.c).
func setFloatControl(regs *machine.Registers, b []byte) {
	if c, err := machine.FloatControlOf(regs.Arch(), b); err != nil {
		regs.ForgetFloatControl(err)
	} else {
		regs.SetFloatControl(c)
	}
}

// setVectorLength sets the register that gives the length of SVE vectors in units of 8 bytes, from NT_ARM_SVE.
func setVectorLength(regs *machine.Registers, b []byte, missing string) {
	if n := regset.VectorLength(b); n > 0 {
		regs.SetUint(machine.ARM64VG, n/8)
	} else {
		regs.Forget(machine.ARM64VG, frame.Because(frame.VectorLength, missing))
	}
}

// setPlaces sets registers from b, which must be long enough for all places.
func setPlaces(regs *machine.Registers, places []regset.Place, b []byte) {
	for _, p := range places {
		regs.Set(p.Reg, b[p.At:][:p.Size])
	}
}

var errNoVectors = errors.New("the kernel provided no vector registers")

// registerWord returns the index in [tracer.General] of a general register.
func registerWord(reg machine.DWARFReg) (word uint8, ok bool) {
	for _, p := range regset.Notes[arch][0].Places {
		if p.Reg == reg {
			return uint8(p.At / 8), true
		}
	}
	return 0, false
}

// setRaw changes one register in the kernel's format: a general register, or the first bytes of a vector register.
func setRaw(raw *tracer.Raw, reg machine.DWARFReg, b []byte) error {
	if word, ok := registerWord(reg); ok && len(b) == 8 {
		copy(generalBytes(&raw.General)[8*int(word):], b)
		return nil
	}
	for _, p := range regset.Notes[arch][1].Places { // an XSAVE area begins like the older set of floating-point registers
		if p.Reg != reg || len(b) > p.Size {
			continue
		}
		least := p.At + p.Size
		if arch == machine.AMD64 {
			least = xsave.Legacy + 8
		}
		if len(raw.Others) == 0 || len(raw.Others[0]) < least {
			return errNoVectors
		}
		copy(raw.Others[0][p.At:], b)
		if arch == machine.AMD64 {
			raw.Others[0][xsave.Legacy] |= 1 << xsave.SSE // XSTATE_BV: without its bit the part counts as zero (Intel SDM vol. 1, 13.4.2)
		}
		return nil
	}
	return fmt.Errorf("cannot set %d bytes in %s", len(b), arch.RegisterName(reg))
}
