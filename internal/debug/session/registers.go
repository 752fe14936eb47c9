package session

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
)

// Registers lists the general registers of a physical frame as its function sees them, and the program counter. The names of the slots are those in
// expressions, such as $rsp. An unavailable register has a reason.
func Registers(at Level) (list []frame.Slot) {
	if at.Physical == nil {
		return nil
	}
	physical := at.Physical.Physical()
	regs := physical.Registers
	arch := regs.Arch()
	word := frame.Type{Kind: frame.Int, Bits: 8 * arch.Pointer}
	add := func(name string, v uint64, err error) {
		is := frame.Slot{Index: len(list), Name: "$" + name, Type: word, Status: frame.OK}
		if err != nil {
			is.Clear(frame.Missing, err)
		} else {
			is.Bytes = make([]byte, arch.Pointer)
			arch.PutUint(is.Bytes, v)
			is.Hex = frame.HexOf(v)
			is.Value = string(is.Hex)
		}
		list = append(list, is)
	}
	for _, reg := range arch.Registers() {
		if info, _ := arch.Register(reg); info.Class == machine.General && reg != arch.PC {
			v, err := regs.Uint(reg)
			add(info.Name, v, err)
		}
	}
	add("pc", uint64(physical.PC), nil)
	return list
}

// Places counts the places in the current code of the target at which a breakpoint would stop the process. Code that is loaded later may add places.
func (s *Session) Places(b *Breakpoint) (int, error) {
	t, err := s.Target()
	if err != nil {
		return 0, err
	}
	o := trace.Options{Options: s.config.Options, ExitFilter: b.ExitFilter, Warn: func(string) {}}
	if b.At != nil {
		o.At = append(o.At, b.At)
	}
	planned, _ := trace.Plan(t, o) // on an error the code has no such places
	n := 0
	for _, p := range planned {
		if n += len(p.Exits); p.Symbol != "" && b.At != nil && b.At.Match(p.Symbol) {
			n++
		}
	}
	return n, nil
}
