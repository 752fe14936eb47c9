package progspace

import (
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Original is compiled code together with the current code in the target. As a [machine.Memory] it is the compiled code.
type Original struct {
	Start machine.Addr
	Of    string // file or registered object that contains the compiled code
	Was   []byte
	Now   []byte // current code, as long as Was
	// fixed marks the bytes whose original value is known because no relocation changes them.
	fixed []bool
}

// MaxOriginal bounds the bytes of code that are compared at once.
const MaxOriginal = 64 << 10

// Original compares the code at an address with the compiled code: up to n bytes, and fewer if the code or memory ends before. It returns an error if
// no file or object has the compiled code, or if memory cannot be read there.
func (s *Space) Original(start machine.Addr, n int) (*Original, error) {
	c := s.At(start)
	switch {
	case c == nil:
		return nil, fmt.Errorf("the compiled code at %v is unknown: it is in no file and no registered object", start)
	case c.Image == nil:
		return nil, fmt.Errorf("the compiled code at %v is unknown: its stack map was found in memory, and no object is registered", start)
	}
	if m := s.Target.ModuleAt(start); m != nil && m.Image == c.Image && m.Virtual() {
		return nil, errors.New("the compiled code of " + m.Path + " is unknown: it has no file")
	}
	code, fixed, err := c.Image.Original(start, min(n, MaxOriginal))
	if err != nil {
		return nil, fmt.Errorf("the compiled code at %v is unknown: %w", start, err)
	}
	now, err := readWhole(s.Target, start, make([]byte, len(code)))
	if err != nil {
		return nil, err
	}
	return &Original{start, c.Name, code[:len(now)], now, fixed[:len(now)]}, nil
}

// Compiled reads code as it was before the target overwrote it. It returns an error if that is unknown, or if p is too long.
func (s *Space) Compiled(p []byte, at machine.Addr) error {
	o, err := s.Original(at, len(p))
	if err != nil {
		return err
	}
	return o.ReadMemory(p, at)
}

// readWhole reads memory at an address into buf, and drops whole pages from the end until the memory can be read.
func readWhole(m machine.Memory, start machine.Addr, buf []byte) (b []byte, err error) {
	for n := machine.Addr(len(buf)); ; {
		if err = m.ReadMemory(buf[:n], start); err == nil {
			return buf[:n], nil
		}
		end := (start + n - 1) &^ (4<<10 - 1)
		if end <= start {
			return nil, err
		}
		n = end - start
	}
}

// End returns the first address after the code.
func (w *Original) End() machine.Addr { return w.Start + machine.Addr(len(w.Was)) }

// Differs reports whether the byte at an address has certainly changed.
func (w *Original) Differs(at machine.Addr) bool {
	n := at - w.Start
	return at >= w.Start && at < w.End() && w.fixed[n] && w.Was[n] != w.Now[n]
}

// Differing returns the number of bytes in [from, to) that have certainly changed.
func (w *Original) Differing(from, to machine.Addr) (n int) {
	for at := max(from, w.Start); at < min(to, w.End()); at++ {
		if w.Differs(at) {
			n++
		}
	}
	return n
}

// Known reports whether the compiled values of all bytes in [from, to) are known.
func (w *Original) Known(from, to machine.Addr) bool {
	for at := max(from, w.Start); at < min(to, w.End()); at++ {
		if !w.fixed[at-w.Start] {
			return false
		}
	}
	return true
}

// ReadMemory implements [machine.Memory] for the compiled code. Relocated bytes have the file's values, as before relocation.
func (w *Original) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < w.Start || uint64(addr-w.Start)+uint64(len(p)) > uint64(len(w.Was)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not all of it is in " + w.Of}
	}
	copy(p, w.Was[addr-w.Start:])
	return nil
}

// RelocatedTo returns the address that a relocation in code of an unlinked object stores or refers to. It returns 0 if there is no relocation, or if
// the address of its symbol is unknown. The code may reach the address through a stub.
func (s *Space) RelocatedTo(at machine.Addr) machine.Addr {
	c := s.At(at)
	if c == nil || c.Image == nil || !c.Image.Relocatable() {
		return 0
	}
	if c.Image.CodeAt(at) == nil {
		return 0
	}
	if c.Relocations == nil {
		c.Relocations = map[machine.Addr]object.Relocation{}
		for _, section := range c.Image.Code() {
			_, list, err := section.Relocated()
			for _, r := range list {
				if err == nil {
					c.Relocations[section.Loaded()+machine.Addr(r.Offset)] = r
				}
			}
		}
	}
	r, ok := c.Relocations[at]
	if !ok || r.Symbol() == "" {
		return 0
	}
	if sym, ok := c.Image.Exported(r.Symbol()); ok {
		return sym.Addr
	}
	sym, _ := s.Target.FindSymbol(r.Symbol())
	return sym.Addr
}
