package vmlayout

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace"
)

// OfTarget returns the memory that a layout may read to make the frames of a record. A symbol of the record's own image, which may be nil, hides those
// of others.
func OfTarget(t *ptrace.Target, own *object.Image) *Target {
	return &Target{Memory: t, Order: t.Arch().Order, Symbol: func(name string) (machine.Addr, bool) {
		if own != nil {
			if s, ok := own.Only(name); ok {
				return s.Addr, true
			}
		}
		s, ok := t.FindSymbol(name)
		return s.Addr, ok
	}}
}
