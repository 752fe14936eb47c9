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

// The parts of a view that packages above this one use, beyond the abstract frames. They are valid as long as the view is, and must not be changed
// unless their comments permit it.

// Target returns the target of the frames.
func (v *View) Target() *ptrace.Target { return v.target }

// Space returns the code of the target.
func (v *View) Space() *progspace.Space { return v.space }

// Modules returns those that the view was made with ([Options].Modules).
func (v *View) Modules() *sites.Modules { return v.modules }

// Layouts returns those that the view was made with ([Options].Layouts).
func (v *View) Layouts() []*layout.Layout { return v.layouts }

// VMs are those that the view was made with ([Options].VMs).
func (v *View) VMs() []*vmlayout.Layout { return v.vms }

// View is the view that the frame is of.
func (f *Frame) View() *View { return f.view }

// Physical is the activation on the machine's stack that the frame was made of: its registers, its CFA, how it was found.
func (f *Frame) Physical() *unwind.Frame { return &f.physical }

// Code returns the source of the frame's code, nil if unknown.
func (f *Frame) Code() *progspace.Objfile { return f.code }

// Match returns the record that describes the frame's place, nil for none.
func (f *Frame) Match() *Match { return f.match }

// Blind returns the reason why a record that may exist for the frame cannot be read, or "".
func (f *Frame) Blind() string { return f.blind }

// To is the function that resumes from the frame, nil where no module defines it.
func (f *Frame) To() *ir.Func { return f.to }

// FrameAt returns a frame at any place in the code, so that the place can be queried like a frame. It has no values, and no rule by which it was
// found. m is the record there, or nil.
func (v *View) FrameAt(c *progspace.Objfile, at machine.Addr, m *Match) *Frame {
	return v.Describe(frame.Frame{PC: frame.HexOf(at)}, unwind.Frame{PC: at}, c, m)
}

// Describe makes a frame without its values, which [Frame.Fill] reads. A caller that watches a place describes each hit this way, without searching
// for its record again.
func (v *View) Describe(is frame.Frame, p unwind.Frame, c *progspace.Objfile, m *Match) *Frame {
	return &Frame{Frame: is, physical: p, code: c, match: m, view: v}
}

// Fill reads the values of the frame's record. The error is a [*layout.Error].
func (f *Frame) Fill() error { return f.fill(f.view.layouts) }

// Learn adds modules and layouts of virtual machines that became known later; a layout that the view has is not added again. Results from earlier
// records do not change.
func (v *View) Learn(modules []*ir.Module, vms []*vmlayout.Layout) {
	v.modules.Add(modules)
	v.vms = vmlayout.Join(v.vms, vms)
}

// Move takes the view to the process as it is now. The frames that it has are of the moment before.
func (v *View) Move(t *ptrace.Target) {
	v.target, v.memory, v.space.Target, v.unwinder.Memory = t, t, t, t
	v.source = v.source.Moved(t, t)
}

// Reading is the view with values that are read from other memory than the target's, such as what came with an event.
func (v *View) Reading(m machine.Memory) *View {
	with := *v
	with.memory = m
	with.source = v.source.Moved(m, v.target)
	return &with
}

// Walk unwinds a thread of a process that may have run since the view was made. before is its stack as it was found the last time, or nil:
// what is still so is taken from it.
func (v *View) Walk(registers *machine.Registers, before *unwind.Stack) *unwind.Stack {
	v.patched.Forget()
	return v.unwinder.Walk(registers, before)
}

// Others are the other records at the frame's address.
func (f *Frame) Others() []*Match { return f.others }

// Recorded returns the frame as a record at its address has it alone, without layouts. m is its own record or one of the others.
func (f *Frame) Recorded(m *Match) *Frame {
	plain := f.bare()
	plain.match, plain.others = m, f.besides(m)
	_ = plain.fill(nil) // which only a layout can make fail
	return plain
}

// As returns the frame as another match than its own has it, with the view's layouts.
func (f *Frame) As(m *Match) (*Frame, error) {
	other := f.bare()
	other.match, other.others = m, f.besides(m)
	return other, other.Fill()
}

// bare is the frame without what its record says.
func (f *Frame) bare() *Frame {
	plain := *f
	plain.Slots, plain.values, plain.Notes, plain.Resume, plain.to, plain.VM, plain.Also = nil, nil, nil, nil, nil, nil, nil
	return &plain
}

// Holds are the values of the module that a slot holds.
func (f *Frame) Holds(slot int) (list []ir.Value) {
	for _, b := range f.values {
		if b.slot == slot {
			list = append(list, b.value)
		}
	}
	return list
}

// Overwritten returns the evidence that the record is that of a frame whose code was overwritten during its call, or "" if it was not.
func (m *Match) Overwritten(f *Frame) string {
	if m.patched == nil {
		return ""
	}
	return m.patched.Convention(f.view.space)
}
