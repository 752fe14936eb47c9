package dap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-dap"

	"example.com/reframe/deopt/frame"
)

// parts is a value with parts, such as a vector or a struct.
type parts struct {
	kind frame.Type
	raw  []byte
}

// object is an object of a virtual machine that exists only as its fields.
type object struct {
	*entry
	id int64
}

// variable is a variable that was not sent to the client yet. The method given assigns a reference to its children when it is sent.
type variable struct {
	dap.Variable
	set  string // the name by which it can be set; "" if it cannot be set
	open any    // the children, as a parts or an object; nil if there are none
	hex  frame.Hex
}

// spelled returns the value of a slot as text, or the reason why it is unavailable.
func spelled(s *frame.Slot, hex bool) string { return valued(s.Status, s.Value, s.Hex, s.Reason, hex) }

func valued(status frame.Status, value string, bits frame.Hex, reason string, hex bool) string {
	text := value
	if text == "" || hex && bits != "" {
		text = string(bits)
	}
	switch status {
	case frame.OK, "":
		return text
	case frame.Guessed:
		return text + " (a guess: " + reason + ")"
	}
	if reason != "" {
		return string(status) + ": " + reason
	}
	return string(status)
}

// ofSlot returns the variable for a slot.
func ofSlot(s *frame.Slot, hex bool) variable {
	name := cmp.Or(s.Name, fmt.Sprintf("#%d", s.Index))
	v := variable{Variable: dap.Variable{Name: name, EvaluateName: name, Value: spelled(s, hex), Type: s.Type.Source}, hex: s.Hex}
	if s.Name != "" {
		v.set = s.Name
	}
	if s.Variable != "" {
		v.Type = strings.TrimSpace(v.Type + " " + s.Variable)
	}
	v.composite(s.Type, s.Bytes)
	v.pointer(s.Type, s.Hex)
	return v
}

// composite gives a variable children if its value has parts and was read.
func (v *variable) composite(t frame.Type, raw []byte) {
	if t.Kind == frame.Vector && t.Elem.Bits%8 != 0 {
		return // its parts are not whole bytes
	}
	if t.Composite() && len(raw) >= t.Size() {
		v.open = &parts{t, raw}
		if t.Kind == frame.Struct {
			v.NamedVariables = len(t.Fields)
		} else {
			v.IndexedVariables = t.Len
		}
		v.set = ""
	}
}

func (v *variable) pointer(t frame.Type, hex frame.Hex) {
	if t.Kind == frame.Pointer {
		v.MemoryReference = string(hex)
	}
}

// ofVM returns the variable for a value of a virtual machine.
func ofVM(e *entry, name, evaluate string, is *frame.VMValue, hex bool) variable {
	v := variable{Variable: dap.Variable{Name: name, EvaluateName: evaluate, Type: is.Type}, set: evaluate, hex: is.Hex}
	if is.Object != nil {
		v.open, v.set = &object{e, *is.Object}, ""
		v.Value = fmt.Sprintf("object[%d]", *is.Object)
		for _, o := range e.level.Physical.VM.Objects {
			if o.ID == *is.Object {
				v.Value += " " + o.Class
				v.NamedVariables = len(o.Fields)
			}
		}
		return v
	}
	v.Value = valued(is.Status, is.Value, is.Hex, is.Reason, hex)
	if is.Status != frame.OK {
		v.set = ""
	}
	v.composite(is.Kind, is.Bytes)
	v.pointer(is.Kind, is.Hex)
	return v
}

// said returns a variable that the client cannot set and that has no children.
func said(name, value string) variable {
	return variable{Variable: dap.Variable{Name: name, Value: value}}
}

// inScope lists the values of a scope.
func (c *conn) inScope(s *scope) (list []variable, err error) { return c.values(s, false) }

func (c *conn) values(s *scope, hex bool) (list []variable, err error) {
	f := s.level.Physical
	if f == nil {
		if s.kind == runScope {
			return c.ofRun(), nil
		}
		slots, err := c.target.Session.SlotsOf(s.level)
		for n := range slots {
			list = append(list, ofSlot(&slots[n], hex))
		}
		return list, err
	}
	switch s.kind {
	case valuesScope:
		for n := range f.Slots {
			list = append(list, ofSlot(&f.Slots[n], hex))
		}
	case registersScope:
		for _, reg := range f.View().Target().Arch().Registers() {
			list = append(list, c.register(s.entry, int(reg)))
		}
	case recordScope:
		return ofRecord(&f.Frame), nil
	default:
		return ofVMScope(s, hex), nil
	}
	return list, nil
}

// ofVMScope lists the values of a virtual machine's frame.
func ofVMScope(s *scope, hex bool) (list []variable) {
	vm := s.level.Physical.VM
	frames := vm.Frames
	f, prefix := &frames[max(s.vm, 0)], ""
	if s.vm > 0 {
		prefix = fmt.Sprintf("caller[%d].", s.vm)
	}
	numbered := func(of string, values []frame.VMValue) {
		for n := range values {
			is := &values[n]
			name := fmt.Sprintf("%s[%d]", of, *is.Index)
			v := ofVM(s.entry, name, prefix+name, is, hex)
			if is.Name != "" {
				v.Name = is.Name
			}
			list = append(list, v)
		}
	}
	switch s.kind {
	case localsScope:
		numbered("local", f.Locals)
		for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
			x := f.Extra[name]
			list = append(list, ofVM(s.entry, name, prefix+name, &x, hex))
		}
	case operandsScope:
		numbered("stack", f.Stack)
	case monitorsScope:
		for n := range f.Monitors {
			m := &f.Monitors[n]
			v := ofVM(s.entry, fmt.Sprintf("monitor[%d]", n), "", &m.Owner, hex)
			v.set = ""
			if m.Eliminated {
				v.Value += " (left out by the compiler)"
			}
			list = append(list, v)
		}
	case objectsScope:
		for _, o := range vm.Objects {
			v := said(fmt.Sprintf("object[%d]", o.ID), cmp.Or(o.Class, "unknown class: "+o.Reason))
			v.open, v.NamedVariables = &object{s.entry, o.ID}, len(o.Fields)
			list = append(list, v)
		}
	}
	return list
}

