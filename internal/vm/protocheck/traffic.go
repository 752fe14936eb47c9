package protocheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/protocol"
)

// traffic records the messages of the interpreter.
type traffic struct {
	wrong string // a violation: a misspelled member

	counting      bool
	known         map[[2]any]bool // ranges that were read
	ranges, again int
}

// seen holds the relevant parts of a message of the interpreter.
type seen struct {
	Method string
	Params struct {
		Ranges []struct {
			At   protocol.Word
			Size int
		}
	}
}

// members lists the members that an object in an interpreter's message may have, by the member that holds the object; "" is the message itself.
// doc/user/schema/messages.schema.json lists the same members.
var members = map[string][]string{
	"":         {"jsonrpc", "id", "method", "params", "result", "error"},
	"result":   {"protocol", "name", "step", "returned", "threw", "unsupported", "malformed", "stopped", "steps", "tail", "locked"},
	"returned": {"type", "bits", "text"},
	"threw":    {"text"},
	"error":    {"code", "message"},
	"params":   {"ranges", "size", "align", "names", "text"},
	"ranges":   {"at", "size", "data"},
	"stopped":  {"frames", "objects"},
	"frames":   {"method", "method_bits", "position", "resume", "text", "locals", "stack", "monitors", "extra"},
	"locals":   valueMembers,
	"stack":    valueMembers,
	"monitors": {"owner", "eliminated"},
	"owner":    valueMembers,
	"objects":  {"id", "class", "class_bits", "fields"},
	"fields":   {"at", "name", "type", "value", "bits", "object", "dead"},
}

var valueMembers = []string{"index", "name", "type", "value", "bits", "words", "object", "dead"}

// see records a line.
func (t *traffic) see(line []byte) {
	var list []json.RawMessage
	if json.Unmarshal(line, &list) != nil {
		list = []json.RawMessage{line}
	}
	for _, text := range list {
		var v map[string]any
		if json.Unmarshal(text, &v) != nil {
			continue // package protocol has reported it
		}
		t.spelled("", v)
		var m seen
		if t.counting && json.Unmarshal(text, &m) == nil {
			t.count(&m)
		}
	}
}

// begin starts to count the ranges of memory that the interpreter reads.
func (t *traffic) begin() { t.counting, t.known, t.ranges, t.again = true, map[[2]any]bool{}, 0, 0 }

func (t *traffic) end() (ranges, again int) {
	t.counting, t.known = false, nil
	return t.ranges, t.again
}

// count counts ranges that are read, and those that were read before and not written since.
func (t *traffic) count(m *seen) {
	switch m.Method {
	case "memory.write":
		clear(t.known) // any range may have been written
	case "memory.read":
		for _, r := range m.Params.Ranges {
			t.ranges++
			key := [2]any{r.At, r.Size}
			if t.known[key] {
				t.again++
			}
			t.known[key] = true
		}
	}
}

// spelled records the first unknown member that resembles one of the protocol's.
func (t *traffic) spelled(where string, v map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		known := members[where]
		if slices.Contains(known, name) {
			t.inside(name, v[name])
			continue
		}
		if meant := names.ByDistance(name, known); t.wrong == "" && len(meant) > 0 && alike(name, meant[0]) {
			t.wrong = fmt.Sprintf("%q is not a member of %s; did you mean %q?", name, place(where), meant[0])
		}
	}
}

func (t *traffic) inside(name string, v any) {
	if members[name] == nil || name == "" {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		t.spelled(name, v)
	case []any:
		for _, e := range v {
			if o, ok := e.(map[string]any); ok {
				t.spelled(name, o)
			}
		}
	}
}

// alike reports whether a name may be a misspelling of another.
func alike(name, other string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	return names.Distance(name, other) <= len(other)/3
}

func place(where string) string {
	if where == "" {
		return "a message"
	}
	return where
}

func (t *traffic) misspelled() error {
	if t.wrong == "" {
		return nil
	}
	return errors.New(t.wrong)
}
