package html

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/explain"
)

// Page holds the content of a page. It is plain data: it needs no access to the target.
type Page struct {
	Title       string
	Explanation *explain.Explanation
	Places      []*Place
	Difference  *Difference // nil unless the page belongs to a [Book]
	limits      limits
}

// Place is a place in the code, with the picture of the frame there if the question was about a frame.
type Place struct {
	*explain.Place
	Main      bool // the target of the page's links: the place with the frame or, without a frame, the first place
	Title     string
	Values    []Value
	Locations int // number of locations of the record; 0 without a record
	Stack     *Stack
	Registers *Registers
	Record    *Record
	IR        []*Excerpt
	VM        *Graph

	frame  *deopt.Frame
	memory machine.Memory
	at     []int // the location of each value in the record, or -1
}

// Value is a value of the record, with links to the other parts of the page that show it.
type Value struct {
	*explain.Value
	Key   string
	Shown string // the value, or the reason why it is unavailable
	Links []Link
}

// Link leads to another place of the page.
type Link struct{ To, Text string }

// limits bounds the parts of a page, by their kind.
type limits struct {
	values, words, fields, lines, boxes, rows, differences int
}

// roomy holds the usual limits, which suffice for the output of compilers. A page that is too large with these limits is written again with half of
// each limit.
var roomy = limits{values: 400, words: 1024, fields: 512, lines: 80, boxes: 64, rows: 48, differences: 400}

func (l limits) half() limits {
	h := func(n int) int { return max(n/2, 1) }
	return limits{h(l.values), h(l.words), h(l.fields), h(l.lines), h(l.boxes), h(l.rows), h(l.differences)}
}

// MaxSize bounds a page, in bytes.
const MaxSize = 1_000_000

// Of makes the page of an explanation for a frame of the view. The target must be stopped. Memory is read from m, or, if m is nil, from the target.
func Of(v *deopt.View, e *explain.Explanation, m machine.Memory) *Page {
	if m == nil {
		m = v.Target()
	}
	p := &Page{Title: "reframe: " + e.Asked, Explanation: e, limits: roomy}
	for n := range e.Places {
		at := &Place{Place: &e.Places[n], Title: title(&e.Places[n]), memory: m}
		if at.Frame != nil {
			at.frame = frameOf(v, *at.Frame)
		}
		p.Places = append(p.Places, at)
	}
	main := max(0, slices.IndexFunc(p.Places, func(at *Place) bool { return at.frame != nil }))
	for n, at := range p.Places {
		at.Main = n == main
	}
	if len(p.Places) == 1 && e.Places[0].In.Symbol != nil {
		p.Title = p.Places[0].Title
	}
	p.draw()
	return p
}

// title returns the title of a place.
func title(at *explain.Place) string {
	where := string(at.Address)
	if s := at.In.Symbol; s != nil {
		where = fmt.Sprintf("%s+%#x", names.Short(s.Name), s.Offset)
	}
	if at.Frame != nil {
		return fmt.Sprintf("frame #%d of thread %d: %s", at.Frame.Index, at.Frame.TID, where)
	}
	return where
}

// frameOf finds a frame of the view.
func frameOf(v *deopt.View, name explain.FrameName) *deopt.Frame {
	for i := range v.Threads {
		for _, f := range v.Threads[i].Frames {
			if v.Threads[i].ID == name.TID && f.Index == name.Index {
				return f
			}
		}
	}
	return nil
}

// draw reads and lays out all parts of the page, within its limits.
func (p *Page) draw() {
	for _, at := range p.Places {
		if at.frame == nil {
			continue
		}
		at.values(p.limits)
		at.Stack = at.stack(p.limits)
		at.Registers = at.registers()
		at.Record = at.record(p.limits)
		at.IR = at.excerpts(p.limits)
		at.VM = at.graph(p.limits)
		at.link()
	}
}

// key returns the CSS class of all elements of the page that belong to value k.
func key(k int) string { return fmt.Sprintf("v%d", k) }

// values sets the values that are shown, and finds the location of each in the record.
func (at *Place) values(l limits) {
	shown := min(len(at.Place.Values), l.values)
	at.Values, at.at = nil, at.placed(shown)
	for k := range shown {
		x := &at.Place.Values[k]
		v := Value{Value: x, Key: key(k)}
		switch v.Shown = cmp.Or(x.Value, string(x.Hex)); x.Status {
		case frame.Missing, frame.Undefined:
			v.Shown = string(x.Status) + ": " + x.Reason
		case frame.Guessed:
			v.Shown = "guess: " + v.Shown
		}
		at.Values = append(at.Values, v)
	}
}

// link adds links to each shown value. They lead to all other parts of the page that show the value.
func (at *Place) link() {
	for k := range at.Values {
		v := &at.Values[k]
		if v.GC != nil && v.GC.Base != nil {
			if n := slices.IndexFunc(at.Values, func(of Value) bool { return of.Index == *v.GC.Base }); n >= 0 {
				v.Links = append(v.Links, Link{"#" + key(n), "base"})
			}
		}
		for _, part := range []struct {
			shown map[int]bool
			name  string
		}{{at.Record.shown(), "record"}, {at.Stack.shown(), "stack"}, {at.Registers.shown(), "register"}, {shownIn(at.IR), "IR"}, {at.VM.shown(), "VM"}} {
			if part.shown[k] {
				v.Links = append(v.Links, Link{fmt.Sprintf("#%s-%s", part.name, v.Key), part.name})
			}
		}
	}
}

// MoreValues returns the number of values that are not shown.
func (at *Place) MoreValues() int { return len(at.Place.Values) - len(at.Values) }

// called returns a short name of a value.
func (v *Value) called() string { return cmp.Or(v.Name, fmt.Sprintf("#%d", v.Index)) }

func (at *Place) called(k int) string { return at.Values[k].called() }

// Collected returns the role of the value for the collector, according to the record of a statepoint; "" if the value has none.
func (v *Value) Collected() string {
	switch g := v.GC; {
	case g == nil:
		return ""
	case !g.Pair:
		return "no gc pair: the record does not list it for the collector"
	case g.Base == nil:
		if names := g.Possible(); names != "" {
			return "gc pair: it is its own base; " + names
		}
		return "gc pair: it is its own base"
	default:
		return fmt.Sprintf("gc pair: its base is value %d; %s", *g.Base, g)
	}
}

// Write writes the page, of at most [MaxSize] bytes.
func (p *Page) Write(w io.Writer) error {
	return fitted(w, p, "page", func() bool {
		if p.limits == p.limits.half() {
			return false
		}
		p.limits = p.limits.half()
		p.draw()
		if p.Difference != nil {
			p.Difference.halve()
		}
		return true
	})
}

// fitted executes a template with data. While the result is too large, it calls smaller, which removes a part of the data.
func fitted(w io.Writer, data any, name string, smaller func() bool) error {
	for {
		var b bytes.Buffer
		if err := pages.ExecuteTemplate(&b, name, data); err != nil {
			return err
		}
		text := printed(b.Bytes())
		if len(text) <= MaxSize {
			_, err := w.Write(text)
			return err
		}
		if !smaller() {
			return fmt.Errorf("the page has %d bytes; the limit is %d", len(text), MaxSize)
		}
	}
}
