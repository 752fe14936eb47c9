package frame

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// VM holds the frames of the user's own virtual machine that one physical frame contains, as a layout describes them. They are listed beside the
// slots and refer to them: the numbers of physical frames do not change.
type VM struct {
	Layout  string     `json:"layout"`            // its name
	Frames  []VMFrame  `json:"frames,omitempty"`  // innermost first: the inlined ones, and last the function's own
	Objects []VMObject `json:"objects,omitempty"` // that exist only as their fields, in ascending order of their ids
	Error   string     `json:"error,omitempty"`   // why there are none: the place in the layout, and the operand of the record
}

// How a VM frame is resumed.
const (
	Reexecute = "reexecute" // the instruction at its position has not run
	Behind    = "after"     // it has run
	Calling   = "in-call"   // it is a call that is running, and its result is not there yet
	Rethrow   = "rethrow"   // it has thrown
)

// VMFrame is one activation of a method.
type VMFrame struct {
	Method   string             `json:"method,omitempty"`   // its name, or what the record has for it
	Position *int64             `json:"position,omitempty"` // in its code, as the VM counts; nil where it is not known
	Resume   string             `json:"resume"`             // reexecute, after, in-call, rethrow
	Locals   []VMValue          `json:"locals,omitempty"`
	Stack    []VMValue          `json:"stack,omitempty"` // of operands, bottom first
	Monitors []VMMonitor        `json:"monitors,omitempty"`
	Extra    map[string]VMValue `json:"extra,omitempty"`
	Info     map[string]string  `json:"info,omitempty"`   // the layout's information about the position, such as a source line
	Reason   string             `json:"reason,omitempty"` // why the method or the position is unknown, or what differs from the layout's description of the position

	MethodBits uint64 `json:"-"` // what the record has for the method; 0 where that is no number
}

// VMValue is one value of a VM frame or object. Where it is an object that exists only as its fields, it has Object and no status.
type VMValue struct {
	Index  *int64 `json:"index,omitempty"` // of a local or of a place on the stack
	Name   string `json:"name,omitempty"`  // where the layout gives it one
	Type   string `json:"type,omitempty"`  // as the layout or the module spells it: i32, f64, ref
	Value  string `json:"value,omitempty"` // text in the type's natural form
	Hex    Hex    `json:"hex,omitempty"`   // the raw bits, before they were decoded
	Status Status `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	Object *int64 `json:"object,omitempty"` // id of an object of the same [VM]
	Slot   *int   `json:"slot,omitempty"`   // index of the slot that it was read from
	GC     *GC    `json:"gc,omitempty"`     // of a reference that was read from a statepoint's slot

	// Kind and Bytes are the type and the bits of the value, decoded. Bytes are nil unless it is read.
	Kind  Type   `json:"-"`
	Bytes []byte `json:"-"`
}

// OfVM reports whether a slot is a value of a virtual machine's frame, by its name: local[2].
func (s *Slot) OfVM() bool { return strings.Contains(s.Name, "[") && !strings.HasPrefix(s.Name, "%") }

// as makes a slot of a value, under a name.
func (v *VMValue) as(name string) Slot {
	s := Slot{Name: name, Type: v.Kind, Value: v.Value, Hex: v.Hex, Status: v.Status, Reason: v.Reason, Bytes: v.Bytes}
	s.Type.Source = v.Type
	switch {
	case v.Object != nil:
		s.Status, s.Reason = Missing, fmt.Sprintf("it is object %d, which was not allocated", *v.Object)
	case v.Status == Dead:
		s.Status, s.Reason = Missing, "it is dead"
	}
	if v.Slot != nil {
		s.Index = *v.Slot
	}
	return s
}

// Slots are [VM.All] as slots.
func (v *VM) Slots() (list []Slot) {
	for _, n := range v.All() {
		list = append(list, n.Value.as(n.Name))
	}
	return list
}

// Named is a value with the name of its place.
type Named struct {
	Name  string
	Value *VMValue
}

// All returns the values of the VM's frames and objects, named by their places: local[2] and stack[0] of the innermost frame, caller[1].local[2] of
// its caller, object[4].8 or object[4].x of objects, and an extra by its own name.
func (v *VM) All() (list []Named) {
	if v == nil {
		return nil
	}
	for n := range v.Frames {
		f := &v.Frames[n]
		of := ""
		if n > 0 {
			of = fmt.Sprintf("caller[%d].", n)
		}
		for k := range f.Locals {
			list = append(list, Named{fmt.Sprintf("%slocal[%d]", of, *f.Locals[k].Index), &f.Locals[k]})
		}
		for k := range f.Stack {
			list = append(list, Named{fmt.Sprintf("%sstack[%d]", of, *f.Stack[k].Index), &f.Stack[k]})
		}
		for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
			x := f.Extra[name]
			list = append(list, Named{of + name, &x})
		}
	}
	for n := range v.Objects {
		o := &v.Objects[n]
		for k := range o.Fields {
			at := fmt.Sprint(o.Fields[k].At)
			if o.Fields[k].Name != "" {
				at = o.Fields[k].Name
			}
			list = append(list, Named{fmt.Sprintf("object[%d].%s", o.ID, at), &o.Fields[k].VMValue})
		}
	}
	return list
}

// Dead is the status of a VM value that its method does not need any more.
const Dead Status = "dead"

// VMMonitor is a lock that a frame holds.
type VMMonitor struct {
	Owner      VMValue `json:"owner"`
	Eliminated bool    `json:"eliminated,omitempty"` // the compiler has left the locking out
}

// VMObject is an object that was not allocated.
type VMObject struct {
	ID     int64     `json:"id"`
	Class  string    `json:"class,omitempty"` // its name, or what the record has for it
	Fields []VMField `json:"fields,omitempty"`
	Reason string    `json:"reason,omitempty"` // why the class is not known

	ClassBits uint64 `json:"-"` // what the record has for the class; 0 where that is no number
}

// VMField is a field of an object, or an element of an array.
type VMField struct {
	At int64 `json:"at"` // offset in bytes, or number of the element
	VMValue
}

// Shows reports whether the frames show all of a slot: it is a constant of the record, as tags and counts are.
func (v *VM) Shows(s *Slot) bool {
	return v != nil && len(v.Frames) > 0 && s.Location != nil && s.Location.Constant != ""
}

// Lacks names the first value of the VM's frames that is not certain, with the reason; "" if all are.
func (v *VM) Lacks() string {
	switch {
	case v == nil:
		return ""
	case v.Error != "":
		return v.Error
	}
	for i := range v.Frames {
		if why := v.Frames[i].Reason; why != "" {
			return why
		}
		for k := range v.Frames[i].Monitors {
			if owner := &v.Frames[i].Monitors[k].Owner; owner.unsure() {
				return "the owner of a lock: " + owner.Reason
			}
		}
	}
	for i := range v.Objects {
		if why := v.Objects[i].Reason; why != "" {
			return why
		}
	}
	for _, n := range v.All() {
		if n.Value.unsure() {
			return n.Name + ": unavailable: " + n.Value.Reason
		}
	}
	return ""
}

func (v *VMValue) unsure() bool { return v.Status == Missing || v.Status == Guessed }

// Values are the slots of the frame, and the values of a virtual machine's frames as slots ([VM.Slots]).
func (f *Frame) Values() []Slot {
	if f.VM == nil { // at each exit of a trace
		return f.Slots
	}
	return slices.Concat(f.Slots, f.VM.Slots())
}
