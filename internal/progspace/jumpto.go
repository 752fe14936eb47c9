package progspace

import (
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/object"
)

// JumpTo searches a function for an instruction that jumps to an address. It does not find jumps through registers and tables.
func (c *Objfile) JumpTo(of *isa.Set, s Symbol, to machine.Addr) (from machine.Addr, found bool) {
	if of == nil || !s.Known || c.Image == nil || s.Size == 0 || s.Size > sites.MaxFunction {
		return 0, false
	}
	section := c.Image.CodeAt(s.Start)
	if section == nil {
		return 0, false
	}
	text := sectionMemory{section}
	buf := make([]byte, of.Longest)
	for at, end := s.Start, s.Start+machine.Addr(s.Size); at < end; {
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

// sectionMemory is code as its image contains it. Jumps inside a function need no relocation.
type sectionMemory struct{ *object.Section }

// ReadMemory implements [machine.Memory].
func (m sectionMemory) ReadMemory(p []byte, addr machine.Addr) error {
	if !m.Contains(addr) || uint64(addr-m.Loaded())+uint64(len(p)) > m.Size {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "outside of " + m.Name}
	}
	_, err := m.ReadAt(p, int64(addr-m.Loaded()))
	return err
}
