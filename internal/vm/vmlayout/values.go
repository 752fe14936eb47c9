package vmlayout

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sort"

	"go.starlark.net/starlark"

	"example.com/reframe/deopt/frame"
)

// base implements the methods that all values of layouts share. The values have no truth value and no hash.
type base struct{ name string }

func (b base) Type() string            { return b.name }
func (b base) String() string          { return b.name }
func (base) Freeze()                   {}
func (base) Truth() starlark.Bool      { return true }
func (b base) Hash() (uint32, error)   { return 0, fmt.Errorf("unhashable: %s", b.name) }
func names(list ...string) []string    { sort.Strings(list); return list }
func number(n *big.Int) starlark.Value { return starlark.MakeBigInt(n) }

// method returns a bound method.
func method(name string, f func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)) starlark.Value {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		v, err := f(t, args, kwargs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if v == nil {
			v = starlark.None
		}
		return v, nil
	})
}

// siteValue is the site for a layout.
type siteValue struct{ r *run }

func (*siteValue) String() string        { return "site" }
func (*siteValue) Type() string          { return "site" }
func (*siteValue) Freeze()               {}
func (*siteValue) Truth() starlark.Bool  { return true }
func (*siteValue) Hash() (uint32, error) { return 0, errors.New("unhashable: site") }
func (*siteValue) AttrNames() []string {
	return []string{"args", "function", "id", "kind", "moment", "operands"}
}

func (s *siteValue) Attr(name string) (starlark.Value, error) {
	switch site := s.r.site; name {
	case "function":
		return starlark.String(site.Function), nil
	case "id":
		return starlark.MakeUint64(site.Record), nil
	case "kind":
		return starlark.String(site.Kind), nil
	case "moment":
		return starlark.String(cmp.Or(site.Moment, frame.Unknown)), nil
	case "operands":
		return &operandList{s.r, 0, len(site.Operands), 1, false}, nil
	case "args":
		return &operandList{s.r, 0, len(site.Args), 1, true}, nil
	}
	return nil, nil
}

// operandList is a sequence of operands.
type operandList struct {
	r              *run
	from, to, step int
	args           bool
}

func (*operandList) String() string         { return "operands" }
func (*operandList) Type() string           { return "operands" }
func (*operandList) Freeze()                {}
func (l *operandList) Truth() starlark.Bool { return l.Len() > 0 }
func (*operandList) Hash() (uint32, error)  { return 0, errors.New("unhashable: operands") }
func (l *operandList) Len() int {
	if l.to <= l.from {
		return 0
	}
	return (l.to - l.from + l.step - 1) / l.step
}
func (l *operandList) Index(i int) starlark.Value {
	return &operandValue{r: l.r, k: l.from + i*l.step, arg: l.args}
}
func (l *operandList) Slice(start, end, step int) starlark.Value {
	if step <= 0 {
		var all []starlark.Value
		for i := start; i > end; i += step {
			all = append(all, l.Index(i))
		}
		return starlark.NewList(all)
	}
	return &operandList{l.r, l.from + start*l.step, l.from + end*l.step, l.step * step, l.args}
}
func (l *operandList) Iterate() starlark.Iterator { return &operandIterator{l, 0} }
func (*operandList) AttrNames() []string          { return []string{"pairs", "reader"} }

type operandIterator struct {
	l *operandList
	n int
}

func (i *operandIterator) Done() {}
func (i *operandIterator) Next(p *starlark.Value) bool {
	if i.n >= i.l.Len() {
		return false
	}
	*p = i.l.Index(i.n)
	i.n++
	return true
}

func (l *operandList) Attr(name string) (starlark.Value, error) {
	switch name {
	case "pairs":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(name, args, kwargs); err != nil {
				return nil, err
			}
			if l.Len()%2 != 0 {
				return nil, fmt.Errorf("%d operands do not form pairs", l.Len())
			}
			var all []starlark.Value
			for n := 0; n < l.Len(); n += 2 {
				all = append(all, starlark.Tuple{l.Index(n), l.Index(n + 1)})
			}
			return starlark.NewList(all), nil
		}), nil
	case "reader":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return &reader{l, 0}, starlark.UnpackArgs(name, args, kwargs)
		}), nil
	}
	return nil, nil
}

// reader iterates over operands.
type reader struct {
	l *operandList
	n int
}

func (*reader) String() string         { return "reader" }
func (*reader) Type() string           { return "reader" }
func (*reader) Freeze()                {}
func (r *reader) Truth() starlark.Bool { return r.n < r.l.Len() }
func (*reader) Hash() (uint32, error)  { return 0, errors.New("unhashable: reader") }
func (*reader) AttrNames() []string {
	return names("more", "next", "constant", "peek", "skip", "at", "left")
}

