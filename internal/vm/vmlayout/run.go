package vmlayout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"

	"example.com/reframe/deopt/frame"
)

type resolveErrors = resolve.ErrorList

const runKey = "reframe"

// run is one call of a layout.
type run struct {
	layout *Layout
	site   *Site
	source *Source // memory to read; nil if there is none

	taken   []bool   // for each operand: whether it was read as a constant, skipped or loaded from
	used    []string // for each operand: the place of a frame into which it was put
	objects []*objectValue
	values  int
}

func newRun(l *Layout, s *Site) *run {
	return &run{layout: l, site: s, source: s.Target.source(), taken: make([]bool, len(s.Operands)), used: make([]string, len(s.Operands))}
}

// function returns the name of the layout's function that makes the frames, for messages.
func (r *run) function() string {
	if r.site.Native != nil {
		return "interpreter_frames(native)"
	}
	return "frames(site)"
}

// placed is an error with the position in the layout at which it occurred.
type placed struct {
	at  string
	err error
}

func (p *placed) Error() string { return p.err.Error() }

// here returns the current line of the layout's own code.
func (r *run) here(t *starlark.Thread) string {
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

// operandText describes an operand in messages.
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

// use records that an operand is put into a frame, which is allowed once.
func (r *run) use(k int, at string) error {
	if before := r.used[k]; before != "" {
		return fmt.Errorf("%s is used a second time, first in line %s", r.operandText(k), before)
	}
	r.used[k] = at
	return nil
}

// token converts a value that a layout put into a frame.
func (r *run) token(t *starlark.Thread, v starlark.Value) (Value, error) {
	if r.values++; r.values > maxPlaced {
		return Value{}, fmt.Errorf("over %d values", maxPlaced)
	}
	switch v := v.(type) {
	case *operandValue:
		if v.arg {
			return Value{}, errors.New("an argument of the call cannot be a value of a frame: it has no recorded location")
		}
		out := Value{Operand: v.k, As: v.as, Extend: v.extend, Codec: v.codec, Reads: reads(v.codec)}
		if v.shared {
			return out, nil
		}
		return out, r.use(v.k, r.here(t))
	case deadValue:
		return Value{Kind: DeadValue}, nil
	case objectRef:
		return Value{Kind: ObjectValue, Object: v.id}, nil
	case *objectValue:
		return Value{Kind: ObjectValue, Object: v.id}, nil
	case *loadValue:
		return load(v)
	case *computedValue:
		return v.token(), nil
	case *wordsValue:
		if v.codec == nil {
			return Value{}, errors.New("a value of several words requires a codec: use decoded_by")
		}
		for k := range v.parts {
			if part := &v.parts[k]; part.Kind == OperandValue && !v.shared[part.Operand] {
				if err := r.use(part.Operand, r.here(t)); err != nil {
					return Value{}, err
				}
			}
		}
		return Value{Kind: WordsValue, Parts: v.parts, Codec: v.codec, Reads: reads(v.codec)}, nil
	case *mergeValue:
		which, err := r.token(t, v.which)
		return Value{Kind: MergeValue, Of: v.of, Which: &which}, err
	}
	if out, ok, err := literal(v); ok {
		return out, err
	}
	return Value{}, fmt.Errorf("expected an operand, dead(), object_ref(id), a pointee or a typed value, got a %s", v.Type())
}

// literal makes a token of a literal in the layout: a number, a text, a typed value. ok is false for other values.
func literal(v starlark.Value) (out Value, ok bool, err error) {
	out.Kind = ConstValue
	switch v := v.(type) {
	case typedValue:
		out.Const = v.is
	case starlark.Int:
		out.Const.Type = "i64"
		out.Const.Bits, err = bits64(v)
	case starlark.String:
		out.Const = Typed{Type: "symbol", Text: string(v)}
	default:
		return Value{}, false, nil
	}
	return out, true, err
}

// load makes a token of the memory at an address. Several tokens may use the operands of the address.
func load(v *loadValue) (Value, error) {
	out := Value{Kind: LoadValue, Offset: v.offset, Scale: v.scale, As: v.as, Codec: v.codec, Reads: reads(v.codec)}
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
			is = Value{Operand: from.k, As: from.as, Extend: from.extend, Codec: from.codec}
		case *loadValue:
			is, err = load(from)
		case *computedValue:
			is = from.token()
		case starlark.Int:
			is, _, err = literal(from)
		default:
			err = fmt.Errorf("expected an operand, a pointee or a number, got a %s", from.Type())
		}
		if err != nil {
			return out, err
		}
		*part.to = &is
	}
	return out, nil
}

