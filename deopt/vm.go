package deopt

import "reframe/deopt/vmlayout"

// readVM is what the first of the view's layouts of virtual machines makes of the frame's record. It is the same at each exit.
func (f *Frame) readVM() *vmlayout.Reading {
	m := f.match
	switch known := m.Site != nil || m.agreements() != nil || m.counted(); {
	case m.read != nil:
	case known:
		m.read = vmlayout.First(f.view.vms, vmlayout.OfRecord(m.Site, m.Sites, m.Entry, m.recorded(), f.Function, f.Record))
	default:
		m.read = vmlayout.Uncounted(f.view.vms, f.Record.ID)
	}
	return m.read
}

// Follows says that a layout of a virtual machine reads memory at the frame's record, beside what its locations are.
func (f *Frame) Follows() bool { return len(f.view.vms) > 0 && f.readVM().Shape.Follows() }

// fillVM reads the frames of the user's virtual machine out of the slots of the record.
func (f *Frame) fillVM() {
	if len(f.view.vms) > 0 {
		f.view.source.Slots = f.Slots
		f.VM = f.readVM().Read(f.view.source)
	}
}
