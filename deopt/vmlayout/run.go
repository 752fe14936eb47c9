package vmlayout

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"

	"reframe/deopt/frame"
)

type resolveErrors = resolve.ErrorList

const runKey = "reframe"

// run is one call of a layout.
type run struct {
	layout *Layout
	site   *Site
	source *Source // at an exit; nil before
	thread *starlark.Thread

	taken   []string // of each operand where it was read as a constant, skipped or loaded from; "" for nowhere
	used    []string // of each operand where it was put into a frame
	objects []*objectValue
	values  int
}

func newRun(l *Layout, s *Site) *run {
	return &run{layout: l, site: s, taken: make([]string, len(s.Operands)), used: make([]string, len(s.Operands))}
}

// placed is an error with the place in the layout that it is about.
type placed struct {
	at  string
	err error
}

func (p *placed) Error() string { return p.err.Error() }

// here is where the layout's own code is. The thread is nil in an attribute: Starlark does not tell there.
func (r *run) here(t *starlark.Thread) string {
	if t == nil {
		t = r.thread
	}
	for n := range t.CallStackDepth() {
		if pos := t.CallFrame(n).Pos; pos.Filename() == r.layout.Name {
			return lineOf(pos)
		}
	}
	return ""
}

func runOf(t *starlark.Thread) *run {
	r, _ := t.Local(runKey).(*run)
	return r
}

// operandText names an operand for messages.
func (r *run) operandText(k int) string {
	o := &r.site.Operands[k]
	text := fmt.Sprintf("operand %d", k)
	if what := strings.TrimSpace(o.Type.Source + " " + o.Name); what != "" {
		text += " (" + what + ")"
	} else if o.Constant != nil {
		text += fmt.Sprintf(" (the constant %v)", o.Constant)
	}
	return text
}

// use notes that an operand goes into a frame: each may do that once.
func (r *run) use(k int, at string) error {
	if before := r.used[k]; before != "" {
		return fmt.Errorf("%s is used a second time, first in line %s", r.operandText(k), before)
	}
	r.used[k] = at
	return nil
}

// token makes a token of what a layout put somewhere.
func (r *run) token(t *starlark.Thread, v starlark.Value) (Value, error) {
	if r.values++; r.values > maxPlaced {
		return Value{}, fmt.Errorf("over %d values", maxPlaced)
	}
	switch v := v.(type) {
	case *operandValue:
		if v.arg {
			return Value{}, errors.New("an argument of the call is no value of a frame: no location is recorded for it")
		}
		return Value{Operand: v.k, As: v.as, Codec: v.codec}, r.use(v.k, r.here(t))
	case deadValue:
		return Value{Kind: DeadValue}, nil
	case objectRef:
		return Value{Kind: ObjectValue, Object: v.id}, nil
	case *objectValue:
		return Value{Kind: ObjectValue, Object: v.id}, nil
	case typedValue:
		return Value{Kind: ConstValue, Const: v.is}, nil
	case starlark.Int:
		bits, err := bits64(v)
		return Value{Kind: ConstValue, Const: Typed{Type: "i64", Bits: bits}}, err
	case starlark.String:
		return Value{Kind: ConstValue, Const: Typed{Type: "symbol", Text: string(v)}}, nil
	case *loadValue:
		return r.load(v)
	case *mergeValue:
		which, err := r.token(t, v.which)
		return Value{Kind: MergeValue, Of: v.of, Which: &which}, err
	}
	return Value{}, fmt.Errorf("a %s, and an operand, dead(), object_ref(id), a pointee or a typed value is wanted", v.Type())
}

// load makes a token of what lies at an address. The operands of the address may be used for several.
func (r *run) load(v *loadValue) (Value, error) {
	out := Value{Kind: LoadValue, Offset: v.offset, Scale: v.scale, As: v.as, Codec: v.codec}
	for _, part := range []struct {
		from starlark.Value
		to   **Value
	}{{v.base, &out.Base}, {v.index, &out.Index}} {
		var is Value
		var err error
		switch from := part.from.(type) {
		case nil:
			continue
		case *operandValue:
			is = Value{Operand: from.k, As: from.as, Codec: from.codec}
		case *loadValue:
			is, err = r.load(from)
		case starlark.Int:
			is.Kind = ConstValue
			is.Const.Type = "i64"
			is.Const.Bits, err = bits64(from)
		default:
			err = fmt.Errorf("a %s, and an operand, a pointee or a number is wanted", from.Type())
		}
		if err != nil {
			return out, err
		}
		*part.to = &is
	}
	return out, nil
}

