package deopt

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// Accessors for packages that import this one. Their results are valid as long as the view is. Callers must not change them unless the comment of the
// accessor permits it.

// Target returns the target of the frames.
func (v *View) Target() *ptrace.Target { return v.target }

// Space returns the code of the target.
func (v *View) Space() *progspace.Space { return v.space }

// Modules returns the modules from [Options].
func (v *View) Modules() *sites.Modules { return v.modules }

// Layouts returns the layouts from [Options].
func (v *View) Layouts() []*layout.Layout { return v.layouts }

// VMs returns the layouts of virtual machines from [Options].
func (v *View) VMs() []*vmlayout.Layout { return v.vms }

// View returns the view that contains the frame.
func (f *Frame) View() *View { return f.view }

// Physical returns the physical frame: its registers, its CFA, and the rule by which it was found.
func (f *Frame) Physical() *unwind.Frame { return &f.physical }

// Code returns the image, or the piece of memory, that contains the frame's code; nil if unknown.
func (f *Frame) Code() *progspace.Objfile { return f.code }

// Match returns the record that was matched to the frame's pc, or nil.
func (f *Frame) Match() *Match { return f.match }

// WhyUnreadable returns the reason why a record that may exist for the frame cannot be read, or "".
func (f *Frame) WhyUnreadable() string { return f.unreadable }

// To returns the IR function that resumes from the frame, or nil if no module defines it.
func (f *Frame) To() *ir.Func { return f.to }

// FrameAt returns a frame for any code address, so that the address can be queried like a frame. The frame has no values and no unwind rule. m is the
// record at the address, or nil.
func (v *View) FrameAt(c *progspace.Objfile, at machine.Addr, m *Match) *Frame {
	return v.Describe(frame.Frame{PC: frame.HexOf(at)}, unwind.Frame{PC: at}, c, m)
}

// Describe makes a frame without values; [Frame.Fill] reads them. A caller with a breakpoint at a record calls Describe at each hit, to avoid a
// search for the record.
func (v *View) Describe(is frame.Frame, p unwind.Frame, c *progspace.Objfile, m *Match) *Frame {
	return &Frame{Frame: is, physical: p, code: c, match: m, view: v}
}

// Fill reads the values of the frame's record. The error is a [*layout.Error].
func (f *Frame) Fill() error { return f.fill(f.view.layouts) }

// Learn adds modules and layouts of virtual machines that became known later. A layout that the view already has is not added again. Results from
// earlier records do not change.
func (v *View) Learn(modules []*ir.Module, vms []*vmlayout.Layout) {
	v.modules.Add(modules)
	v.vms = vmlayout.Join(v.vms, vms)
}

// Move updates the view to the current state of the process. It does not change the frames that the view already has.
func (v *View) Move(t *ptrace.Target) {
	v.target, v.memory, v.space.Target, v.unwinder.Memory = t, t, t, t
	v.vmMemory = t
	v.source = v.source.Moved(t, t)
	v.source.Forget()
}

// Reading returns a copy of the view that reads values from m and not from the target's memory, and names of methods from names. m may be memory that
// came with an event.
func (v *View) Reading(m, names machine.Memory) *View {
	with := *v
	with.memory = m
	with.source = v.source.Moved(m, names)
	return &with
}

// Walk unwinds a thread of a process that may have run since the view was made. before is the stack found by the previous walk, or nil; its frames
// that are still valid are reused.
func (v *View) Walk(registers *machine.Registers, before *unwind.Stack) *unwind.Stack {
	v.patched.Forget()
	return v.unwinder.Walk(registers, before)
}

// Others returns the other records at the frame's address.
func (f *Frame) Others() []*Match { return f.others }

// Recorded returns the frame with the values of one record at its address, without layouts. m is the frame's own record or one of the others.
func (f *Frame) Recorded(m *Match) *Frame {
	plain := f.bare()
	plain.match, plain.others = m, f.besides(m)
	_ = plain.fill(nil) // only a layout can make fill fail
	return plain
}

// As returns a copy of the frame with record m instead of its own, filled with the view's layouts.
func (f *Frame) As(m *Match) (*Frame, error) {
	other := f.bare()
	other.match, other.others = m, f.besides(m)
	return other, other.Fill()
}

// bare returns a copy of the frame without the data from its record.
func (f *Frame) bare() *Frame {
	plain := *f
	plain.Slots, plain.values, plain.Notes, plain.about, plain.Resume, plain.to, plain.VM, plain.Also = nil, nil, nil, nil, nil, nil, nil, nil
	return &plain
}

// Holds returns the IR values of the module that a slot holds.
func (f *Frame) Holds(slot int) (list []ir.Value) {
	for _, b := range f.values {
		if b.slot == slot {
			list = append(list, b.value)
		}
	}
	return list
}

// Overwritten returns the evidence that the code of the record's frame was overwritten while its call was running, or "" if it was not.
func (m *Match) Overwritten(f *Frame) string {
	if m.patched == nil {
		return ""
	}
	return m.patched.Convention(f.view.space)
}