func (r *reader) next() (*operandValue, error) {
	if r.n >= r.l.Len() {
		return nil, fmt.Errorf("cannot read another operand: there are only %d", r.l.Len())
	}
	v := r.l.Index(r.n).(*operandValue)
	r.n++
	return v, nil
}

func (r *reader) Attr(name string) (starlark.Value, error) {
	switch name {
	case "more":
		return starlark.Bool(r.n < r.l.Len()), nil
	case "at":
		return starlark.MakeInt(r.n), nil
	case "left":
		return starlark.MakeInt(r.l.Len() - r.n), nil
	case "next":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(name, args, kwargs); err != nil {
				return nil, err
			}
			return r.next()
		}), nil
	case "peek", "constant":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			what := "a constant"
			if err := starlark.UnpackArgs(name, args, kwargs, "what?", &what); err != nil {
				return nil, err
			}
			v, err := r.next()
			if err != nil {
				return nil, fmt.Errorf("%w: %s", err, what)
			}
			if name == "peek" {
				r.n--
			}
			return v.constant(what)
		}), nil
	case "skip":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			count, why := 1, ""
			if err := starlark.UnpackArgs(name, args, kwargs, "n?", &count, "why?", &why); err != nil {
				return nil, err
			}
			for range min(count, r.l.Len()+1) {
				v, err := r.next()
				if err != nil {
					return nil, err
				}
				v.take()
			}
			return nil, nil
		}), nil
	}
	return nil, nil
}

// operandValue is a token for an operand.
type operandValue struct {
	r      *run
	k      int
	arg    bool
	as     string
	extend string
	codec  Codec
	shared bool // the layout may put it at several places of a frame
}

func (v *operandValue) String() string {
	if v.arg {
		return fmt.Sprintf("argument %d", v.k)
	}
	return v.r.operandText(v.k)
}
func (*operandValue) Type() string          { return "operand" }
func (*operandValue) Freeze()               {}
func (*operandValue) Truth() starlark.Bool  { return true }
func (*operandValue) Hash() (uint32, error) { return 0, errors.New("unhashable: operand") }
func (*operandValue) AttrNames() []string {
	return names("as_type", "bits", "constant", "decoded_by", "index", "is_constant", "is_undef", "name", "pointee", "shared", "type", "width")
}

func (v *operandValue) is() *Operand {
	if v.arg {
		return &v.r.site.Args[v.k]
	}
	return &v.r.site.Operands[v.k]
}

// take records that the layout has used an operand that is not part of a frame.
func (v *operandValue) take() {
	if !v.arg {
		v.r.taken[v.k] = true
	}
}

func (v *operandValue) constant(what string) (starlark.Value, error) {
	c := v.is().Constant
	if c == nil {
		return nil, fmt.Errorf("%s is a value; expected %s", v, what)
	}
	v.take()
	return number(c), nil
}

func (v *operandValue) Attr(name string) (starlark.Value, error) {
	o := v.is()
	switch name {
	case "index":
		return starlark.MakeInt(v.k), nil
	case "name":
		return starlark.String(o.Name), nil
	case "type":
		return starlark.String(o.Type.Source), nil
	case "width":
		return starlark.MakeInt(o.Type.Bits), nil
	case "is_constant":
		return starlark.Bool(o.Constant != nil), nil
	case "shared":
		v.take()
		return &operandValue{v.r, v.k, v.arg, v.as, v.extend, v.codec, true}, nil
	case "is_undef":
		return starlark.Bool(o.Undef), nil
	case "constant", "bits":
		c, err := v.constant("a constant")
		if err != nil || name == "constant" || o.Constant.Sign() >= 0 {
			return c, err
		}
		width := uint(64)
		if o.Type.Bits != 0 {
			width = uint(o.Type.Bits)
		}
		return number(new(big.Int).Add(o.Constant, new(big.Int).Lsh(big.NewInt(1), width))), nil
	case "decoded_by":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var by starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "codec", &by); err != nil {
				return nil, err
			}
			c, err := codecOf(v.r.layout, by)
			return &operandValue{v.r, v.k, v.arg, v.as, v.extend, c, v.shared}, err
		}), nil
	case "as_type":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var t, extend string
			if err := starlark.UnpackArgs(name, args, kwargs, "type", &t, "extend?", &extend); err != nil {
				return nil, err
			}
			return &operandValue{v.r, v.k, v.arg, t, extend, v.codec, v.shared}, cmp.Or(known(t), extends(extend, t))
		}), nil
	case "pointee":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			v.take()
			return newLoad(name, v, args, kwargs)
		}), nil
	}
	return nil, nil
}

