package frame

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// VM holds the frames of a user's virtual machine that one physical frame contains, as a layout describes them. They are listed in addition to the
// slots, and refer to them. They do not change the numbers of physical frames.
type VM struct {
	Layout  string     `json:"layout"`            // name of the layout
	Frames  []VMFrame  `json:"frames,omitempty"`  // innermost first: inlined methods, then the function's own method
	Objects []VMObject `json:"objects,omitempty"` // objects that the compiled code did not allocate, so that only their fields exist; by ascending id
	Error   string     `json:"error,omitempty"`   // why there are no frames, with the position in the layout and the operand of the record
}

// The values of [VMFrame].Resume.
const (
	Reexecute = "reexecute" // the instruction at Position has not run
	Completed = "after"     // the instruction has run
	Calling   = "in-call"   // the instruction is a call that is still running and has no result yet
	Rethrow   = "rethrow"   // the instruction has thrown
)

// VMFrame is one activation of a method.
type VMFrame struct {
	Method   string             `json:"method,omitempty"`   // name, or the bits in the record if the name is unknown
	Position *int64             `json:"position,omitempty"` // position in the method's code, as the VM counts; nil if unknown
	Resume   string             `json:"resume"`             // reexecute, after, in-call or rethrow
	Locals   []VMValue          `json:"locals,omitempty"`
	Stack    []VMValue          `json:"stack,omitempty"` // operand stack, bottom first
	Monitors []VMMonitor        `json:"monitors,omitempty"`
	Extra    map[string]VMValue `json:"extra,omitempty"`
	Info     map[string]string  `json:"info,omitempty"`     // information from the layout about the position, such as a source line
	Reason   string             `json:"reason,omitempty"`   // why the method or the position is unknown, or Mismatch
	Mismatch string             `json:"mismatch,omitempty"` // the difference between the frame and the layout's description of its position
	Notes    []string           `json:"notes,omitempty"`    // optional information that the layout could not add

	MethodBits uint64 `json:"-"` // the record's value for the method; 0 if that is not a number
}

// VMValue is one value of a VM frame or object. For a reference to an object that was not allocated, it has Object and no status.
type VMValue struct {
	Index  *int64 `json:"index,omitempty"` // index of a local or of a stack entry
	Name   string `json:"name,omitempty"`  // name, if the layout gives one
	Type   string `json:"type,omitempty"`  // as the layout or the module spells it: i32, f64, ref
	Value  string `json:"value,omitempty"` // text in the type's natural form
	Hex    Hex    `json:"hex,omitempty"`   // the raw bits, as they were read
	Words  []Hex  `json:"words,omitempty"` // the raw words of a value that consists of several; Hex is then empty
	Status Status `json:"status,omitempty"`
	Code   Code   `json:"code,omitempty"` // the code of Reason
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"` // the layout's text for the object to which a reference points, such as a string
	// TextCode and TextReason say why the layout has no text for the object. They do not affect the value itself.
	TextCode   Code   `json:"text_code,omitempty"`
	TextReason string `json:"text_reason,omitempty"`

	Object *int64 `json:"object,omitempty"` // id of an object in [VM].Objects
	Slot   *int   `json:"slot,omitempty"`   // index of the slot that the value was read from
	GC     *GC    `json:"gc,omitempty"`     // for a reference read from a statepoint's slot

	// Kind is the type of the decoded value, and Bytes its bits. Bytes is nil unless the value was read.
	Kind  Type   `json:"-"`
	Bytes []byte `json:"-"`

	why error // as in [Slot]
}

// Clear removes the decoded value, and sets the status and the reason. It keeps the raw bits, which do not depend on the decoding.
func (v *VMValue) Clear(status Status, why error) {
	v.Value, v.Kind, v.Bytes = "", Type{}, nil
	v.Status = status
	v.because(why)
}

// Doubt marks the value as a guess.
func (v *VMValue) Doubt(why error) {
	v.Status = Guessed
	v.because(why)
}

func (v *VMValue) because(why error) {
	var s Slot
	s.because(why)
	v.Code, v.Reason, v.why = s.Code, s.Reason, s.why
}

// Interprets reports whether the frame is one of the VM's own interpreter, as a layout describes it. Its VM frames are then those that the
// interpreter runs.
func (f *Frame) Interprets() bool { return f.Record == nil && f.VM != nil }

// OfVM reports whether the name of a slot is that of a value in a virtual machine's frame, such as local[2].
func (s *Slot) OfVM() bool { return strings.Contains(s.Name, "[") && !strings.HasPrefix(s.Name, "%") }

// as converts a value to a slot with a name.
func (v *VMValue) as(name string) Slot {
	s := Slot{Name: name, Type: v.Kind, Value: v.Value, Hex: v.Hex, Status: v.Status, Code: v.Code, Reason: v.Reason, why: v.why, Bytes: v.Bytes}
	s.Type.Source = v.Type
	switch {
	case v.Object != nil:
		s.Clear(Missing, Because(NotAllocated, *v.Object))
	case v.Status == Dead:
		s.Clear(Missing, Because(DeadValue))
	}
	if v.Slot != nil {
		s.Index = *v.Slot
	}
	return s
}

