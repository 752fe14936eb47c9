package deopt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/vm/vmlayout"
)

// readVM returns the reading of the frame's record by the first VM layout that fits it. It caches the reading, which is the same for every exit
// at the record, until the memory from which the layout made the frames is unmapped or has changed.
func (f *Frame) readVM() *vmlayout.Reading {
	m, target := f.match, vmlayout.OfTarget(f.view.target, f.image())
	target.Memory = f.view.vmMemory
	switch known := m.Site != nil || m.agreements() != nil || m.counted(); {
	case m.read != nil && m.readAt == f.Record.Moment && m.read.Holds(target):
	case known:
		site := vmlayout.OfRecord(m.Site, m.Sites, m.Entry, m.recorded(), f.Function, f.Record)
		site.Target = target
		m.read = vmlayout.First(vmlayout.For(f.image(), f.view.vms), site)
	default:
		m.read = vmlayout.Uncounted(vmlayout.For(f.image(), f.view.vms), f.Record.ID)
	}
	m.readAt = f.Record.Moment
	return m.read
}

// image returns the image that contains the frame's code, or nil.
func (f *Frame) image() *object.Image {
	if f.code == nil {
		return nil
	}
	return f.code.Image
}

// Follows reports whether a VM layout reads memory at the frame's record beyond the record's locations, or may read it later.
func (f *Frame) Follows() bool {
	if len(f.view.vms) == 0 {
		return false
	}
	r := f.readVM()
	return r.Shape.Follows() || r.Unread()
}

// NamedByVM reports whether functions of the frame's VM layout name its methods or describe its positions. They may read memory.
func (f *Frame) NamedByVM() bool { return len(f.view.vms) > 0 && f.readVM().Shape.Names() }

// CollectNames makes the view record in read, from now on, how it reads the names of VM frames. A nil read ends the recording.
func (v *View) CollectNames(read *vmlayout.NamesRead) { v.source.Names = read }

// fixed reports whether memory of the target cannot change as long as it is mapped: no thread can write to it.
func (v *View) fixed(at machine.Addr, size int) bool {
	m, ok := v.target.Mapping(at)
	return ok && !m.Write && !m.Share && at+machine.Addr(size) <= m.End
}

// Fixed returns the memory of the target that cannot change, for names that are read after the thread has left an exit.
func (v *View) Fixed() machine.Memory { return fixedMemory{v} }

type fixedMemory struct{ view *View }

// ReadMemory implements [machine.Memory].
func (f fixedMemory) ReadMemory(p []byte, addr machine.Addr) error {
	if !f.view.fixed(addr, len(p)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "it was not read when the thread stopped here, and may have changed since"}
	}
	return f.view.target.ReadMemory(p, addr)
}

// WaitsInVM reports whether the innermost VM frame of the frame's record waits for a call.
func (f *Frame) WaitsInVM() bool {
	if len(f.view.vms) == 0 {
		return false
	}
	s := f.readVM().Shape
	return s != nil && s.Frames[0].Resume == frame.Calling
}

// fillVM reads the frames of the user's virtual machine out of the slots of the record.
func (f *Frame) fillVM() {
	if len(f.view.vms) > 0 {
		f.view.source.Slots = f.Slots
		f.VM = f.readVM().Read(f.view.source)
	}
}

// interpreterTime bounds the time that layouts take for all frames of the VM's interpreter in one view.
const interpreterTime = 5 * time.Second