// inOrder sorts values by place, and returns an error, with the position of the second value, if a place occurs twice.
func inOrder(what string, list []Placed) error {
	slices.SortStableFunc(list, func(a, b Placed) int { return cmp.Compare(a.At, b.At) })
	for k := 1; k < len(list); k++ {
		if list[k].At == list[k-1].At {
			return &placed{list[k].where, fmt.Errorf("%s %d, first in line %s", what, list[k].At, list[k-1].where)}
		}
	}
	return nil
}

// shape converts the result of frames(site) or interpreter_frames(native), and checks it for common mistakes.
func (r *run) shape(v starlark.Value) (*Shape, error) {
	var list []starlark.Value
	if one, ok := v.(*frameValue); ok {
		list = append(list, one)
	} else if all, ok := v.(starlark.Indexable); ok {
		for n := range all.Len() {
			list = append(list, all.Index(n))
		}
	} else {
		return nil, fmt.Errorf("%s returned a %s; expected a list of frames, or None", r.function(), v.Type())
	}
	if len(list) == 0 || len(list) > maxFrames {
		return nil, fmt.Errorf("%s returned %d frames", r.function(), len(list))
	}
	s := &Shape{Layout: r.layout}
	seen := map[*frameValue]bool{}
	for n, v := range list {
		f, ok := v.(*frameValue)
		if !ok {
			return nil, fmt.Errorf("frame %d is a %s; expected a frame", n, v.Type())
		}
		if seen[f] {
			return nil, fmt.Errorf("frame %d is listed twice", n)
		}
		seen[f] = true
		if n > 0 && f.Resume != frame.Calling {
			return nil, &placed{f.where, fmt.Errorf("frame %d is resumed by %q: all frames but the innermost must be in a call (%q)", n, f.Resume, frame.Calling)}
		}
		for _, list := range [][]Placed{f.Locals, f.Stack} {
			if err := inOrder("two values for place", list); err != nil {
				return nil, err
			}
		}
		s.Frames = append(s.Frames, f.Frame)
	}
	slices.SortFunc(r.objects, func(a, b *objectValue) int { return cmp.Compare(a.id, b.id) })
	ids := map[int64]string{}
	for _, o := range r.objects {
		if before, twice := ids[o.id]; twice {
			return nil, &placed{o.where, fmt.Errorf("object %d is defined a second time, first in line %s", o.id, before)}
		}
		ids[o.id] = o.where
		if err := inOrder(fmt.Sprintf("object %d has two fields at", o.id), o.Fields); err != nil {
			return nil, err
		}
		s.Objects = append(s.Objects, o.Object)
	}
	var err error
	s.placesAt(func(where, at string, v *Value) {
		for _, id := range v.objects() {
			if _, there := ids[id]; !there && err == nil {
				err = &placed{at, fmt.Errorf("%s is object %d, which is not defined", where, id)}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for k := range r.site.Operands {
		if r.used[k] == "" && !r.taken[k] {
			return nil, &placed{r.layout.Defined(), fmt.Errorf("%s is neither used nor skipped: use skip(operand, why) if it is not part of a frame", r.operandText(k))}
		}
	}
	return s, nil
}
