package vmlayout

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"example.com/reframe/internal/machine"
)

// HeapObject is an object of the target's heap, as a layout's function object(addr) describes it.
type HeapObject struct {
	Start, Size uint64
	Class       Class
	Refs        []RefRun // the words that hold references
	Width       uint64   // of such a word in bytes
	State       ObjectState
}

// Class identifies a class, by its bits or by its name.
type Class struct {
	Bits uint64
	Name string
}

// RefRun is a run of references at equal distances.
type RefRun struct{ First, Stride, Count uint64 }

// ObjectState is the state of an object.
type ObjectState string

// These are the states. LeftObject is the state of an object in from-space: the collector has moved it away.
const (
	LiveObject  ObjectState = "live"
	FreedObject ObjectState = "freed"
	LeftObject  ObjectState = "from-space"
)

// These bound object(addr). The function runs once for each object of a heap. In 200,000 steps it can search a page for the start of an object.
const (
	maxObjectSteps = 200_000
	maxRefRuns     = 1 << 16
)

// minObject is the size of the smallest object in bytes: a set of objects then needs one bit for each 8 bytes of the heap.
const minObject = 8

// ObjectSource returns a source for [Layout.Object]: the memory of the target, and its symbols.
func ObjectSource(t *Target, memory machine.Memory) *Source {
	found := map[string]machine.Addr{}
	from := &Source{Memory: memory, Static: memory, Order: t.Order}
	from.symbol = func(name string) (machine.Addr, bool, error) {
		at, known := found[name]
		if !known {
			var ok bool
			if at, ok = t.Symbol(name); !ok {
				return 0, false, nil
			}
			if len(found) < maxParts {
				found[name] = at
			}
		}
		return at, true, nil
	}
	return from
}

// DescribesObjects returns the first layout that defines object(addr); nil if none does.
func DescribesObjects(layouts []*Layout) *Layout {
	for _, l := range layouts {
		if l.has("object") {
			return l
		}
	}
	return nil
}

// Object calls object(addr), which returns the object that contains an address. The result is nil if no object does.
func (l *Layout) Object(from *Source, addr uint64) (*HeapObject, error) {
	if l.child != nil {
		r, err := l.child.told(from, &request{Of: "object", Bits: addr})
		if err != nil || r.Object == nil {
			return nil, err
		}
		return r.Object, l.unsound(r.Object, addr)
	}
	t := l.thread(&run{layout: l, source: from})
	t.SetMaxExecutionSteps(maxObjectSteps)
	is, err := l.callOn(t, l.object, starlark.MakeUint64(addr))
	var e *Error
	if errors.As(err, &e) && t.ExecutionSteps() >= maxObjectSteps {
		e.Err = fmt.Errorf("object(%#x) did not end after %d steps", addr, maxObjectSteps)
	}
	if err != nil || is == starlark.None {
		return nil, err
	}
	o, ok := is.(*heapObjectValue)
	if !ok {
		return nil, l.returned(l.object, is, "heap_object(…) or None")
	}
	return &o.is, l.unsound(&o.is, addr)
}

// unsound returns an error if an object cannot exist, or does not contain the address for which the layout returned it.
func (l *Layout) unsound(o *HeapObject, addr uint64) error {
	if err := o.unsound(); err != nil {
		return &Error{File: l.Name, Err: fmt.Errorf("object(%#x): %w", addr, err)}
	}
	if addr < o.Start || addr-o.Start >= o.Size {
		return &Error{File: l.Name, Err: fmt.Errorf("object(%#x) returned an object from %#x to %#x, which does not contain the address", addr, o.Start, o.Start+o.Size)}
	}
	return nil
}

// unsound returns an error if an object cannot exist.
func (o *HeapObject) unsound() error {
	switch {
	case o.Width != 4 && o.Width != 8:
		return fmt.Errorf("references of %d bytes; expected 4 or 8", o.Width)
	case o.Size < minObject:
		return fmt.Errorf("an object of %d bytes; expected at least %d", o.Size, minObject)
	case o.Start+o.Size < o.Start:
		return fmt.Errorf("an object of %d bytes at %#x, which ends above all addresses", o.Size, o.Start)
	case o.State != LiveObject && o.State != FreedObject && o.State != LeftObject:
		return fmt.Errorf("the state %q; expected live, freed or from-space", o.State)
	case len(o.Refs) > maxRefRuns:
		return fmt.Errorf("over %d references at unequal distances", maxRefRuns)
	}
	last := o.Size - o.Width
	for _, r := range o.Refs {
		if r.First > last || r.Count == 0 || r.Count > 1 && (r.Stride == 0 || (last-r.First)/r.Stride < r.Count-1) {
			return fmt.Errorf("a reference at offset %d or after it lies outside of the object, which has %d bytes", r.First, o.Size)
		}
	}
	return nil
}