// loadValue is a token for a value in memory.
type loadValue struct {
	base, index   starlark.Value
	offset, scale int64
	as            string
	codec         Codec
}

func (*loadValue) String() string        { return "pointee" }
func (*loadValue) Type() string          { return "pointee" }
func (*loadValue) Freeze()               {}
func (*loadValue) Truth() starlark.Bool  { return true }
func (*loadValue) Hash() (uint32, error) { return 0, errors.New("unhashable: load") }
func (*loadValue) AttrNames() []string   { return names("decoded_by", "pointee") }

// newLoad implements TOKEN.pointee(type, at = 0, index = None, scale = 0): load is a reserved word of Starlark.
func newLoad(name string, from starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	l := &loadValue{base: from}
	if err := starlark.UnpackArgs(name, args, kwargs, "type", &l.as, "at?", &l.offset, "index?", &l.index, "scale?", &l.scale); err != nil {
		return nil, err
	}
	if l.index == starlark.None {
		l.index = nil
	}
	if o, ok := l.index.(*operandValue); ok {
		o.take()
	}
	return l, known(l.as)
}

func (l *loadValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "pointee":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return newLoad(name, l, args, kwargs)
		}), nil
	case "decoded_by":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var by starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "codec", &by); err != nil {
				return nil, err
			}
			c, err := codecOf(runOf(t).layout, by)
			with := *l
			with.codec = c
			return &with, err
		}), nil
	}
	return nil, nil
}

// mergeValue is a token for one of several objects.
type mergeValue struct {
	base
	of    []int64
	which starlark.Value
}

// deadValue is a value that the method does not need.
type deadValue struct{ base }

// objectRef refers to an object by its id.
type objectRef struct {
	base
	id int64
}

// codecValue is a codec.
type codecValue struct {
	base
	Codec
}

// typedValue is a value with its type.
type typedValue struct{ is Typed }

func (v typedValue) String() string      { return fmt.Sprintf("%s(%s)", v.is.Type, v.is) }
func (typedValue) Type() string          { return "typed" }
func (typedValue) Freeze()               {}
func (typedValue) Truth() starlark.Bool  { return true }
func (typedValue) Hash() (uint32, error) { return 0, errors.New("unhashable: typed") }
func (typedValue) AttrNames() []string   { return names("bits", "kind", "number", "text") }
func (v typedValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "kind":
		return starlark.String(v.is.Type), nil
	case "bits":
		return starlark.MakeUint64(v.is.Bits), nil
	case "number":
		return starlark.MakeInt64(v.is.signed()), nil
	case "text":
		return starlark.String(v.is.String()), nil
	}
	return nil, nil
}

// codecOf returns the codec of an argument, which may also be a decoding function.
func codecOf(l *Layout, v starlark.Value) (Codec, error) {
	switch v := v.(type) {
	case codecValue:
		return v.Codec, nil
	case starlark.Callable:
		return &written{layout: l, decodes: v}, nil
	}
	return nil, fmt.Errorf("expected a codec or a function, got a %s", v.Type())
}

// frameValue is a VM frame under construction.
type frameValue struct {
	base
	Frame
	method, position starlark.Value
	where            string
}

func (f *frameValue) AttrNames() []string {
	return names("extra", "local", "method", "monitor", "position", "push", "resume", "stack")
}

// Attr returns an attribute. The attributes method, position and resume can be set later: many encodings have them after the values.
func (f *frameValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "method", "position":
		v := f.method
		if name == "position" {
			v = f.position
		}
		if v == nil {
			return starlark.None, nil
		}
		return v, nil
	case "resume":
		return starlark.String(f.Resume), nil
	case "local", "stack":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			p := Placed{}
			var v starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "index", &p.At, "value", &v, "name?", &p.Name); err != nil {
				return nil, err
			}
			to := &f.Locals
			if name == "stack" {
				to = &f.Stack
			}
			return nil, f.put(t, to, p, v)
		}), nil
	case "push":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			p := Placed{At: int64(len(f.Stack))}
			var v starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "value", &v, "name?", &p.Name); err != nil {
				return nil, err
			}
			return nil, f.put(t, &f.Stack, p, v)
		}), nil
	case "extra":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			p := Placed{}
			var v starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "name", &p.Name, "value", &v); err != nil {
				return nil, err
			}
			if slices.ContainsFunc(f.Extra, func(x Placed) bool { return x.Name == p.Name }) {
				return nil, fmt.Errorf("%s is listed twice", p.Name)
			}
			return nil, f.put(t, &f.Extra, p, v)
		}), nil
	case "monitor":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			m := Monitor{}
			var v starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "owner", &v, "eliminated?", &m.Eliminated); err != nil {
				return nil, err
			}
			owner, err := runOf(t).token(t, v)
			if k := owner.Const.Type; err == nil && owner.Kind == ConstValue && k != "ref" && k != "null" {
				err = fmt.Errorf("the owner of a lock is %s %s; expected a reference or an object", k, owner.Const)
			}
			m.Owner, m.where = owner, runOf(t).here(t)
			f.Monitors = append(f.Monitors, m)
			return nil, err
		}), nil
	}
	return nil, nil
}