// fillInterpreter reads the VM's frames from a native frame that runs the VM's interpreter.
func (f *Frame) fillInterpreter() {
	v := f.view
	at := slices.IndexFunc(v.vms, func(l *vmlayout.Layout) bool { return l.Interprets(f.Function, f.Demangled, names.Short(f.Function)) })
	if at < 0 {
		return
	}
	refused := ""
	switch why := f.Uncertain(); {
	case why != "":
		refused = "its native frame is a guess: " + why
	case v.source.Spent > interpreterTime:
		refused = fmt.Sprintf("the layouts took over %v for frames of the VM's interpreter", interpreterTime)
	}
	if refused != "" {
		f.VM = &frame.VM{Layout: v.vms[at].Name, Error: refused}
		return
	}
	began := time.Now()
	target := vmlayout.OfTarget(v.target, f.image())
	target.Memory = v.vmMemory
	v.source.Slots = nil
	f.VM = v.vms[at].Interpreter(&vmlayout.Site{Function: f.Function, Kind: vmlayout.NativeSite, Target: target, Native: f.native()}, v.source)
	v.source.Spent += time.Since(began)
}

// native returns the properties of a native frame that a layout may use.
func (f *Frame) native() *vmlayout.Native {
	p, arch := &f.physical, f.view.target.Arch()
	n := &vmlayout.Native{PC: uint64(p.PC), CFA: vmlayout.Register{Bits: uint64(p.CFA), Why: p.NoCFA}, Registers: map[string]vmlayout.Register{}}
	for _, r := range arch.Registers() {
		info, _ := arch.Register(r)
		if info.Size > 8 {
			continue
		}
		is := vmlayout.Register{}
		if bits, err := p.Registers.Uint(r); err != nil {
			is.Why = err.Error()
		} else {
			is.Bits = bits
		}
		n.Registers[info.Name] = is
	}
	return n
}

// SetVM does the same as [View.Set] for a value of the VM's frames, named as in [frame.VM.Slots]. The slot gets the bits that the layout's codec
// makes of text, which is parsed in the value's current type.
func (v *View) SetVM(f *Frame, name, text string) (*View, *Frame, error) {
	if f.Interprets() {
		return nil, nil, fmt.Errorf("%s of %s: values of the VM's interpreter are read-only", name, f.Title())
	}
	all := f.VM.Slots()
	at := slices.IndexFunc(all, func(s frame.Slot) bool { return s.Name == name })
	if at < 0 {
		return nil, nil, fmt.Errorf("%s has no %s", f.Title(), name)
	}
	if !all[at].Read() {
		return nil, nil, fmt.Errorf("%s of %s: %s", name, f.Title(), all[at].Reason)
	}
	raw, err := f.ParseSlot(&all[at], text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s of %s: %w", name, f.Title(), err)
	}
	order := f.view.target.Arch().Order
	from := *v.source
	from.Slots = f.Slots
	kind, of, _ := strings.Cut(all[at].Type.Source, " ") // a reference may have a kind
	changes, err := f.readVM().Shape.Encode(&from, name, vmlayout.Typed{Type: kind, Text: of, Bits: frame.Number(raw, order).Uint64()})
	if err != nil {
		return nil, nil, fmt.Errorf("%s of %s: %w", name, f.Title(), err)
	}
	changed := *f
	changed.Slots, changed.Notes = slices.Clone(f.Slots), slices.Clone(f.Notes)
	for _, c := range changes {
		slot := slices.IndexFunc(changed.Slots, func(s frame.Slot) bool { return s.Index == c.Operand })
		if slot < 0 || changed.Slots[slot].Bytes == nil {
			return nil, nil, fmt.Errorf("%s of %s: live value %d is not among the slots that were read", name, f.Title(), c.Operand)
		}
		s := &changed.Slots[slot]
		s.Bytes = fixed(c.Bits, 8*len(s.Bytes), len(s.Bytes), order)
		s.Value, s.Hex, s.Location, s.GC = s.Type.Format(s.Bytes, order), frame.HexBytes(s.Bytes, order), nil, nil
	}
	return v.with(f, &changed, name)
}

// Reference returns the address that a word in memory refers to, by the frame's VM layout ([vmlayout.Layout.Reference]).
func (f *Frame) Reference(bits uint64) (machine.Addr, bool) { return f.readVM().Layout.Reference(bits) }
