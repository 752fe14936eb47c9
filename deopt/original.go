package deopt

import (
	"errors"
	"fmt"

	"reframe/deopt/machine"
	"reframe/deopt/object"
)

// original is code as it was put there, and as it is in the target.
type original struct {
	start machine.Addr
	of    string // the file or the registered object that has the code as it was
	was   []byte
	now   []byte // as much as was, in the stop
	// fixed says of which bytes it is known what they were: no relocation is about them.
	fixed []bool
}

// maxWritten bounds how much code is held against its original at once.
const maxWritten = 64 << 10

// original holds the code from an address on against what it was: up to n bytes, and less where the code or memory ends before. The
// error says that nobody has the original, or that memory cannot be read there.
func (v *View) original(start machine.Addr, n int) (*original, error) {
	c := v.space.At(start)
	switch {
	case c == nil:
		return nil, fmt.Errorf("what the code at %v was is not known: no file and no registered object has it", start)
	case c.Image == nil:
		return nil, fmt.Errorf("what the code at %v was is not known: its stack map was found in memory, and no object is registered", start)
	}
	if m := v.target.ModuleAt(start); m != nil && m.Image == c.Image && m.Virtual() {
		return nil, errors.New("what the code of " + m.Path + " was is not known: it has no file")
	}
	code, fixed, err := c.Image.Original(start, min(n, maxWritten))
	if err != nil {
		return nil, fmt.Errorf("what the code at %v was is not known: %w", start, err)
	}
	now, err := readWhole(v.target, start, make([]byte, len(code)))
	if err != nil {
		return nil, err
	}
	return &original{start, c.Name, code[:len(now)], now, fixed[:len(now)]}, nil
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

// end is the first address past the code.
func (w *original) end() machine.Addr { return w.start + machine.Addr(len(w.was)) }

// differs says whether the byte at an address is certainly another one than it was.
func (w *original) differs(at machine.Addr) bool {
	n := at - w.start
	return at >= w.start && at < w.end() && w.fixed[n] && w.was[n] != w.now[n]
}

// differing counts the bytes of [from, to) that are certainly others than they were.
func (w *original) differing(from, to machine.Addr) (n int) {
	for at := max(from, w.start); at < min(to, w.end()); at++ {
		if w.differs(at) {
			n++
		}
	}
	return n
}

// ReadMemory implements [machine.Memory] for the code as it was. Bytes that are relocated are as the file has them.
func (w *original) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < w.start || uint64(addr-w.start)+uint64(len(p)) > uint64(len(w.was)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not all of it is in " + w.of}
	}
	copy(p, w.was[addr-w.start:])
	return nil
}

// relocatedTo is the address that a relocation puts, or leads to, in code of an object that is not linked; 0 where it is none, or nobody
// says where its symbol is. The code may go there by a stub.
func (v *View) relocatedTo(at machine.Addr) machine.Addr {
	c := v.space.At(at)
	if c == nil || c.Image == nil || !c.Image.Relocatable() {
		return 0
	}
	s := c.Image.CodeAt(at)
	if s == nil {
		return 0
	}
	if c.Relocations == nil {
		c.Relocations = map[machine.Addr]object.Relocation{}
		for _, s := range c.Image.Code() {
			_, list, err := s.Relocated()
			for _, r := range list {
				if err == nil {
					c.Relocations[s.Loaded()+machine.Addr(r.Offset)] = r
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
	sym, _ := v.target.FindSymbol(r.Symbol())
	return sym.Addr
}