// Slots returns the values of [VM.All] as slots.
func (v *VM) Slots() (list []Slot) {
	for _, n := range v.All() {
		list = append(list, n.Value.as(n.Name))
	}
	return list
}

// Locks returns the owners of the locks that the VM's frames hold. Their names are lock[0], and in callers caller[1].lock[0].
func (v *VM) Locks() (list []Named) {
	if v == nil {
		return nil
	}
	for n := range v.Frames {
		of := ""
		if n > 0 {
			of = fmt.Sprintf("caller[%d].", n)
		}
		for k := range v.Frames[n].Monitors {
			list = append(list, Named{fmt.Sprintf("%slock[%d]", of, k), &v.Frames[n].Monitors[k].Owner})
		}
	}
	return list
}

// LockSlots returns the values of [VM.Locks] as slots.
func (v *VM) LockSlots() (list []Slot) {
	for _, n := range v.Locks() {
		list = append(list, n.Value.as(n.Name))
	}
	return list
}

// Named is a value, and the name by which users refer to it, such as local[2].
type Named struct {
	Name  string
	Value *VMValue
}

// All returns the values of the VM's frames and objects, with names. A value of the innermost frame is named local[2] or stack[0], one of its caller
// caller[1].local[2], and a field of an object object[4].8 or object[4].x. An extra value has the name that the layout gave it.
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

// Dead is the status of a VM value that its method no longer uses.
const Dead Status = "dead"

// VMMonitor is a lock that a frame holds.
type VMMonitor struct {
	Owner      VMValue `json:"owner"`
	Eliminated bool    `json:"eliminated,omitempty"` // the compiler removed the locking
}

// VMObject is an object that the compiled code did not allocate.
type VMObject struct {
	ID     int64     `json:"id"`
	Class  string    `json:"class,omitempty"` // name, or the bits in the record if the name is unknown
	Fields []VMField `json:"fields,omitempty"`
	Reason string    `json:"reason,omitempty"` // why the class is unknown

	ClassBits uint64 `json:"-"` // the record's value for the class; 0 if that is not a number
}

// VMField is a field of an object, or an element of an array.
type VMField struct {
	At      int64 `json:"at"`                // offset in bytes, or number of the element
	Element bool  `json:"element,omitempty"` // an element of an array
	VMValue
}

// Shows reports whether a list that has the VM frames can omit the slot. It can if the slot is a constant of the record, such as a tag or a count.
func (v *VM) Shows(s *Slot) bool {
	return v != nil && len(v.Frames) > 0 && s.Location != nil && s.Location.Constant != ""
}

// Lacks returns a text about the first part of the VM's frames and objects that is not certain, or "" if all parts are certain.
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

// Mismatches returns the difference between a frame and the layout's description of its position, for the first frame that differs, or "".
func (v *VM) Mismatches() string {
	for n := range v.Frames {
		if f := &v.Frames[n]; f.Mismatch != "" {
			at := "?"
			if f.Position != nil {
				at = fmt.Sprint(*f.Position)
			}
			return fmt.Sprintf("%s @ %s has %s", f.Method, at, f.Mismatch)
		}
	}
	return ""
}

func (v *VMValue) unsure() bool { return v.Status == Missing || v.Status == Guessed }

// Facts returns [Frame.Values], followed by facts about the frames of a virtual machine as slots. For the innermost frame they are named method,
// position and resume, and for its callers caller[1].method and so on. The entry "line" of the layout's information is named info.line. Each value
// that has a name in the layout is also listed under that name.
func (f *Frame) Facts() []Slot {
	if f.VM == nil {
		return f.Slots
	}
	return slices.Concat(f.Slots, f.VM.Facts())
}

// Facts returns [VM.Slots], followed by the facts of [Frame.Facts].
func (v *VM) Facts() []Slot {
	list := v.Slots()
	for _, n := range v.All() {
		if n.Value.Name != "" && n.Value.Name != n.Name {
			name := n.Value.Name
			if at := strings.LastIndex(n.Name, "."); strings.HasPrefix(n.Name, "caller[") && at >= 0 {
				name = n.Name[:at+1] + name
			}
			list = append(list, n.Value.as(name))
		}
	}
	for n := range v.Frames {
		f, of := &v.Frames[n], ""
		if n > 0 {
			of = fmt.Sprintf("caller[%d].", n)
		}
		list = append(list, fact(of+"method", f.Method), fact(of+"resume", f.Resume))
		if f.Position != nil {
			list = append(list, fact(of+"position", fmt.Sprint(*f.Position)))
		}
		for _, key := range slices.Sorted(maps.Keys(f.Info)) {
			list = append(list, fact(of+"info."+key, f.Info[key]))
		}
	}
	return list
}

// Text is the type of a slot that holds a text.
const Text = "text"

// fact returns a slot that holds a text.
func fact(name, text string) Slot {
	return Slot{Name: name, Type: Type{Source: Text}, Value: text, Status: OK}
}

// Values returns the slots of the frame, and the values of a virtual machine's frames as slots ([VM.Slots]).
func (f *Frame) Values() []Slot {
	if f.VM == nil { // the common case in a trace: return without a copy
		return f.Slots
	}
	return slices.Concat(f.Slots, f.VM.Slots())
}
