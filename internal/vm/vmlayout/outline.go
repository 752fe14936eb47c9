package vmlayout

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
)

// Outline holds the VM frames of a record without an exit. It has the source of each value; only constants have a value.
type Outline struct {
	Layout       string          `json:"layout,omitempty"`        // empty if no layout returned frames
	Error        string          `json:"error,omitempty"`         // why there are no frames
	NeedsProcess bool            `json:"needs_process,omitempty"` // the layout reads memory to make the frames
	Frames       []OutlineFrame  `json:"frames,omitempty"`        // innermost first
	Objects      []OutlineObject `json:"objects,omitempty"`       // objects that exist only as their fields
}

// OutlineFrame is a VM frame of an [Outline].
type OutlineFrame struct {
	Method       string            `json:"method,omitempty"`        // name, or the bits in the record
	MethodFrom   string            `json:"method_from,omitempty"`   // source of a method that is known only at an exit
	Position     *int64            `json:"position,omitempty"`      // nil if it is not a constant
	PositionFrom string            `json:"position_from,omitempty"` // source of a position that is known only at an exit
	Resume       string            `json:"resume"`
	Locals       []OutlineValue    `json:"locals,omitempty"`
	Stack        []OutlineValue    `json:"stack,omitempty"`
	Monitors     []OutlineValue    `json:"monitors,omitempty"`
	Extra        []OutlineValue    `json:"extra,omitempty"`
	Info         map[string]string `json:"info,omitempty"`
	Notes        []string          `json:"notes,omitempty"` // facts that are unknown without an exit, and mistakes in names and info
}

