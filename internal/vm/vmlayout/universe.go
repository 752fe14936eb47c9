package vmlayout

import (
	"errors"
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"example.com/reframe/deopt/frame"
)

// universe returns the functions for layouts, in addition to Starlark's own.
func (l *Layout) universe() starlark.StringDict {
	all := starlark.StringDict{}
	add := func(name string, f func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)) {
		all[name] = method(name, f)
	}
	for name := range widths {
		add(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var v starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "bits", &v); err != nil {
				return nil, err
			}
			if f, ok := v.(starlark.Float); ok && name == "f64" {
				return typedValue{Typed{Type: name, Bits: math.Float64bits(float64(f))}}, nil
			}
			if b, ok := v.(starlark.Bool); ok && name == "i1" {
				bits := uint64(0)
				if b {
					bits = 1
				}
				return typedValue{Typed{Type: name, Bits: bits}}, nil
			}
			bits, err := bits64(v)
			if err != nil {
				return nil, err
			}
			return typedValue{Typed{Type: name, Bits: cut(bits, name)}}, nil
		})
	}
	add("null", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return typedValue{Typed{Type: "null"}}, starlark.UnpackArgs("null", args, kwargs)
	})
	add("symbol", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		v := typedValue{Typed{Type: "symbol"}}
		return v, starlark.UnpackArgs("symbol", args, kwargs, "text", &v.is.Text)
	})
	add("dead", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return deadValue{base{"dead"}}, starlark.UnpackArgs("dead", args, kwargs)
	})
	add("object_ref", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		o := objectRef{base: base{"object_ref"}}
		err := starlark.UnpackArgs("object_ref", args, kwargs, "id", &o.id)
		return o, err
	})
	add("merge", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		m := &mergeValue{base: base{"merge"}}
		var of starlark.Iterable
		if err := starlark.UnpackArgs("merge", args, kwargs, "objects", &of, "which", &m.which); err != nil {
			return nil, err
		}
		for v := range starlark.Elements(of) {
			switch v := v.(type) {
			case objectRef:
				m.of = append(m.of, v.id)
			case *objectValue:
				m.of = append(m.of, v.id)
			default:
				return nil, fmt.Errorf("expected objects, got a %s", v.Type())
			}
		}
		if len(m.of) == 0 {
			return nil, errors.New("expected at least one object")
		}
		return m, nil
	})
	add("frame", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var m, p starlark.Value = starlark.None, starlark.None
		resume := starlark.String(frame.Reexecute)
		if err := starlark.UnpackArgs("frame", args, kwargs, "method?", &m, "position?", &p, "resume?", &resume); err != nil {
			return nil, err
		}
		r, err := here(t)
		if err != nil {
			return nil, err
		}
		f := &frameValue{base: base{"frame"}, where: r.here(t)}
		for _, set := range []struct {
			name string
			v    starlark.Value
		}{{"method", m}, {"position", p}, {"resume", resume}} {
			if err := f.SetField(set.name, set.v); err != nil {
				return nil, err
			}
		}
		return f, nil
	})
	add("virtual", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		o := &objectValue{base: base{"object"}}
		var class starlark.Value = starlark.None
		if err := starlark.UnpackArgs("virtual", args, kwargs, "id", &o.id, "cls?", &class); err != nil {
			return nil, err
		}
		r, err := here(t)
		if err != nil {
			return nil, err
		}
		if r.objects = append(r.objects, o); len(r.objects) > maxPlaced {
			return nil, fmt.Errorf("over %d objects", maxPlaced)
		}
		o.Object.ID, o.where = o.id, r.here(t)
		return o, o.SetField("cls", class)
	})
	add("row", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		r := &rowValue{base: base{"row"}}
		err := starlark.UnpackArgs("row", args, kwargs, "first", &r.first, "count", &r.count, "stride", &r.stride, "refs?", &r.refs)
		return r, err
	})
	add("skip", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var what starlark.Value
		var why string
		if err := starlark.UnpackArgs("skip", args, kwargs, "operand", &what, "why?", &why); err != nil {
			return nil, err
		}
		if o, ok := what.(*operandValue); ok {
			o.take()
			return nil, nil
		}
		list, ok := what.(starlark.Iterable)
		if !ok {
			return nil, fmt.Errorf("expected an operand or several, got a %s", what.Type())
		}
		for v := range starlark.Elements(list) {
			o, ok := v.(*operandValue)
			if !ok {
				return nil, fmt.Errorf("expected operands, got a %s", v.Type())
			}
			o.take()
		}
		return nil, nil
	})
	add("words", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(kwargs) > 0 || len(args) < 2 || len(args) > maxWords {
			return nil, fmt.Errorf("expected 2 to %d words", maxWords)
		}
		w := &wordsValue{base: base{"words"}, shared: map[int]bool{}}
		for _, v := range args {
			part, err := partOf(v)
			if err != nil {
				return nil, err
			}
			if o, ok := v.(*operandValue); ok && o.shared {
				w.shared[o.k] = true
			}
			w.parts = append(w.parts, part)
		}
		return w, nil
	})
	l.addCodecs(add)
	addReads(add)
	addStreams(add)
	addObjects(add)
	return all
}

