package progspace

import (
	"fmt"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
)

// Named returns an address as its function and offset, or "" if it is in no function.
func (s *Space) Named(addr machine.Addr) string {
	s.Target.ReadObject(addr)
	c := s.At(addr)
	if c == nil {
		return ""
	}
	name, start, ok := c.NameAt(addr)
	if !ok {
		return ""
	}
	return Spell(name, start, addr)
}

// Spell formats an address as an offset from a symbol, or returns "" if the symbol has no name.
func Spell(name string, start, addr machine.Addr) string {
	switch {
	case name == "":
		return ""
	case start == addr:
		return names.Short(name)
	}
	return fmt.Sprintf("%s+%#x", names.Short(name), uint64(addr-start))
}

// NameOf returns the name of the function that starts at an address, or the address.
func (s *Space) NameOf(addr machine.Addr) string {
	if c := s.At(addr); c != nil {
		if name, start, ok := c.NameAt(addr); ok && start == addr {
			return name
		}
	}
	if f, _, ok := s.Target.PerfName(addr); ok && f.Start == addr {
		return f.Name
	}
	return addr.String()
}

// StartingAt returns the name of the function that starts at addr.
func (s *Space) StartingAt(addr machine.Addr) (string, bool) {
	c := s.At(addr)
	if c == nil {
		return "", false
	}
	name, start, ok := c.NameAt(addr)
	return name, ok && start == addr && name != ""
}

// FunctionOf returns the start of a frame's function, or 0 if it is unknown.
func (s *Space) FunctionOf(f *unwind.Frame) machine.Addr {
	if f == nil {
		return 0
	}
	if c := s.At(f.Lookup()); c != nil {
		if _, start, ok := c.NameAt(f.Lookup()); ok {
			return start
		}
	}
	return f.FDE.Start
}

// Exporter returns the image that exports a name, or nil.
func (s *Space) Exporter(name string) *object.Image {
	if sym, ok := s.Target.FindSymbol(name); ok {
		if c := s.At(sym.Addr); c != nil {
			return c.Image
		}
	}
	return nil
}
