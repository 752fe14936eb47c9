package tinyvmtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// An Arrival is a line of tinyvm's log: the frames of the interpreter when it reached a position, or the frames that were rebuilt at an exit of
// compiled code. Rebuilt frames are the innermost frames of the arrival.
type Arrival struct {
	Fuel     int64
	Method   string
	Position int
	Depth    int    // number of frames below the innermost
	Call     string // the method that the innermost frame calls, or "" if it does not wait for a call
	Frames   []Frame
	Heap     []Object
}

// A Frame is a frame of the VM. While it waits for a call, its stack does not contain the arguments of the call.
type Frame struct {
	Method                  string
	Position                int
	Locals, Stack, Monitors []Value
}

// An Object is an object with the number by which references name it.
type Object struct {
	Class  string
	Lock   int
	Fields []Value
}

// A Value has exactly one of these members; null has none.
type Value struct {
	Int    *int32
	Double *string // the bits in hexadecimal
	Ref    *int
	Dead   bool // the value is unknown, and is never used
}

// UnmarshalJSON reads null, "dead" and an object with one member.
func (v *Value) UnmarshalJSON(text []byte) error {
	if string(text) == `"dead"` {
		v.Dead = true
		return nil
	}
	type plain Value
	return json.Unmarshal(text, (*plain)(v))
}

func (v Value) String() string {
	switch {
	case v.Int != nil:
		return fmt.Sprint(*v.Int)
	case v.Double != nil:
		return "double " + *v.Double
	case v.Ref != nil:
		return fmt.Sprint("object ", *v.Ref)
	case v.Dead:
		return "dead"
	default:
		return "null"
	}
}

// A Key identifies an arrival within a run.
type Key struct {
	Fuel     int64
	Method   string
	Position int
	Depth    int
}

// Key returns the key of the arrival. Frames that wait for a call are logged when the callee begins.
func (a Arrival) Key() Key {
	if a.Call != "" {
		return Key{a.Fuel, a.Call, 0, a.Depth + 1}
	}
	return Key{a.Fuel, a.Method, a.Position, a.Depth}
}

// ReadLog reads a log, whose lines are in chronological order, and returns the arrivals whose key is wanted.
func ReadLog(t testing.TB, file string, wanted func(Key) bool) []Arrival {
	t.Helper()
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil // nothing was logged
	}
	require.NoError(t, err)
	defer f.Close()
	var all []Arrival
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var k Key
		var a Arrival
		head, _, _ := bytes.Cut(lines.Bytes(), []byte(`,"frames"`))
		require.NoError(t, json.Unmarshal(append(bytes.Clone(head), '}'), &k), "%s", head)
		if wanted(k) {
			require.NoError(t, json.Unmarshal(lines.Bytes(), &a), "%s", lines.Bytes())
			all = append(all, a)
		}
	}
	require.NoError(t, lines.Err())
	return all
}

// Compare returns the first difference between the interpreter's frames and the rebuilt ones, or "". It ignores values that are dead in the rebuilt
// frames, the numbers of objects, and frames that were not rebuilt.
func Compare(was, rebuilt Arrival) string {
	_, difference := Match(was, rebuilt)
	return difference
}

// Match is like [Compare], and also maps the numbers of the interpreter's objects to those of the rebuilt objects.
func Match(was, rebuilt Arrival) (objects map[int]int, difference string) {
	c := comparison{was: was, rebuilt: rebuilt, to: map[int]int{}, from: map[int]int{}}
	return c.to, c.compare(was, rebuilt)
}

func (c *comparison) compare(was, rebuilt Arrival) string {
	if rebuilt.Call != "" && len(was.Frames) > 0 {
		was.Frames = was.Frames[1:]
	}
	if len(rebuilt.Frames) > len(was.Frames) {
		return fmt.Sprintf("%d frames, rebuilt %d", len(was.Frames), len(rebuilt.Frames))
	}
	for i, r := range rebuilt.Frames {
		w := was.Frames[i]
		where := fmt.Sprintf("frame %d, %s @ %d: ", i, w.Method, w.Position)
		if w.Method != r.Method || w.Position != r.Position {
			return fmt.Sprintf("%srebuilt %s @ %d", where, r.Method, r.Position)
		}
		for _, list := range []struct {
			name string
			w, r []Value
		}{{"local", w.Locals, r.Locals}, {"stack", w.Stack, r.Stack}, {"monitor", w.Monitors, r.Monitors}} {
			if d := c.values(where+list.name, list.w, list.r); d != "" {
				return d
			}
		}
	}
	return c.heap()
}

type comparison struct {
	was, rebuilt Arrival
	to, from     map[int]int // numbers of objects
	todo         [][2]int
}

func (c *comparison) values(where string, was, rebuilt []Value) string {
	if len(was) != len(rebuilt) {
		return fmt.Sprintf("%s: %d, rebuilt %d", where, len(was), len(rebuilt))
	}
	for i, r := range rebuilt {
		w := was[i]
		switch {
		case r.Dead:
			continue
		case w.Ref != nil && r.Ref != nil:
			to, seen := c.to[*w.Ref]
			from, back := c.from[*r.Ref]
			if !seen && !back {
				c.to[*w.Ref], c.from[*r.Ref] = *r.Ref, *w.Ref
				c.todo = append(c.todo, [2]int{*w.Ref, *r.Ref})
				continue
			}
			if !seen || !back || to != *r.Ref || from != *w.Ref {
				return fmt.Sprintf("%s %d: %v and %v are not the same", where, i, w, r)
			}
		case w.String() != r.String():
			return fmt.Sprintf("%s %d: %v, rebuilt %v", where, i, w, r)
		}
	}
	return ""
}

func (c *comparison) heap() string {
	for len(c.todo) > 0 {
		pair := c.todo[0]
		c.todo = c.todo[1:]
		w, r := c.was.Heap[pair[0]], c.rebuilt.Heap[pair[1]]
		where := fmt.Sprintf("object %d, a %s: ", pair[0], w.Class)
		if w.Class != r.Class || w.Lock != r.Lock {
			return fmt.Sprintf("%slock %d, rebuilt a %s, lock %d", where, w.Lock, r.Class, r.Lock)
		}
		if d := c.values(where+"field", w.Fields, r.Fields); d != "" {
			return d
		}
	}
	return ""
}
