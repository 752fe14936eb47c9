package deopt

import (
	"fmt"

	"reframe/deopt/frame"
	"reframe/deopt/ir"
	"reframe/deopt/isa"
	"reframe/deopt/machine"
	"reframe/deopt/object"
)

// maxFunction bounds how much of a function is decoded in search of jumps.
const maxFunction = 1 << 20

// reached says why a frame that stands at the address of a record, and not at a return
// address, may not have come by the record's site, or "". The address behind a site that
// is the last of its block is also that of the block that follows, to which other code may
// jump: there the record's registers hold other values. A frame that waits for a call has
// come by that call.
func (f *Frame) reached(m *match) string {
	switch s := m.site; {
	case m.moment == frame.Before && m.kind == ir.PatchPointSite && (s == nil || s.PatchBytes > 0):
		return "" // its code starts here
	case m.moment == frame.Before && s != nil && begins(s.Instr):
		return "" // whoever jumps here runs it
	case m.moment == frame.Before && f.physical.PC < m.entry.Addr:
		return "" // whoever comes to a call makes it
	}
	at := f.code.at(f.physical.PC)
	from, jumped := f.code.jumpTo(isa.Of(f.view.target.Arch()), at, f.physical.PC)
	if !jumped {
		return ""
	}
	certainty := "is not certain"
	if m.kind == "" {
		certainty = "is right only if its site begins a block"
	}
	return fmt.Sprintf("record %d %s: code at +%#x jumps here too", uint64(m.entry.Record.ID), certainty, uint64(from-at.start))
}

// begins says whether an instruction is the first of its block that is no phi.
func begins(i *ir.Instr) bool {
	return i.Index == 0 || i.Block.Instrs[i.Index-1].Op == ir.OpPhi
}

// jumpTo looks for an instruction of a function that jumps to an address. Jumps through
// registers and tables are not found.
func (c *code) jumpTo(of *isa.Set, s symbol, to machine.Addr) (from machine.Addr, found bool) {
	if of == nil || !s.ok || c.image == nil || s.size == 0 || s.size > maxFunction {
		return 0, false
	}
	section := c.image.CodeAt(s.start)
	if section == nil {
		return 0, false
	}
	text := sectionMemory{section}
	buf := make([]byte, of.Longest)
	for at, end := s.start, s.start+machine.Addr(s.size); at < end; {
		b, err := machine.ReadSome(text, at, buf)
		n := of.Length(b)
		if err != nil || n == 0 {
			return 0, false
		}
		if target, ok := of.Jump(b, at); ok && target == to {
			return at, true
		}
		at += machine.Addr(n)
	}
	return 0, false
}

// sectionMemory is code as it stands in its image. Jumps inside a function need no
// relocation.
type sectionMemory struct{ *object.Section }

// ReadMemory implements [machine.Memory].
func (m sectionMemory) ReadMemory(p []byte, addr machine.Addr) error {
	if !m.Contains(addr) || uint64(addr-m.Loaded())+uint64(len(p)) > m.Size {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "outside of " + m.Name}
	}
	_, err := m.ReadAt(p, int64(addr-m.Loaded()))
	return err
}