// heapObjectValue is the result of heap_object.
type heapObjectValue struct {
	base
	is HeapObject
}

// addObjects adds the function that makes the result of object(addr).
func addObjects(add adder) {
	add("heap_object", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		o := &heapObjectValue{base{"heap_object"}, HeapObject{State: LiveObject, Width: 8}}
		var class, refs starlark.Value = starlark.None, starlark.None
		var size starlark.Int
		state := string(LiveObject)
		if err := starlark.UnpackArgs("heap_object", args, kwargs, "start", &o.is.Start, "size", &size, "cls?", &class, "refs?", &refs, "state?", &state, "width?", &o.is.Width); err != nil {
			return nil, err
		}
		o.is.State = ObjectState(state)
		var ok bool
		if o.is.Size, ok = size.Uint64(); !ok {
			return nil, fmt.Errorf("a size of %v bytes", size)
		}
		switch v := class.(type) {
		case starlark.NoneType:
		case starlark.String:
			o.is.Class.Name = string(v[:min(len(v), maxString)])
		case starlark.Int:
			if o.is.Class.Bits, ok = v.Uint64(); !ok {
				return nil, fmt.Errorf("the class %v; expected a number of 64 bits without a sign", v)
			}
		default:
			return nil, fmt.Errorf("the class is a %s; expected a number or a text", v.Type())
		}
		var err error
		if o.is.Refs, err = runsOf(refs); err != nil {
			return nil, err
		}
		return o, o.is.unsound()
	})
}

// runsOf converts the offsets of references. It does not visit the numbers of a range one by one.
func runsOf(v starlark.Value) (runs []RefRun, err error) {
	if v == starlark.None {
		return nil, nil
	}
	list, ok := v.(starlark.Indexable)
	if !ok {
		return nil, fmt.Errorf("references are a %s; expected a list or a range of offsets", v.Type())
	}
	offset := func(k int) (uint64, error) {
		n, ok := list.Index(k).(starlark.Int)
		if !ok {
			return 0, fmt.Errorf("reference %d is a %s; expected an offset", k, list.Index(k).Type())
		}
		at, ok := n.Uint64()
		if !ok {
			return 0, fmt.Errorf("a reference at offset %v", n)
		}
		return at, nil
	}
	count := list.Len()
	if count == 0 {
		return nil, nil
	}
	if v.Type() == "range" {
		first, err := offset(0)
		if err != nil || count == 1 {
			return []RefRun{{first, 0, 1}}, err
		}
		second, err := offset(1)
		if err == nil && second < first {
			err = errors.New("the offsets of references must be in ascending order")
		}
		return []RefRun{{first, second - first, uint64(count)}}, err
	}
	for k := range count {
		at, err := offset(k)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			runs = append(runs, RefRun{at, 0, 1})
			continue
		}
		r := &runs[len(runs)-1]
		last := r.First + r.Stride*(r.Count-1)
		switch {
		case at <= last:
			return nil, errors.New("the offsets of references must be in ascending order")
		case r.Count == 1 || at-last == r.Stride:
			r.Stride, r.Count = at-last, r.Count+1
		case len(runs) > maxRefRuns:
			return runs, nil // unsound reports an invalid run
		default:
			runs = append(runs, RefRun{at, 0, 1})
		}
	}
	return runs, nil
}

// ClassName returns the name of a class for people: the layout's text, or its bits.
func (l *Layout) ClassName(from *Source, c Class) string {
	switch {
	case c.Name != "":
		return c.Name
	case c.Bits == 0:
		return ""
	case l.has("class"):
		if name, err := l.nameOf("class", from, c.Bits); err == nil && name != "" {
			return name
		}
	}
	return fmt.Sprintf("%#x", c.Bits)
}