// ofObject lists the fields of an object.
func ofObject(o *object, hex bool) (list []variable) {
	for _, is := range o.level.Physical.VM.Objects {
		if is.ID != o.id {
			continue
		}
		for n := range is.Fields {
			f := &is.Fields[n]
			at := cmp.Or(f.Name, strconv.FormatInt(f.At, 10))
			list = append(list, ofVM(o.entry, at, fmt.Sprintf("object[%d].%s", is.ID, at), &f.VMValue, hex))
		}
	}
	return list
}

// ofParts lists the parts of a value.
func (c *conn) ofParts(p *parts, hex bool) (list []variable) {
	order := c.order()
	add := func(name string, t frame.Type, at int) {
		if at+t.Size() > len(p.raw) {
			list = append(list, said(name, "unavailable: it was not read"))
			return
		}
		raw := p.raw[at : at+t.Size()]
		v := variable{Variable: dap.Variable{Name: name, Type: t.Source, Value: t.Format(raw, order)}, hex: frame.HexBytes(raw, order)}
		if v.Value == "" || hex {
			v.Value = string(v.hex)
		}
		v.composite(t, raw)
		v.pointer(t, v.hex)
		list = append(list, v)
	}
	t := p.kind
	switch t.Kind {
	case frame.Struct:
		for n, f := range t.Fields {
			add(strconv.Itoa(n), f.Type, f.Offset)
		}
	case frame.Array:
		for n := range t.Len {
			add(fmt.Sprintf("[%d]", n), *t.Elem, n*t.Stride)
		}
	case frame.Vector: // elements are packed without padding
		for n := range t.Len {
			add(fmt.Sprintf("[%d]", n), *t.Elem, n*t.Elem.Bits/8)
		}
	}
	return list
}

// ofRecord describes the record of a frame.
func ofRecord(f *frame.Frame) (list []variable) {
	r := f.Record
	list = append(list, said("id", strconv.FormatUint(r.ID, 10)), said("site", r.Site), said("moment", string(r.Moment)), said("offset", strconv.FormatUint(r.Offset, 10)))
	if f.Resume != nil {
		at := "@" + f.Resume.Function + ", block %" + f.Resume.Block
		if f.Resume.After != "" {
			at += ", behind " + f.Resume.After
		}
		if f.Resume.At != "" {
			at += ", before " + f.Resume.At
		}
		list = append(list, said("resumes in", at))
	}
	list = append(list, said("found by", f.Rule))
	for n := range f.Slots {
		s := &f.Slots[n]
		if s.Location != nil {
			list = append(list, said(cmp.Or(s.Operand, s.Name, fmt.Sprintf("#%d", s.Index))+" lies in", s.Location.String()))
		}
	}
	for n, note := range f.Notes {
		list = append(list, said(fmt.Sprintf("note %d", n+1), note))
	}
	return list
}

// ofRun describes the interpreter's run.
func (c *conn) ofRun() (list []variable) {
	run := c.target.Session.Run()
	if run == nil {
		return nil
	}
	return []variable{said("instructions since the exit", strconv.FormatUint(run.Steps(), 10)), said("output", strconv.Quote(run.Output()))}
}

// opened lists the variables of the scope, value or object that a reference names.
func (c *conn) opened(reference int, hex bool) ([]variable, error) {
	is, err := c.refs.get(reference)
	if err != nil {
		return nil, err
	}
	switch is := is.(type) {
	case *scope:
		return c.values(is, hex)
	case *parts:
		return c.ofParts(is, hex), nil
	case *object:
		return ofObject(is, hex), nil
	}
	return nil, fmt.Errorf("reference %d is a frame: use scopes", reference)
}

func (c *conn) variables(r *dap.VariablesRequest) error {
	a := r.Arguments
	if a.Start < 0 || a.Count < 0 {
		return fmt.Errorf("start %d and count %d: must be 0 or more", a.Start, a.Count)
	}
	list, err := c.opened(a.VariablesReference, a.Format != nil && a.Format.Hex)
	if err != nil {
		return err
	}
	indexed := func(v variable) bool { return strings.HasPrefix(v.Name, "[") }
	switch a.Filter {
	case "indexed":
		list = slices.DeleteFunc(list, func(v variable) bool { return !indexed(v) })
	case "named":
		list = slices.DeleteFunc(list, indexed)
	}
	list = list[min(a.Start, len(list)):]
	if a.Count > 0 {
		list = list[:min(a.Count, len(list))]
	}
	body := dap.VariablesResponseBody{Variables: []dap.Variable{}}
	for _, v := range list {
		body.Variables = append(body.Variables, c.given(v))
	}
	c.respond(&r.Request, &dap.VariablesResponse{Body: body})
	return nil
}

// given returns a variable in the form of the protocol, with a reference to its children.
func (c *conn) given(v variable) dap.Variable {
	if v.open != nil {
		v.VariablesReference = c.refs.add(v.open)
	}
	if v.set == "" {
		v.PresentationHint = &dap.VariablePresentationHint{Attributes: []string{"readOnly"}}
	}
	return v.Variable
}