// shape makes a shape of what frames(site) returned, and checks what a layout easily gets wrong.
func (r *run) shape(v starlark.Value) (*Shape, error) {
	var list []starlark.Value
	if one, ok := v.(*frameValue); ok {
		list = append(list, one)
	} else if all, ok := v.(starlark.Indexable); ok {
		for n := range all.Len() {
			list = append(list, all.Index(n))
		}
	} else {
		return nil, fmt.Errorf("frames(site) returned a %s, and a list of frames, or None, is wanted", v.Type())
	}
	if len(list) == 0 || len(list) > maxFrames {
		return nil, fmt.Errorf("frames(site) returned %d frames", len(list))
	}
	s := &Shape{Layout: r.layout}
	seen := map[*frameValue]bool{}
	for n, v := range list {
		f, ok := v.(*frameValue)
		if !ok {
			return nil, fmt.Errorf("frame %d is a %s", n, v.Type())
		}
		if seen[f] {
			return nil, fmt.Errorf("frame %d is there a second time", n)
		}
		seen[f] = true
		if n > 0 && f.Resume != frame.Calling {
			return nil, &placed{f.where, fmt.Errorf("frame %d is resumed by %q: only the innermost frame stands at anything but a call that is running (%q)", n, f.Resume, frame.Calling)}
		}
		f.sort()
		for _, list := range [][]Placed{f.Locals, f.Stack} {
			for k := 1; k < len(list); k++ {
				if list[k].At == list[k-1].At {
					return nil, &placed{f.where, fmt.Errorf("two values for place %d", list[k].At)}
				}
			}
		}
		s.Frames = append(s.Frames, f.Frame)
	}
	slices.SortFunc(r.objects, func(a, b *objectValue) int { return int(min(max(a.id-b.id, -1), 1)) })
	ids := map[int64]string{}
	for _, o := range r.objects {
		if before, twice := ids[o.id]; twice {
			return nil, &placed{o.where, fmt.Errorf("object %d is defined a second time, first in line %s", o.id, before)}
		}
		ids[o.id] = o.where
		slices.SortStableFunc(o.Fields, func(a, b Placed) int { return int(min(max(a.At-b.At, -1), 1)) })
		for k := 1; k < len(o.Fields); k++ {
			if o.Fields[k].At == o.Fields[k-1].At {
				return nil, &placed{o.where, fmt.Errorf("object %d has two fields at %d", o.id, o.Fields[k].At)}
			}
		}
		s.Objects = append(s.Objects, o.Object)
	}
	var err error
	check := func(where string, v *Value) {
		for _, id := range append(slices.Clone(v.Of), v.Object) {
			if _, there := ids[id]; !there && err == nil && (v.Kind == ObjectValue && id == v.Object || v.Kind == MergeValue && slices.Contains(v.Of, id)) {
				err = fmt.Errorf("%s is object %d, which is not defined", where, id)
			}
		}
	}
	s.walk(func(of int, what string, at int64, p *Placed) {
		if what == "object" {
			check(fmt.Sprintf("object[%d].%d", of, at), &p.Value)
		} else {
			check(fmt.Sprintf("%s[%d] of frame %d", what, at, of), &p.Value)
		}
	})
	for n := range s.Frames {
		for k := range s.Frames[n].Monitors {
			check(fmt.Sprintf("monitor %d of frame %d", k, n), &s.Frames[n].Monitors[k].Owner)
		}
	}
	if err != nil {
		return nil, err
	}
	for k := range r.site.Operands {
		if r.used[k] == "" && r.taken[k] == "" {
			return nil, fmt.Errorf("%s is neither used nor skipped: skip(operand, why) says that it is no part of a frame", r.operandText(k))
		}
	}
	return s, nil
}
