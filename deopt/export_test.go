package deopt

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/ptrace"
)

// Internals for the tests, which are in another package.

const MaxMoves = maxMoves

var MovesTo = movesTo

// WithCode returns a copy of the frame with other code.
func (f *Frame) WithCode(c *progspace.Objfile) *Frame {
	other := *f
	other.code = c
	return &other
}

func (s *Stack) CompiledTwice(f *Frame) string { return s.compiledTwice(f) }

func (m *Match) RegistersAt(f *unwind.Frame, arch *machine.Arch) *machine.Registers {
	return m.registersAt(f, arch)
}

func (r *Reader) Slot(index int, name string, t frame.Type, l stackmap.Location) frame.Slot {
	return r.slot(index, name, t, l)
}

// MissingFor returns the error for a frame of the target that cannot resume because a slot has no value.
func MissingFor(t *ptrace.Target, s frame.Slot, p interp.Point) (string, error) {
	f := &Frame{Frame: frame.Frame{Slots: []frame.Slot{s}}, view: &View{target: t}}
	return f.missing(p, []string{s.Name})
}
