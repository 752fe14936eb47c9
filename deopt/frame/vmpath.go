package frame

import (
	"fmt"
	"strconv"
	"strings"
)

// Follow returns the value at a path through objects that were not allocated, such as local[0].price or object[1].next.8. It returns false if the
// path leads to no value.
func (v *VM) Follow(path string) (Slot, bool) {
	base, rest := path, ""
	for {
		at, isObject := v.start(base)
		if at != nil || isObject != nil {
			return v.follow(path, at, isObject, rest)
		}
		dot := strings.LastIndexByte(base, '.')
		if dot < 0 {
			return Slot{}, false
		}
		base, rest = base[:dot], path[dot+1:]
	}
}

// start finds the value or the object that the start of a path names.
func (v *VM) start(name string) (*VMValue, *VMObject) {
	for _, n := range v.All() {
		if n.Name == name {
			return n.Value, nil
		}
	}
	if number, is := strings.CutPrefix(name, "object["); is {
		if id, err := strconv.ParseInt(strings.TrimSuffix(number, "]"), 10, 64); err == nil && strings.HasSuffix(number, "]") {
			return nil, v.object(id)
		}
	}
	return nil, nil
}

func (v *VM) object(id int64) *VMObject {
	if v == nil {
		return nil
	}
	for n := range v.Objects {
		if v.Objects[n].ID == id {
			return &v.Objects[n]
		}
	}
	return nil
}

// follow returns the value at the end of rest, which holds names or offsets of fields. It starts at the value at or at the object of.
func (v *VM) follow(path string, at *VMValue, of *VMObject, rest string) (Slot, bool) {
	for _, step := range strings.FieldsFunc(rest, func(r rune) bool { return r == '.' }) {
		if at != nil {
			if at.Object == nil {
				return Slot{}, false
			}
			if of = v.object(*at.Object); of == nil {
				return Slot{}, false
			}
		}
		at = nil
		for k := range of.Fields {
			if f := &of.Fields[k]; f.Name == step || strconv.FormatInt(f.At, 10) == step {
				at = &f.VMValue
				break
			}
		}
		if at == nil {
			return Slot{}, false
		}
	}
	if at == nil {
		return Slot{Name: path, Status: OK, Value: of.text()}, true
	}
	if at.Object != nil && rest != "" {
		if is := v.object(*at.Object); is != nil {
			return Slot{Name: path, Status: OK, Value: is.text()}, true
		}
	}
	return at.as(path), true
}

// text returns the object and its fields on one line.
func (o *VMObject) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "object %d, not allocated: %s {", o.ID, o.Class)
	for k := range o.Fields {
		f := &o.Fields[k]
		if k > 0 {
			b.WriteString(", ")
		}
		name := f.Name
		switch {
		case f.Element:
			name = fmt.Sprintf("[%d]", f.At)
		case name == "":
			name = fmt.Sprintf("+%d", f.At)
		}
		value := strings.TrimSpace(f.Type + " " + f.Value + " " + f.Text)
		switch {
		case f.Object != nil:
			value = fmt.Sprintf("object %d", *f.Object)
		case f.Status != OK && f.Status != "":
			value = string(f.Status)
		}
		b.WriteString(name + " = " + value)
	}
	return b.String() + "}"
}