// SetField implements starlark.HasSetField.
func (f *frameValue) SetField(name string, v starlark.Value) error {
	switch name {
	case "method", "position":
		token, err := head(v)
		if name == "method" {
			f.method, f.Method = v, token
		} else {
			f.position, f.Position = v, token
		}
		return err
	case "resume":
		s, ok := starlark.AsString(v)
		if !ok || !slices.Contains([]string{frame.Reexecute, frame.Completed, frame.Calling, frame.Rethrow}, s) {
			return fmt.Errorf("resume = %s: expected one of %q, %q, %q, %q", v, frame.Reexecute, frame.Completed, frame.Calling, frame.Rethrow)
		}
		f.Resume = s
		return nil
	}
	return starlark.NoSuchAttrError(fmt.Sprintf("a frame has no attribute %s that can be set", name))
}

// head makes a token of a frame's method or position, which several frames may share, and which may be a constant of the layout.
func head(v starlark.Value) (*Value, error) {
	switch v := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case *operandValue:
		v.take()
		return &Value{Operand: v.k, As: v.as, Extend: v.extend, Codec: v.codec, Reads: reads(v.codec)}, nil
	case *loadValue:
		out, err := load(v)
		return &out, err
	case *computedValue:
		out := v.token()
		return &out, nil
	}
	if out, ok, err := literal(v); ok {
		return &out, err
	}
	return nil, fmt.Errorf("expected an operand, a pointee, a number or a name, got a %s", v.Type())
}

func (f *frameValue) put(t *starlark.Thread, to *[]Placed, p Placed, v starlark.Value) (err error) {
	if p.At < 0 {
		return fmt.Errorf("place %d", p.At)
	}
	p.where = runOf(t).here(t)
	p.Value, p.Run, err = placedOf(t, v)
	*to = append(*to, p)
	return err
}

// placedOf makes a token of a value, or of a row of values.
func placedOf(t *starlark.Thread, v starlark.Value) (Value, *Run, error) {
	row, ok := v.(*rowValue)
	if !ok {
		out, err := runOf(t).token(t, v)
		return out, nil, err
	}
	first, err := row.token(t)
	if err != nil {
		return first, nil, err
	}
	count, err := head(row.count)
	if err == nil && count == nil {
		err = errors.New("the row has no count")
	}
	if err != nil {
		return first, nil, err
	}
	run := &Run{Count: *count, Stride: row.stride}
	if row.refs != nil {
		if first.Kind != LoadValue {
			return first, nil, errors.New("refs requires values of one word")
		}
		mask, err := load(row.refs)
		if err == nil && widths[mask.As] != 64 {
			err = fmt.Errorf("a mask of %s; expected words of 64 bits", mask.As)
		}
		if err != nil {
			return first, nil, err
		}
		run.Refs = &mask
	}
	return first, run, nil
}

// rowValue is a token for a row of values in memory, whose number is another token.
type rowValue struct {
	base
	first  starlark.Value // a pointee, or words that are pointees
	count  starlark.Value
	stride int64
	refs   *loadValue
}

// objectValue is an object under construction.
type objectValue struct {
	base
	Object
	id int64
}

func (o *objectValue) AttrNames() []string { return names("cls", "element", "field", "id") }

func (o *objectValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "id":
		return starlark.MakeInt64(o.id), nil
	case "field", "element":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			p := Placed{where: runOf(t).here(t), Element: name == "element"}
			var v starlark.Value
			if err := starlark.UnpackArgs(name, args, kwargs, "at", &p.At, "value", &v, "name?", &p.Name); err != nil {
				return nil, err
			}
			var err error
			p.Value, p.Run, err = placedOf(t, v)
			o.Fields = append(o.Fields, p)
			return nil, err
		}), nil
	}
	return nil, nil
}

// SetField implements starlark.HasSetField: cls, the object's class.
func (o *objectValue) SetField(name string, v starlark.Value) (err error) {
	if name != "cls" {
		return starlark.NoSuchAttrError(fmt.Sprintf("an object has no attribute %s that can be set", name))
	}
	o.Class, err = head(v)
	return err
}
