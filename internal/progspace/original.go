package progspace

import (
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Original is code as it was put there, and as it is in the target. As a [machine.Memory] it has the former.
type Original struct {
	Start machine.Addr
	Of    string // the file or the registered object that has the code as it was
	Was   []byte
	Now   []byte // as many bytes as Was has, in the stop
	// fixed marks the bytes whose original is known: no relocation changes them.
	fixed []bool
}

// MaxOriginal bounds how many bytes of code are held against what they were at once.
const MaxOriginal = 64 << 10

// Original compares the code from an address on with its original: up to n bytes, and fewer if the code or memory ends before. It returns an error
// if no file or object has the original, or if memory cannot be read there.
func (s *Space) Original(start machine.Addr, n int) (*Original, error) {
	c := s.At(start)
	switch {
	case c == nil:
		return nil, fmt.Errorf("what the code at %v was is not known: no file and no registered object has it", start)
	case c.Image == nil:
		return nil, fmt.Errorf("what the code at %v was is not known: its stack map was found in memory, and no object is registered", start)
	}
	if m := s.Target.ModuleAt(start); m != nil && m.Image == c.Image && m.Virtual() {
		return nil, errors.New("what the code of " + m.Path + " was is not known: it has no file")
	}
	code, fixed, err := c.Image.Original(start, min(n, MaxOriginal))
	if err != nil {
		return nil, fmt.Errorf("what the code at %v was is not known: %w", start, err)
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

// readWhole reads into buf what there is from an address on, by whole pages: less where memory ends before.
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

// End is the first address past the code.
func (w *Original) End() machine.Addr { return w.Start + machine.Addr(len(w.Was)) }

// Differs reports whether the byte at an address is certainly another one than it was.
func (w *Original) Differs(at machine.Addr) bool {
	n := at - w.Start
	return at >= w.Start && at < w.End() && w.fixed[n] && w.Was[n] != w.Now[n]
}

// Differing counts the bytes of [from, to) that are certainly others than they were.
func (w *Original) Differing(from, to machine.Addr) (n int) {
	for at := max(from, w.Start); at < min(to, w.End()); at++ {
		if w.Differs(at) {
			n++
		}
	}
	return n
}

// Known reports whether all bytes of [from, to) are known as they were.
func (w *Original) Known(from, to machine.Addr) bool {
	for at := max(from, w.Start); at < min(to, w.End()); at++ {
		if !w.fixed[at-w.Start] {
			return false
		}
	}
	return true
}

// ReadMemory implements [machine.Memory] for the code as it was. Bytes that are relocated are as the file has them.
func (w *Original) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < w.Start || uint64(addr-w.Start)+uint64(len(p)) > uint64(len(w.Was)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not all of it is in " + w.Of}
	}
	copy(p, w.Was[addr-w.Start:])
	return nil
}

// RelocatedTo returns the address that a relocation stores, or leads to, in code of an unlinked object; 0 if there is none, or if the address of
// its symbol is unknown. The code may go there through a stub.
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
