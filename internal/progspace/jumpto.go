package progspace

import (
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/object"
)

// JumpTo searches a function for an instruction that jumps to an address. It does not find jumps through registers and tables.
func (c *Objfile) JumpTo(of *isa.Set, s Symbol, to machine.Addr) (from machine.Addr, found bool) {
	c.decode(of, s, func(at machine.Addr, code []byte) bool {
		target, ok := of.Jump(code, at)
		if found = ok && target == to; found {
			from = at
		}
		return !found
	})
	return from, found
}

// Jumps holds the jumps of a function.
type Jumps struct {
	To       map[machine.Addr][]machine.Addr // direct jumps, by target
	Computed []machine.Addr                  // jumps through registers and tables
}

// JumpsOf returns the jumps of a function. It returns false if they are unknown: not all instructions can be decoded, or the effect of an instruction
// on the control flow is not implemented for the architecture.
func (c *Objfile) JumpsOf(of *isa.Set, s Symbol) (j Jumps, known bool) {
	if of == nil || of.Step == nil {
		return j, false
	}
	j.To = map[machine.Addr][]machine.Addr{}
	known = c.decode(of, s, func(at machine.Addr, code []byte) bool {
		if to, direct := of.Jump(code, at); direct {
			j.To[to] = append(j.To[to], at)
		} else if of.Step(code, at).How == isa.StepComputed {
			j.Computed = append(j.Computed, at)
		}
		return true
	})
	return j, known
}

// decode calls each with the instructions of a function, until it returns false. decode returns false if it cannot decode an instruction.
func (c *Objfile) decode(of *isa.Set, s Symbol, each func(at machine.Addr, code []byte) bool) bool {
	if of == nil || !s.Known || c.Image == nil || s.Size == 0 || s.Size > sites.MaxFunction {
		return false
	}
	section := c.Image.CodeAt(s.Start)
	if section == nil {
		return false
	}
	text := sectionMemory{section}
	buf := make([]byte, of.Longest)
	for at, end := s.Start, s.Start+machine.Addr(s.Size); at < end; {
		b, err := machine.ReadSome(text, at, buf)
		n := of.Length(b)
		if err != nil || n == 0 {
			return false
		}
		if !each(at, b) {
			return true
		}
		at += machine.Addr(n)
	}
	return true
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
