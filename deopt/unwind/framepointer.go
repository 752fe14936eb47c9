package unwind

import (
	"fmt"

	"reframe/deopt/machine"
)

// byFramePointer finds the caller of a frame that has no CFI, on the
// assumption that its code keeps a frame pointer: the caller's lies where it
// points to, the return address after that (System V ABI, AMD64 supplement,
// §3.2.2). Every step of it is checked; where the code in truth keeps no frame
// pointer, the chain still belongs to some frame further out, and what is
// missing is the frames between.
func (w *walk) byFramePointer(f *Frame) (caller, *End) {
	name := w.Arch.RegisterName(w.Arch.FP)
	failed := func(format string, args ...any) (caller, *End) {
		return caller{}, cutShort("frame #%d has no unwind information for %v, and "+format, append([]any{f.Index, f.PC}, args...)...)
	}
	if !w.Executable(f.lookup()) {
		// A jump to a wild address: nothing ran here, so the frame pointer is
		// that of the code that jumped, and would lead past it.
		return failed("no code is there: it is not in executable memory")
	}
	fp, err := f.Registers.Addr(w.Arch.FP)
	if err != nil {
		return failed("its frame pointer is unavailable: %v", err)
	}
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err != nil {
		return failed("its stack pointer is unavailable: %v", err)
	}
	word := machine.Addr(w.Arch.Pointer)
	switch {
	case fp == 0 && f.Rule == FromFramePointer:
		// The ABI asks for zero in the deepest frame (§3.4.1), and this one
		// was reached through a chain that ends so.
		return caller{}, outermost("frame #%d is the outermost: its frame pointer is zero", f.Index)
	case fp%word != 0:
		return failed("%s %v is not aligned to %d bytes", name, fp, word)
	case fp < sp:
		return failed("%s %v lies below the stack pointer %v", name, fp, sp)
	case fp+2*word < fp:
		return failed("%s %v lies at the end of memory", name, fp)
	}
	saved, err := machine.ReadAddr(w.Memory, w.Arch, fp)
	if err != nil {
		return failed("%s %v does not point to a frame: %v", name, fp, err)
	}
	pc, err := machine.ReadAddr(w.Memory, w.Arch, fp+word)
	if err != nil {
		return failed("%s %v does not point to a frame: %v", name, fp, err)
	}
	if pc != 0 {
		if end := w.plausible(f, pc); end != nil {
			return caller{}, end
		}
		// Code that was not copied cannot be looked at; where it can be, only
		// a call pushes a return address.
		if called, err := w.callEndsAt(pc); err == nil && !called {
			return failed("%s %v does not point to a frame: no call ends at %v, which would be its return address", name, fp, pc)
		}
	}
	if end := w.settle(f, fp+2*word); end != nil {
		return caller{}, end
	}
	if pc == 0 {
		return caller{}, w.plausible(f, pc)
	}
	c := caller{pc: pc, regs: w.framePointerCallers(f), rule: FromFramePointer}
	c.regs.SetUint(w.Arch.PC, uint64(pc))
	c.regs.SetUint(w.Arch.SP, uint64(fp+2*word))
	c.regs.SetUint(w.Arch.FP, uint64(saved))
	if !f.Return {
		c.guess = fmt.Sprintf("frame #%d may not have set up its frame pointer yet, or may have given it back: "+
			"then its caller is missing here", f.Index)
	}
	return c, nil
}

// framePointerCallers returns what is known of the registers of the caller of
// f, but for those that the frame pointer gives.
func (w *walk) framePointerCallers(f *Frame) *machine.Registers {
	regs := machine.NewRegisters(w.Arch, "no frame below keeps it")
	for _, reg := range w.Arch.Registers() {
		if !w.Arch.Preserved(reg) {
			regs.Forget(reg, w.clobbered(f, reg).Error())
			continue
		}
		regs.Forget(reg, fmt.Sprintf("frame #%d was left by its frame pointer, which does not say where %s was saved",
			f.Index, w.Arch.RegisterName(reg)))
	}
	return regs
}
