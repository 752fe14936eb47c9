package jsonat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// member is a value in a text, with its position.
type member struct {
	path       string
	key        int64 // offset of its name; in an array, the offset of the value
	start, end int64 // offsets of its bytes; the end of an object or array is known only after its members
	composite  bool
	unknown    bool     // the type of the enclosing object has no such member
	siblings   []string // the members that the type of the enclosing object has
}

// walker walks through the values of a text.
type walker struct {
	text  []byte
	d     *json.Decoder
	stop  func(member) bool
	found *member
	depth int
}

// maxDepth is the greatest nesting depth that encoding/json accepts. Its tokenizer accepts deeper nesting.
const maxDepth = 10000

// walk returns the first member for which stop reports true. It visits a member before the members inside it. It returns nil if the text ends, or is not
// JSON, before that. t is the type that the text is decoded into, or nil if the types do not matter.
func walk(text []byte, t reflect.Type, stop func(member) bool) *member {
	w := &walker{text: text, d: json.NewDecoder(bytes.NewReader(text)), stop: stop}
	w.d.UseNumber()
	w.value(member{}, t)
	return w.found
}

// at returns the offset of the next token.
func (w *walker) at() int64 {
	at := w.d.InputOffset()
	return at + int64(len(w.text[at:])-len(bytes.TrimLeft(w.text[at:], " \t\r\n:,")))
}

// value walks through one value. It returns false to end the walk.
func (w *walker) value(m member, t reflect.Type) bool {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	m.start = w.at()
	if m.path == "" || m.key == 0 {
		m.key = m.start
	}
	token, err := w.d.Token()
	if err != nil || w.depth > maxDepth {
		return false
	}
	m.end = w.d.InputOffset()
	delim, composite := token.(json.Delim)
	m.composite = composite
	if w.stop(m) {
		w.found = &m
		return false
	}
	if !composite {
		return true
	}
	w.depth++
	defer func() { w.depth-- }()
	for n := 0; w.d.More(); n++ {
		next := member{path: fmt.Sprintf("%s[%d]", m.path, n)}
		var of reflect.Type
		if delim == '{' {
			next.key = w.at()
			name, err := w.d.Token()
			if err != nil {
				return false
			}
			text, _ := name.(string)
			next.path = strings.TrimPrefix(m.path+"."+spelled(text), ".")
			of, next.unknown, next.siblings = field(t, text)
		} else if t != nil && t.Kind() == reflect.Slice {
			of = t.Elem()
		}
		if !w.value(next, of) {
			return false
		}
	}
	_, err = w.d.Token()
	return err == nil
}

// spelled returns a member name as it appears in a path: quoted if it has special characters.
func spelled(name string) string {
	quoted := fmt.Sprintf("%q", name)
	if quoted == `"`+name+`"` && name != "" && !strings.ContainsAny(name, ".[] ") {
		return name
	}
	return quoted
}

// field returns the type of a member of a struct, by the rules of encoding/json. unknown is true if the struct has no member of that name.
func field(t reflect.Type, name string) (of reflect.Type, unknown bool, all []string) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, false, nil
	}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" || tag == "-" || !f.IsExported() {
			continue
		}
		all = append(all, tag)
		if strings.EqualFold(tag, name) {
			return f.Type, false, nil
		}
	}
	return nil, true, all
}
