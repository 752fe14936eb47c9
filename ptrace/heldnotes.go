package ptrace

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/regset"
)

// ntRegisters holds the registers of the preceding thread, if a debugger provided them. Other notes of the core hold those registers that have a
// place in the kernel's notes. The content is 64-bit words: the thread pointer and the number of registers; then, for each register, its DWARF
// number, its size, and its bytes, lowest address first, padded to a word.
const ntRegisters = 0x52460004

// Limits on that note.
const (
	maxHeldNote     = 1 << 20
	maxHeldRegister = 8 << 10
)

// heldSource creates the header and the notes for a core of a process that a debugger holds.
func (c *core) heldSource(nameless bool) (*coreSource, error) {
	t := c.target
	h, err := coreHeader(t.arch)
	if err != nil {
		return nil, &HeldError{t.Debugger, err, ""}
	}
	s := &coreSource{order: t.arch.Order}
	header, err := binary.Append(nil, s.order, *h)
	if err != nil {
		return nil, err
	}
	copy(s.header[:], header)

	notes := elfcore.NoteList{Order: s.order}
	m := &coreMoment{from: s}
	for _, f := range c.files {
		// The inode makes fileNote list the mapping.
		m.maps = append(m.maps, machine.Mapping{Start: f.start, End: f.end, Offset: f.off, Path: f.path, Inode: 1})
	}
	for i, th := range t.threads {
		m.names = append(m.names, threadNote{th.ID, th.Name})
		if th.Registers != nil {
			notes.Add(elfcore.OwnerCore, elf.NT_PRSTATUS, heldStatus(&th))
		}
		if i == 0 {
			command := t.Command
			if nameless {
				command = ""
			}
			notes.Add(elfcore.OwnerCore, elf.NT_PRPSINFO, (&coreAbout{pid: t.PID, state: 'T', name: th.Name, command: command}).info(s.order))
			notes.Add(elfcore.OwnerCore, ntAUXV, c.auxv)
			notes.Add(elfcore.OwnerCore, ntFile, m.fileNote())
		}
		if th.Registers != nil {
			c.addRegisterNotes(&notes, th.Registers)
		}
	}
	notes.Add(ownOwner, ntNames, m.namesNote())
	s.notes = notes.Bytes
	return s, nil
}

// heldStatus returns a struct elf_prstatus of linux/elfcore.h. Fields that no debugger provides are 0.
func heldStatus(th *machine.Thread) []byte {
	a := th.Registers.Arch()
	var places []regset.Place
	if known := regset.Notes[a]; len(known) > 0 {
		places = known[0].Places
	}
	b := make([]byte, statusRegisters+max(regset.GeneralSize[a], 8)+8)
	a.Order.PutUint32(b[statusPID:], uint32(th.ID))
	put(b[statusRegisters:], places, th.Registers)
	if a == machine.AMD64 {
		a.Order.PutUint64(b[statusRegisters+fsBase:], uint64(th.Registers.ThreadPointer()))
	}
	a.Order.PutUint32(b[len(b)-8:], 1) // pr_fpvalid
	return b
}

// put writes the available registers to their places, and reports whether all are available.
func put(b []byte, places []regset.Place, regs *machine.Registers) (all bool) {
	all = true
	for _, p := range places {
		v, err := regs.Bytes(p.Reg)
		if err != nil || len(v) < p.Size {
			all = false
			continue
		}
		copy(b[p.At:p.At+p.Size], v)
	}
	return all
}

// addRegisterNotes adds the registers that the status lacks.
func (c *core) addRegisterNotes(notes *elfcore.NoteList, regs *machine.Registers) {
	a := c.target.arch
	for _, n := range regset.Notes[a] {
		if n.Owner != elfcore.OwnerCore || n.Kind != elf.NT_FPREGSET {
			continue
		}
		b := make([]byte, regset.FloatSize[a])
		if !put(b, n.Places, regs) {
			continue // readers would take zeros for the values of the missing registers
		}
		if control, err := regs.FloatControl(); err == nil {
			control.Put(a, b)
		} else if a == machine.AMD64 || a == machine.ARM64 {
			continue // readers would take zeros for the values of the control registers
		}
		notes.Add(n.Owner, n.Kind, b)
	}
	var list []byte
	count := uint64(0)
	all := a.Registers()
	if !slices.Contains(all, a.PC) { // the pc has no DWARF number on this architecture
		all = append(slices.Clip(all), a.PC)
	}
	for _, reg := range all {
		v, err := regs.Bytes(reg)
		if err != nil || len(v) == 0 || len(v) > maxHeldRegister {
			continue
		}
		count++
		list, _ = binary.Append(list, a.Order, [2]uint64{uint64(reg), uint64(len(v))}) // fails only for types without a fixed size
		list = append(list, v...)
		list = append(list, make([]byte, -len(v)&7)...)
	}
	head, _ := binary.Append(nil, a.Order, [2]uint64{uint64(regs.ThreadPointer()), count}) // cannot fail either
	notes.Add(ownOwner, ntRegisters, append(head, list...))
}

// readHeldRegisters reads ntRegisters into the last thread.
func (c *core) readHeldRegisters(n elfcore.Note) {
	b, ok := n.Read(16, maxHeldNote)
	if !ok || len(c.target.threads) == 0 {
		return
	}
	th := &c.target.threads[len(c.target.threads)-1]
	// Start with no registers, because the other notes have zeros for registers that the debugger did not provide.
	regs := machine.NewRegisters(c.target.arch, notHeld)
	if th.Registers != nil {
		if control, err := th.Registers.FloatControl(); err == nil {
			regs.SetFloatControl(control)
		} else {
			regs.ForgetFloatControl(err)
		}
	}
	th.Registers, th.Missing = regs, ""
	order := c.target.arch.Order
	th.Registers.SetThreadPointer(machine.Addr(order.Uint64(b)))
	count := order.Uint64(b[8:])
	b = b[16:]
	for ; count > 0 && len(b) >= 16; count-- {
		reg, size := order.Uint64(b), order.Uint64(b[8:])
		b = b[16:]
		info, known := c.target.arch.Register(machine.DWARFReg(reg))
		if !known && machine.DWARFReg(reg) != c.target.arch.PC || size > uint64(len(b)) || size > maxHeldRegister || known && size > uint64(info.Size) {
			return
		}
		th.Registers.Set(machine.DWARFReg(reg), b[:size:size])
		b = b[min(uint64(len(b)), (size+7)&^7):]
	}
}
