package vmlayout

import (
	"go.starlark.net/starlark"

	"example.com/reframe/internal/machine"
)

// maxInfo bounds the entries of info for a position.
const maxInfo = 64

// optional returns an optional function of a layout: one that names methods or classes, follows references, or describes a position.
func (l *Layout) optional(what string) starlark.Callable {
	switch what {
	case "method":
		return l.methodName
	case "class":
		return l.className
	case "reference":
		return l.reference
	case "object":
		return l.object
	case "frames":
		return l.frames
	case "local":
		return l.localName
	case "field":
		return l.fieldName
	case "text":
		return l.text
	}
	return l.info
}

func (l *Layout) has(what string) bool {
	if l.child != nil {
		return l.child.has[what]
	}
	return l.optional(what) != nil
}

// nameOf returns the layout's name for a method or a class.
func (l *Layout) nameOf(what string, from *Source, bits uint64) (string, error) {
	if l.child != nil {
		return l.child.name(from, what, bits)
	}
	by := l.optional(what)
	is, err := l.call(by, from, starlark.MakeUint64(bits))
	if err != nil {
		return "", err
	}
	named, ok := starlark.AsString(is)
	if !ok {
		return "", l.returned(by, is, "a text")
	}
	return named, nil
}

// Reference returns the address that a word in memory refers to, and false if it is not a reference. The layout's function reference(bits) determines
// it; it returns the address or None. Without that function, a word is an address. If the function fails, the word is not a reference.
func (l *Layout) Reference(bits uint64) (machine.Addr, bool) {
	if !l.has("reference") {
		return machine.Addr(bits), bits != 0
	}
	if l.child != nil {
		at, err := l.child.reference(bits)
		return machine.Addr(at), err == nil && at != 0
	}
	is, err := l.call(l.reference, nil, starlark.MakeUint64(bits))
	if err != nil {
		return 0, false
	}
	at, ok := is.(starlark.Int)
	if !ok {
		return 0, false
	}
	n, ok := at.Uint64()
	return machine.Addr(n), ok && n != 0
}

// infoOf returns the layout's info for a position.
func (l *Layout) infoOf(from *Source, method uint64, position int64) (map[string]string, error) {
	if l.child != nil {
		return l.child.info(from, method, position)
	}
	is, err := l.call(l.info, from, starlark.MakeUint64(method), starlark.MakeInt64(position))
	if err != nil || is == starlark.None {
		return nil, err
	}
	d, ok := is.(*starlark.Dict)
	if !ok {
		return nil, l.returned(l.info, is, "a dict")
	}
	out := map[string]string{}
	for _, item := range d.Items() {
		name, ok := starlark.AsString(item[0])
		if !ok || len(out) == maxInfo {
			continue
		}
		if text, ok := starlark.AsString(item[1]); ok {
			out[name] = text
		} else {
			out[name] = item[1].String()
		}
	}
	return out, nil
}