// OutlineObject is an object of an [Outline].
type OutlineObject struct {
	ID        int64          `json:"id"`
	Class     string         `json:"class,omitempty"`
	ClassFrom string         `json:"class_from,omitempty"`
	Fields    []OutlineValue `json:"fields,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
}

// OutlineValue is a local, an entry of the operand stack, a monitor, a field or an extra value of an [Outline].
type OutlineValue struct {
	Index      *int64 `json:"index,omitempty"` // number of a local or stack entry; the offset of a field, or the index of an element
	Element    bool   `json:"element,omitempty"`
	Name       string `json:"name,omitempty"`
	Type       string `json:"type,omitempty"`
	From       string `json:"from"`               // "operand 3 (%x)", "dead", "object 1", "memory at operand 3 + 8"
	Value      string `json:"value,omitempty"`    // the value, if it is a constant
	Operands   []int  `json:"operands,omitempty"` // numbers of the operands that From names
	Object     *int64 `json:"object,omitempty"`   // id of an object of the same record
	Eliminated bool   `json:"eliminated,omitempty"`
}

// Outline describes the frames that a reading gives a site.
func (r *Reading) Outline(site *Site) *Outline {
	out := &Outline{}
	if r.Layout == nil {
		return out
	}
	out.Layout = r.Layout.Name
	var wrong *Error
	switch {
	case errors.As(r.Err, &wrong) && wrong.NeedsTarget:
		out.NeedsProcess, out.Error = true, "the layout reads memory, which only a process or a core has"
	case r.Err != nil:
		out.Error = r.Err.Error()
	default:
		o := &outliner{shape: r.Shape, site: site, from: &Source{Memory: nowhere{}, Static: nowhere{}, Order: binary.LittleEndian}}
		if site.Target != nil {
			o.from = site.Target.source()
		}
		o.fill(out)
	}
	return out
}

// outliner makes the outline of a shape.
type outliner struct {
	shape *Shape
	site  *Site
	from  *Source // the source from which names and info are read
}

func (o *outliner) fill(out *Outline) {
	for n := range o.shape.Frames {
		out.Frames = append(out.Frames, o.frame(n))
	}
	for n := range o.shape.Objects {
		of := &o.shape.Objects[n]
		is := OutlineObject{ID: of.ID}
		var bits uint64
		is.Class, is.ClassFrom, bits = o.name("class", of.Class, &is.Notes)
		is.Fields = o.all(of.Fields)
		o.nameAll("field", subject{Bits: bits, Name: is.Class}, is.Fields, &is.Notes)
		out.Objects = append(out.Objects, is)
	}
}

func (o *outliner) frame(n int) OutlineFrame {
	f := &o.shape.Frames[n]
	is := OutlineFrame{Resume: f.Resume}
	var method uint64
	is.Method, is.MethodFrom, method = o.name("method", f.Method, &is.Notes)
	if f.Position != nil {
		bits, known := o.site.constant(f.Position)
		p := int64(bits)
		if is.Position = &p; !known {
			is.Position, is.PositionFrom = nil, o.origin(f.Position).text()
		}
	}
	is.Locals, is.Stack = o.all(f.Locals), o.all(f.Stack)
	if is.MethodFrom == "" {
		o.nameAll("local", subject{Bits: method, Name: is.Method}, is.Locals, &is.Notes)
	}
	for k := range f.Monitors {
		owner := o.value(&f.Monitors[k].Owner)
		owner.Eliminated = f.Monitors[k].Eliminated
		is.Monitors = append(is.Monitors, owner)
	}
	for k := range f.Extra {
		v := o.value(&f.Extra[k].Value)
		v.Name = f.Extra[k].Name
		is.Extra = append(is.Extra, v)
	}
	if o.shape.Layout.has("info") && is.Position != nil && is.MethodFrom == "" {
		var err error
		if is.Info, err = o.shape.Layout.infoOf(o.from, method, *is.Position); err != nil {
			is.Notes = append(is.Notes, "info of its position: "+o.known(err).Error())
		}
		if !f.rows() {
			for _, d := range unexpected(f.Resume, len(f.Stack), len(f.Monitors), is.Info) {
				is.Notes = append(is.Notes, d.String())
			}
		}
	}
	return is
}

// known replaces the error of a function that failed because there is no memory to read.
func (o *outliner) known(err error) error {
	if needsTarget(err) {
		return errors.New("the layout reads memory, which only a process or a core has")
	}
	return err
}

// name returns the name of a method or a class, or its source if it is not a constant.
func (o *outliner) name(what string, v *Value, notes *[]string) (name, from string, bits uint64) {
	switch {
	case v == nil:
		return "", "", 0
	case v.Kind == ConstValue && v.Const.Type == "symbol":
		return v.Const.Text, "", 0
	}
	bits, known := o.site.constant(v)
	if !known {
		return "", o.origin(v).text(), 0
	}
	if v.Kind == OperandValue {
		if width := uint(o.site.Operands[v.Operand].Type.Bits); width > 0 && width < 64 {
			bits &= 1<<width - 1 // an exit reads this operand without extending its sign
		}
	}
	name = string(frame.HexOf(bits))
	if !o.shape.Layout.has(what) {
		return name, "", bits
	}
	text, err := o.shape.Layout.nameOf(what, o.from, bits)
	switch {
	case err == nil:
		name = text
	case bits != 0: // 0 needs no name, as at an exit: in many encodings it does not denote a method
		*notes = append(*notes, fmt.Sprintf("the name of its %s: %v", what, o.known(err)))
	}
	return name, "", bits
}

// nameAll names the locals of a method or the fields of a class that the record does not name.
func (o *outliner) nameAll(what string, of subject, list []OutlineValue, notes *[]string) {
	if !o.shape.Layout.has(what) {
		return
	}
	for k := range list {
		if list[k].Name != "" {
			continue
		}
		of.At = *list[k].Index
		named, err := o.shape.Layout.describe(what, o.from, of)
		if err != nil {
			*notes = append(*notes, fmt.Sprintf("the name of %s %d of %s: %v", what, of.At, of.Name, o.known(err)))
			return
		}
		list[k].Name = named
	}
}

func (o *outliner) all(list []Placed) (out []OutlineValue) {
	for k := range list {
		p := &list[k]
		v, at := o.value(&p.Value), p.At
		v.Index, v.Name, v.Element = &at, p.Name, p.Element
		if p.Run != nil {
			count := o.origin(&p.Run.Count)
			v.From = fmt.Sprintf("row from %s, %d bytes apart, their number is %s", v.From, p.Run.Stride, count.text())
			v.Operands = merged(v.Operands, count.operands)
		}
		out = append(out, v)
	}
	return out
}

// value describes a token.
func (o *outliner) value(v *Value) OutlineValue {
	from := o.origin(v)
	out := OutlineValue{Type: v.As, Operands: from.operands, From: from.text()}
	switch v.Kind {
	case OperandValue:
		if v.Operand < len(o.site.Operands) {
			out.Type = cmp.Or(out.Type, o.site.Operands[v.Operand].Type.Source)
		}
	case ObjectValue:
		id := v.Object
		out.Object = &id
	case ConstValue:
		out.Type, out.Value = v.Const.Type, v.Const.String()
	case ComputedValue:
		out.Type = cmp.Or(out.Type, "i64")
	}
	if v.Codec == nil {
		if bits, known := o.site.constant(v); known && v.Kind == OperandValue {
			out.Value = o.site.Operands[v.Operand].Constant.String()
			if v.As != "" {
				out.Value = Typed{Type: v.As, Bits: cut(bits, v.As)}.String()
			}
		}
		return out
	}
	out.Type = "" // the codec determines it
	out.From += ", decoded"
	if plain := *v; v.Kind == OperandValue && !v.Reads {
		plain.Codec = nil
		if bits, known := o.site.constant(&plain); known {
			if is, err := decode(v.Codec, o.from, []uint64{bits}); err == nil {
				out.Type, out.Value = is.Type, is.String()
			}
		}
	}
	return out
}

// maxOrigin bounds the text for the source of one value: tokens may be nested.
const maxOrigin = 512

// origin describes the source of a value in words, and lists the operands in it.
type origin struct {
	site     *Site
	b        strings.Builder
	operands []int
}

func (o *outliner) origin(v *Value) *origin {
	is := &origin{site: o.site}
	is.add(v)
	return is
}

func (is *origin) text() string {
	if is.b.Len() > maxOrigin {
		return is.b.String()[:maxOrigin] + "..."
	}
	return is.b.String()
}

func (is *origin) add(v *Value) {
	if is.b.Len() > maxOrigin {
		return
	}
	switch v.Kind {
	case DeadValue:
		is.b.WriteString("dead")
	case ObjectValue:
		fmt.Fprintf(&is.b, "object %d", v.Object)
	case ConstValue:
		is.b.WriteString("constant")
	case MergeValue:
		fmt.Fprintf(&is.b, "one of objects %s, by ", strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Of), " ", ", "), "[]"))
		is.part(v.Which)
	case LoadValue:
		is.b.WriteString("memory at ")
		is.part(v.Base)
		if v.Index != nil {
			is.b.WriteString(" + ")
			is.part(v.Index)
			if v.Scale != 1 {
				fmt.Fprintf(&is.b, " * %d", v.Scale)
			}
		}
		if v.Offset < 0 {
			fmt.Fprintf(&is.b, " - %d", -uint64(v.Offset))
		} else if v.Offset > 0 {
			fmt.Fprintf(&is.b, " + %d", v.Offset)
		}
	case WordsValue:
		is.b.WriteString("words [")
		for k := range v.Parts {
			if k > 0 {
				is.b.WriteString(", ")
			}
			is.part(&v.Parts[k])
		}
		is.b.WriteString("]")
	case ComputedValue:
		for k := range v.Parts {
			if k > 0 {
				is.b.WriteString(" " + v.Op + " ")
			}
			is.part(&v.Parts[k])
		}
	default:
		is.operand(v)
	}
}

// part adds a token inside of another one.
func (is *origin) part(v *Value) {
	switch v.Kind {
	case ConstValue:
		is.b.WriteString(v.Const.String())
	case LoadValue, WordsValue, ComputedValue:
		is.b.WriteString("(")
		is.add(v)
		is.b.WriteString(")")
	default:
		is.add(v)
	}
}

func (is *origin) operand(v *Value) {
	is.operands = merged(is.operands, []int{v.Operand})
	fmt.Fprintf(&is.b, "operand %d", v.Operand)
	if v.Operand < len(is.site.Operands) {
		if name := is.site.Operands[v.Operand].Name; name != "" {
			fmt.Fprintf(&is.b, " (%s)", name)
		}
	}
	if v.Extend != "" {
		fmt.Fprintf(&is.b, " extended by %s", v.Extend)
	}
}

// merged returns the numbers of both lists without duplicates.
func merged(a, b []int) []int {
	for _, n := range b {
		if !slices.Contains(a, n) {
			a = append(a, n)
		}
	}
	return a
}