// here returns the run for a site. Functions that make frames require one.
func here(t *starlark.Thread) (*run, error) {
	if r := runOf(t); r != nil && r.site != nil {
		return r, nil
	}
	return nil, errors.New("can be called only in frames(site) and interpreter_frames(native)")
}

type adder = func(name string, f func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error))

func (l *Layout) addCodecs(add adder) {
	add("codec", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &written{layout: l}
		err := starlark.UnpackArgs("codec", args, kwargs, "decode", &c.decodes, "encode?", &c.encodes, "reads?", &c.reads)
		return codecValue{base{"codec"}, c}, err
	})
	add("tagged", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &tagged{mask: math.MaxUint64}
		tags := &starlark.Dict{}
		if err := starlark.UnpackArgs("tagged", args, kwargs, "tags", &tags, "mask?", &c.mask); err != nil {
			return nil, err
		}
		var err error
		if c.tags, err = table(tags); err != nil {
			return nil, err
		}
		for tag := range c.tags {
			if tag&^c.mask != 0 {
				return nil, fmt.Errorf("the tag %d has bits outside of the mask", tag)
			}
		}
		return codecValue{base{"codec"}, c}, nil
	})
	add("nan_box", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &nanBox{ints: 0xffff, offset: 1 << 48}
		names := &starlark.Dict{}
		if err := starlark.UnpackArgs("nan_box", args, kwargs, "ints?", &c.ints, "offset?", &c.offset, "symbols?", &names, "extend?", &c.extend); err != nil {
			return nil, err
		}
		if c.ints == 0 || c.ints > math.MaxUint16 || c.offset < 1<<48 || c.offset > math.MaxUint64-0xfff0<<48 {
			return nil, errors.New("ints must be from 1 to 0xffff, and offset from 1 << 48 to the largest number for which no sum has more than 64 bits")
		}
		if c.below = c.ints<<48 < c.offset; !c.below && c.ints <= 0xfff0+c.offset>>48 {
			return nil, errors.New("the codes of integers overlap those of doubles")
		}
		var err error
		c.symbols, err = table(names)
		return codecValue{base{"codec"}, c}, err
	})
	add("nan_tag", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &nanTag{}
		tags, names := &starlark.Dict{}, &starlark.Dict{}
		if err := starlark.UnpackArgs("nan_tag", args, kwargs, "tags", &tags, "shift?", &c.shift, "symbols?", &names); err != nil {
			return nil, err
		}
		if c.shift == 0 {
			c.shift = 48
		}
		if c.shift < 32 || c.shift > 52 {
			return nil, errors.New("a tag must begin at bit 32 to 52")
		}
		var err error
		if c.tags, err = table(tags); err != nil {
			return nil, err
		}
		c.symbols, err = table(names)
		return codecValue{base{"codec"}, c}, err
	})
	add("low_tag", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &lowTag{bits: 1, refs: 1, width: 64}
		names := &starlark.Dict{}
		if err := starlark.UnpackArgs("low_tag", args, kwargs, "bits?", &c.bits, "ints?", &c.ints, "refs?", &c.refs, "symbols?", &names, "shift?", &c.shift, "width?", &c.width); err != nil {
			return nil, err
		}
		if c.shift == 0 {
			c.shift = c.bits
		}
		if c.width != 32 && c.width != 64 || c.shift < c.bits || c.shift >= c.width {
			return nil, errors.New("the width must be 32 or 64 bits, and integers must be shifted by at least the bits of the tag")
		}
		if c.bits == 0 || c.bits > 8 || c.ints == c.refs || c.ints>>c.bits != 0 || c.refs>>c.bits != 0 {
			return nil, errors.New("expected 1 to 8 bits, and two tags of that width")
		}
		var err error
		c.symbols, err = table(names)
		return codecValue{base{"codec"}, c}, err
	})
	add("compressed", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := &compressed{}
		if err := starlark.UnpackArgs("compressed", args, kwargs, "base?", &c.base, "shift?", &c.shift); err != nil {
			return nil, err
		}
		if c.shift > 16 {
			return nil, errors.New("the shift must be at most 16 bits")
		}
		return codecValue{base{"codec"}, c}, nil
	})
	add("interned", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		names := &starlark.Dict{}
		if err := starlark.UnpackArgs("interned", args, kwargs, "names", &names); err != nil {
			return nil, err
		}
		all, err := table(names)
		return codecValue{base{"codec"}, &interned{all}}, err
	})
}

// table converts a dictionary of numbers and names.
func table(d *starlark.Dict) (map[uint64]string, error) {
	all := map[uint64]string{}
	for _, item := range d.Items() {
		bits, err := bits64(item[0])
		name, ok := starlark.AsString(item[1])
		if err != nil || !ok {
			return nil, fmt.Errorf("%v: %v: expected a number and a name", item[0], item[1])
		}
		all[bits] = name
	}
	return all, nil
}
