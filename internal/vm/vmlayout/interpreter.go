package vmlayout

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"example.com/reframe/deopt/frame"
)

// NativeSite is the kind of the site of an interpreter's native frame.
const NativeSite = "native"

// maxFunctions bounds the names in interpreter_functions.
const maxFunctions = 1 << 10

// Native is the frame of a native function of the VM's interpreter, the argument of interpreter_frames(native).
type Native struct {
	PC        uint64
	CFA       Register
	Registers map[string]Register // the general-purpose registers of the architecture
}

// Register is the value of a register, or the reason why it is unavailable.
type Register struct {
	Bits uint64
	Why  string `json:",omitempty"`
}

// Interprets reports whether the layout describes the frames of a native function, by one of the function's names.
func (l *Layout) Interprets(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && slices.Contains(l.interpreterFunctions, n) })
}

// Interpreter reads the frames of the VM in a native frame. The site has the function, the native frame and the target. The result is nil if
// interpreter_frames returned None: the function runs no method. Interpreter calls the layout each time, because the interpreter changes its frames
// as it runs.
func (l *Layout) Interpreter(site *Site, from *Source) *frame.VM {
	with := *site
	with.Target, _ = site.Target.watched() // a watched target bounds the reads
	shape, err := l.Frames(&with)
	return (&Reading{Layout: l, Shape: shape, Err: err}).Read(from)
}

// listFunctions reads the layout's interpreter_functions.
func (l *Layout) listFunctions(globals starlark.StringDict) error {
	v, there := globals["interpreter_functions"]
	if there != (l.interpreterFrames != nil) {
		return errors.New("interpreter_functions and interpreter_frames(native) require each other")
	}
	if !there {
		return nil
	}
	list, ok := v.(*starlark.List)
	if !ok || list.Len() > maxFunctions {
		return fmt.Errorf("interpreter_functions must be a list of up to %d names of functions", maxFunctions)
	}
	for v := range starlark.Elements(list) {
		name, ok := starlark.AsString(v)
		if !ok {
			return fmt.Errorf("interpreter_functions has a %s; expected names of functions", v.Type())
		}
		l.interpreterFunctions = append(l.interpreterFunctions, name)
	}
	return nil
}

// nativeValue is the native frame for a layout.
type nativeValue struct {
	base
	r *run
}

func (*nativeValue) AttrNames() []string {
	return names("cfa", "function", "pc", "pointee", "register")
}

// Attr returns an attribute. An unavailable value is an error.
func (n *nativeValue) Attr(name string) (starlark.Value, error) {
	is := n.r.site.Native
	switch name {
	case "function":
		return starlark.String(n.r.site.Function), nil
	case "pc":
		return starlark.MakeUint64(is.PC), nil
	case "cfa":
		return is.CFA.number("the CFA")
	case "register":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var of string
			if err := starlark.UnpackArgs(name, args, kwargs, "name", &of); err != nil {
				return nil, err
			}
			r, ok := is.Registers[of]
			if !ok {
				return nil, fmt.Errorf("the architecture has no general-purpose register %s", of)
			}
			return r.number(of)
		}), nil
	case "pointee":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var at starlark.Int
			if len(args) == 0 || !isInt(args[0], &at) {
				return nil, errors.New("expected an address and a type")
			}
			return newLoad(name, at, args[1:], kwargs)
		}), nil
	}
	return nil, nil
}

func isInt(v starlark.Value, to *starlark.Int) (ok bool) {
	*to, ok = v.(starlark.Int)
	return ok
}

// number returns the value; name is used in the error.
func (r Register) number(name string) (starlark.Value, error) {
	if r.Why != "" {
		return nil, fmt.Errorf("%s is unavailable: %s", name, r.Why)
	}
	return starlark.MakeUint64(r.Bits), nil
}
