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

// An Arrival is a line of a log of tinyvm: the frames when the interpreter came to a position, or those rebuilt at an exit of compiled code, which
// are the innermost ones of the former.
type Arrival struct {
	Fuel     int64
	Method   string
	Position int
	Depth    int    // how many frames are under the innermost
	Call     string // the method that the frames wait for, or "": then the innermost does not wait
	Frames   []Frame
	Heap     []Object
}

// A Frame is one of the VM. Those that wait for a call have no arguments of it on their stack.
type Frame struct {
	Method                  string
	Position                int
	Locals, Stack, Monitors []Value
}

// An Object is what a reference leads to, by its number.
type Object struct {
	Class  string
	Lock   int
	Fields []Value
}

// A Value is one of its forms; none of them is null.
type Value struct {
	Int    *int32
	Double *string // its bits in hex
	Ref    *int
	Dead   bool // not known, and never used
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

// A Key names an arrival: there is one of it in a run.
type Key struct {
	Fuel     int64
	Method   string
	Position int
	Depth    int
}

// Key is that of the arrival. Frames that wait for a call are seen when the callee begins.
func (a Arrival) Key() Key {
	if a.Call != "" {
		return Key{a.Fuel, a.Call, 0, a.Depth + 1}
	}
	return Key{a.Fuel, a.Method, a.Position, a.Depth}
}

// ReadLog reads a log, whose lines are in the order in which things happened. Of a long one it takes those that are wanted.
func ReadLog(t testing.TB, file string, wanted func(Key) bool) []Arrival {
	t.Helper()
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil // nothing ever arrived
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

// Compare says what differs between the frames that the interpreter had and those that were rebuilt: values that are dead in the latter do not
// count, nor do the numbers of objects, nor frames that the latter has not. It is empty where nothing does.
func Compare(was, rebuilt Arrival) string {
	_, difference := Match(was, rebuilt)
	return difference
}

// Match is [Compare], and says which numbers the interpreter's objects have among the rebuilt ones.
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
