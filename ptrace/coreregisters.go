package ptrace

import (
	"debug/elf"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/regset"
	"example.com/reframe/ptrace/xsave"
)

// maxRegisterNote bounds the size of a note with registers; real notes are smaller.
const maxRegisterNote = 4 << 10

// readRegisters reads a note that may contain registers: the first registers of a new thread, or more registers of the previous thread.
func (c *core) readRegisters(n elfcore.Note) {
	if n.Owner == elfcore.OwnerLinux && n.Kind == regset.X86XState && c.target.arch == machine.AMD64 {
		if len(c.target.threads) > 0 {
			c.vectors = append(c.vectors, vectorNote{len(c.target.threads) - 1, n})
		}
		return
	}
	if n.Owner == elfcore.OwnerLinux && n.Kind == regset.X86Layout && c.target.arch == machine.AMD64 {
		c.readLayout(n)
		return
	}
	if n.Owner == elfcore.OwnerCore && n.Kind == elf.NT_PRSTATUS {
		b, ok := n.Read(statusRegisters, statusRegisters)
		if !ok || len(c.target.threads) == maxThreads {
			return
		}
		c.target.threads = append(c.target.threads, machine.Thread{
			ID: int(int32(c.target.arch.Order.Uint32(b[statusPID:]))), Missing: "the registers of this core are not known"})
	}
	if n.Owner == elfcore.OwnerLinux && n.Kind == regset.ARMSVE && c.target.arch == machine.ARM64 && len(c.target.threads) > 0 {
		regs := c.target.threads[len(c.target.threads)-1].Registers
		if b, ok := n.Read(0, maxRegisterNote); ok && regs != nil {
			setVectorLength(regs, b, "the core's note NT_ARM_SVE has no vector length that SVE allows")
		}
		return
	}
	for i, known := range regset.Notes[c.target.arch] {
		if known.Owner != n.Owner || known.Kind != n.Kind {
			continue
		}
		skip := 0
		if i == 0 {
			skip = statusRegisters
		}
		c.setRegisters(n, known.Places, skip, i == 0)
	}
}

// setRegisters sets registers of the last thread from a note that contains them after skip bytes.
func (c *core) setRegisters(n elfcore.Note, places []regset.Place, skip int, general bool) {
	if len(c.target.threads) == 0 {
		return
	}
	th := &c.target.threads[len(c.target.threads)-1]
	last := places[0]
	for _, p := range places {
		if p.At > last.At {
			last = p
		}
	}
	b, ok := n.Read(int64(skip+last.At+last.Size), maxRegisterNote)
	if !ok {
		return
	}
	if general {
		th.Registers, th.Missing = machine.NewRegisters(c.target.arch, "not in the core"), ""
		if c.target.arch == machine.ARM64 {
			setVectorLength(th.Registers, nil, "the core does not contain the thread's vector length (NT_ARM_SVE)")
		}
		th.Registers.ForgetFloatControl(frame.Because(frame.FloatsUnread, "the core contains no floating-point registers of the thread"))
	}
	if th.Registers == nil {
		return
	}
	for _, p := range places {
		th.Registers.Set(p.Reg, b[skip+p.At:][:p.Size])
	}
	if general && c.target.arch == machine.AMD64 && len(b) >= skip+fsBase+8 {
		th.Registers.SetThreadPointer(machine.Addr(c.target.arch.Order.Uint64(b[skip+fsBase:])))
	}
	if n.Owner == elfcore.OwnerCore && n.Kind == elf.NT_FPREGSET {
		setFloatControl(th.Registers, b)
	}
}

// vectorNote is an XSAVE area of a core, with the index of its thread.
type vectorNote struct {
	thread int
	area   elfcore.Note
}

// readVectors reads the XSAVE areas, which hold the parts of x86-64's vector registers beyond xmm. The core lists the offsets in an area, if at all,
// after all threads.
func (c *core) readVectors() {
	for _, v := range c.vectors {
		regs := c.target.threads[v.thread].Registers
		b, ok := v.area.Read(xsave.Legacy, maxXsave)
		if !ok || regs == nil {
			continue
		}
		if c.delve {
			b = delveArea(b)
		}
		area := xsave.Area{Bytes: b}
		if c.layout != nil {
			area.Layout = *c.layout
		} else {
			area.Layout, area.Why = xsave.Find(b, c.frame)
		}
		if _, err := regs.FloatControl(); err != nil {
			setFloatControl(regs, b)
		}
		setVectors(regs, &area)
	}
	c.vectors = nil
}

// readLayout reads the offsets of registers in the XSAVE areas of the core.
func (c *core) readLayout(n elfcore.Note) {
	b, ok := n.Read(0, xsave.MaxNote+1)
	if !ok || c.layout != nil {
		return
	}
	layout, err := xsave.Parse(b)
	if err != nil {
		c.target.Notes = append(c.target.Notes, err.Error())
	}
	c.layout = &layout // empty if the note is corrupt, because the tables apply only to cores without a layout
}
