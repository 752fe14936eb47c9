package vmlayout

import (
	"fmt"
	"slices"
)

// Shape is the result of a layout for a record: VM frames with tokens as values. It is immutable.
type Shape struct {
	Layout  *Layout `json:"-"`
	Frames  []Frame // innermost first
	Objects []Object
}

// Frame is a VM frame.
type Frame struct {
	Method, Position *Value // nil if the layout gives no such value
	Resume           string
	Locals, Stack    []Placed
	Monitors         []Monitor
	Extra            []Placed // ascending by name
}

// Placed is a value at a place: a local, an entry of the operand stack, a field, an extra of a frame.
type Placed struct {
	At   int64
	Name string
	Value
	Run     *Run // a row of values; Value is then the first
	Element bool // an element of an array

	where string // position in the layout, for messages
}

// Run is a row of values in memory; their number is read from the target's memory.
type Run struct {
	Count  Value
	Stride int64
	Refs   *Value // the first of the words whose bits mark references among the values, lowest bit first; nil for none
}

// Monitor is a lock.
type Monitor struct {
	Owner      Value
	Eliminated bool

	where string // position in the layout, for messages
}

// Object is an object that exists only as its fields.
type Object struct {
	ID     int64
	Class  *Value
	Fields []Placed
	where  string // position in the layout, for messages
}

// ValueKind is the kind of a token.
type ValueKind int

// The kinds of tokens.
const (
	OperandValue  ValueKind = iota // a live value of the record
	DeadValue                      // no value: the method does not need it
	ObjectValue                    // an object of the shape
	ConstValue                     // a constant of the layout
	LoadValue                      // a value in memory, at the address in a token
	MergeValue                     // one of several objects, selected by a token
	WordsValue                     // a value of several words, which a codec decodes
	ComputedValue                  // a number computed from tokens
)

// Value is a token.
type Value struct {
	Kind    ValueKind
	Operand int     // number of the operand of an OperandValue
	Object  int64   // id of the object of an ObjectValue
	Const   Typed   // the value of a ConstValue
	Base    *Value  // the address of a LoadValue
	Offset  int64   // added to the address of a LoadValue, in bytes
	Index   *Value  // of a LoadValue: Index times Scale is added to the address; nil for none
	Scale   int64   // the factor of Index of a LoadValue, in bytes
	Of      []int64 // of a MergeValue: ids of the possible objects
	Which   *Value  // of a MergeValue: an index into Of
	Parts   []Value // the words of a WordsValue, or the operands of Op of a ComputedValue
	Op      string  // the operator of a ComputedValue: one of [operators]

	As     string // type of the bits; "" means the type of the slot
	Extend string // widens the integer of an OperandValue to As: "sign" or "zero"; "" if it is not widened
	Codec  Codec  `json:"-"` // nil for none
	Reads  bool   // Codec reads memory

	CodecNumber int // number of Codec in another process
}

// Follows reports whether a token reads memory outside of the record's locations: it must be read while the target is stopped.
func (s *Shape) Follows() (yes bool) {
	if s != nil {
		s.tokens(func(v *Value) { yes = yes || v.Kind == LoadValue || v.Reads })
	}
	return yes
}

// Names reports whether functions of the layout name methods or classes of the shape, or describe positions. They may read memory.
func (s *Shape) Names() bool {
	if s == nil || s.Layout == nil {
		return false
	}
	class := slices.ContainsFunc(s.Objects, func(o Object) bool { return o.Class != nil })
	return s.Layout.has("method") || s.Layout.has("info") || class && s.Layout.has("class")
}

// places calls a function for each value of a shape, with a description of its place.
func (s *Shape) places(each func(where string, v *Value)) {
	s.placesAt(func(where, _ string, v *Value) { each(where, v) })
}

// placesAt is like places. It also passes the position in the layout at which the value was put into the shape.
func (s *Shape) placesAt(each func(where, at string, v *Value)) {
	s.walk(func(of int, what string, at int64, p *Placed) {
		where := fmt.Sprintf("%s[%d] of frame %d", what, at, of)
		switch what {
		case "object":
			where = fmt.Sprintf("object[%d].%d", of, at)
		case "extra":
			where = fmt.Sprintf("%s of frame %d", p.Name, of)
		}
		each(where, p.where, &p.Value)
	})
	for n := range s.Frames {
		for k := range s.Frames[n].Monitors {
			each(fmt.Sprintf("lock %d of frame %d", k, n), s.Frames[n].Monitors[k].where, &s.Frames[n].Monitors[k].Owner)
		}
	}
}

// objects returns the ids of the objects that a token refers to.
func (v *Value) objects() []int64 {
	switch v.Kind {
	case ObjectValue:
		return []int64{v.Object}
	case MergeValue:
		return v.Of
	}
	return nil
}

// walk calls a function for each token of a shape with its place: in a frame, by its number, or in an object, by its id.
func (s *Shape) walk(each func(of int, what string, at int64, p *Placed)) {
	for n := range s.Frames {
		f := &s.Frames[n]
		for k := range f.Locals {
			each(n, "local", f.Locals[k].At, &f.Locals[k])
		}
		for k := range f.Stack {
			each(n, "stack", f.Stack[k].At, &f.Stack[k])
		}
		for k := range f.Extra {
			each(n, "extra", 0, &f.Extra[k])
		}
	}
	for n := range s.Objects {
		for k := range s.Objects[n].Fields {
			each(int(s.Objects[n].ID), "object", s.Objects[n].Fields[k].At, &s.Objects[n].Fields[k])
		}
	}
}
