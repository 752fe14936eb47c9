package html

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
)

// Graph draws the frames of a virtual machine, and the objects that exist only as their fields, as boxes in columns. Frames are in the first column.
// An object is in column n if the shortest path from a frame to it has n references.
type Graph struct {
	Layout        string
	Why           string // the reason why there are no frames of a virtual machine
	Width, Height int
	Boxes         []Box
	Edges         []Edge
	More          int // number of boxes that are not shown
	keys          map[int]bool
}

// Box is a frame or an object.
type Box struct {
	X, Y, Width, Height int
	ID, Key             string // Key is set for an object: references to the object are highlighted with it
	Title, Notes        string
	Object              bool
	Rows                []BoxRow
	More                int // number of rows that are not shown
}

// BoxRow is one value of a frame or an object.
type BoxRow struct {
	Y             int // the position of its baseline in the box
	ID            string
	Name, Value   string
	Keys          string
	To            string // the link to the value of the record, or to the object
	Missing, Dead bool
	Says          string
	Anchors       []string

	object *int64
}

// Edge is a line from a row, which holds a reference, to the box of the object.
type Edge struct{ Path, Keys, To, Says string }

// These are sizes of boxes, in pixels.
const (
	boxWidth   = 330
	boxGap     = 90 // between columns
	boxSpace   = 24 // between boxes of a column
	rowHeight  = 20
	nameChars  = 20
	valueChars = 22
	titleChars = 42
)

func (at *Place) graph(l limits) *Graph {
	vm := at.Place.VM
	if vm == nil {
		return nil
	}
	g := &Graph{Layout: vm.Layout, Why: vm.Error, keys: map[int]bool{}}
	d := &grapher{at: at, out: g, limits: l, slots: map[int]int{}, anchored: map[int]bool{}}
	for k := range at.Values {
		d.slots[at.Values[k].Index] = k
	}
	left := l.boxes
	for n := range vm.Frames[:min(len(vm.Frames), left)] {
		g.Boxes = append(g.Boxes, d.frame(n, &vm.Frames[n]))
	}
	left -= len(g.Boxes)
	frames := len(g.Boxes)
	for n := range vm.Objects[:min(len(vm.Objects), left)] {
		g.Boxes = append(g.Boxes, d.object(&vm.Objects[n]))
	}
	g.More = len(vm.Frames) + len(vm.Objects) - len(g.Boxes)
	d.arrange(frames)
	return g
}

type grapher struct {
	at       *Place
	out      *Graph
	limits   limits
	slots    map[int]int // the index of the value with a slot's number
	anchored map[int]bool
}

// frame returns the box of a VM frame.
func (d *grapher) frame(n int, f *frame.VMFrame) Box {
	where := "?"
	if f.Position != nil {
		where = fmt.Sprint(*f.Position)
	}
	b := Box{ID: fmt.Sprintf("vm-%d", n), Title: fmt.Sprintf("%s @ %s, %s", cmp.Or(f.Method, "?"), where, strings.ReplaceAll(f.Resume, "-", " "))}
	notes := []string{}
	if n > 0 {
		notes = append(notes, "calls the frame above")
	}
	for _, key := range slices.Sorted(maps.Keys(f.Info)) {
		notes = append(notes, key+" "+f.Info[key])
	}
	if f.Reason != "" {
		notes = append(notes, f.Reason)
	}
	b.Notes = strings.Join(notes, ", ")
	for k := range f.Locals {
		d.row(&b, placeOf("local", &f.Locals[k]), &f.Locals[k])
	}
	for k := range f.Stack {
		d.row(&b, placeOf("stack", &f.Stack[k]), &f.Stack[k])
	}
	for k := range f.Monitors {
		name := "lock"
		if f.Monitors[k].Eliminated {
			name = "lock, eliminated"
		}
		d.row(&b, name, &f.Monitors[k].Owner)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
		v := f.Extra[name]
		d.row(&b, name, &v)
	}
	return b
}

// object returns the box of an object.
func (d *grapher) object(o *frame.VMObject) Box {
	b := Box{ID: fmt.Sprintf("object-%d", o.ID), Key: objectKey(o.ID), Object: true, Title: fmt.Sprintf("object %d: %s", o.ID, cmp.Or(o.Class, "?")), Notes: "not allocated"}
	if o.Reason != "" {
		b.Notes += ", " + o.Reason
	}
	for k := range o.Fields {
		name := fmt.Sprintf("+%d", o.Fields[k].At)
		if o.Fields[k].Name != "" {
			name += " " + o.Fields[k].Name
		}
		d.row(&b, name, &o.Fields[k].VMValue)
	}
	return b
}

func objectKey(id int64) string { return fmt.Sprintf("o%d", id) }

// placeOf names a local or a stack slot.
func placeOf(what string, v *frame.VMValue) string {
	if v.Index != nil {
		what = fmt.Sprintf("%s[%d]", what, *v.Index)
	}
	if v.Name != "" {
		what += " " + v.Name
	}
	return what
}

// row adds a value to a box.
func (d *grapher) row(b *Box, name string, v *frame.VMValue) {
	if len(b.Rows) == d.limits.rows {
		b.More++
		return
	}
	r := BoxRow{ID: fmt.Sprintf("%s-%d", b.ID, len(b.Rows)), Name: name, Value: cmp.Or(v.Value, string(v.Hex)), object: v.Object}
	switch {
	case v.Object != nil:
		r.Value, r.Keys, r.To = fmt.Sprintf("object %d", *v.Object), objectKey(*v.Object), fmt.Sprintf("#object-%d", *v.Object)
	case v.Status == frame.Dead:
		r.Value, r.Dead = "dead", true
	case v.Status == frame.Missing, v.Status == frame.Undefined:
		r.Value, r.Missing = string(v.Status), true
	case v.Status == frame.Guessed:
		r.Value = "guess: " + r.Value
	}
	r.Says = fmt.Sprintf("%s %s %s", name, v.Type, r.Value)
	if v.Reason != "" {
		r.Says += ": " + v.Reason
	}
	if v.Slot != nil {
		if k, ok := d.slots[*v.Slot]; ok {
			r.Keys = strings.TrimSpace(key(k) + " " + r.Keys)
			if r.To == "" {
				r.To = "#" + key(k)
			}
			if !d.out.keys[k] {
				d.out.keys[k] = true
				r.Anchors = append(r.Anchors, "VM-"+key(k))
			}
			r.Says += ", of value " + d.at.called(k)
		}
	}
	typed := name
	if v.Type != "" {
		typed += " " + v.Type
	}
	r.Name, r.Value = short(typed, nameChars), short(r.Value, valueChars)
	b.Rows = append(b.Rows, r)
}

// arrange places all boxes and draws the edges. The first boxes are those of the frames.
func (d *grapher) arrange(frames int) {
	g := d.out
	boxes := map[int64]int{}
	for n := frames; n < len(g.Boxes); n++ {
		var id int64
		_, _ = fmt.Sscanf(g.Boxes[n].Key, "o%d", &id)
		boxes[id] = n
	}
	column := make([]int, len(g.Boxes))
	next := make([]int, 0, len(g.Boxes))
	for n := range frames {
		next = append(next, n)
	}
	for len(next) > 0 {
		n := next[0]
		next = next[1:]
		for _, r := range g.Boxes[n].Rows {
			if r.object == nil {
				continue
			}
			if to, ok := boxes[*r.object]; ok && column[to] == 0 {
				column[to] = column[n] + 1
				next = append(next, to)
			}
		}
	}
	bottom := map[int]int{}
	for n := range g.Boxes {
		if n >= frames && column[n] == 0 {
			column[n] = 1 // no shown box refers to the object
		}
		b := &g.Boxes[n]
		c := column[n]
		b.X, b.Y, b.Width = 1+c*(boxWidth+boxGap), 1+bottom[c], boxWidth
		b.Title, b.Notes = short(b.Title, titleChars), short(b.Notes, titleChars+6)
		y := b.Y + 24
		if b.Notes != "" {
			y += 16
		}
		for k := range b.Rows {
			y += rowHeight
			b.Rows[k].Y = y - 6 - b.Y
		}
		if b.More > 0 {
			y += rowHeight
		}
		b.Height = y + 8 - b.Y
		bottom[c] = y + 8 + boxSpace
		g.Width, g.Height = max(g.Width, b.X+b.Width+1), max(g.Height, y+10)
	}
	for n := range g.Boxes {
		for _, r := range g.Boxes[n].Rows {
			if r.object == nil {
				continue
			}
			if to, ok := boxes[*r.object]; ok {
				g.Edges = append(g.Edges, edge(&g.Boxes[n], &r, &g.Boxes[to]))
				if g.Boxes[to].X <= g.Boxes[n].X {
					g.Width = max(g.Width, g.Boxes[n].X+boxWidth+boxGap/2)
				}
			}
		}
	}
}

// edge draws a line from the right of a row to the left side of a box, or to its right side if the box is in the same or an earlier column.
func edge(from *Box, r *BoxRow, to *Box) Edge {
	x, y, tx, ty := from.X+from.Width, from.Y+r.Y-4, to.X, to.Y+14
	bend, end := tx-boxGap/2, tx-boxGap/2
	if to.X <= from.X {
		tx = to.X + to.Width
		bend, end = x+boxGap/2, tx+boxGap/2
	}
	return Edge{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, y, bend, y, end, ty, tx, ty), r.Keys, "#" + r.ID, r.Says}
}

// shown returns the values that have an anchor in the graph.
func (g *Graph) shown() map[int]bool {
	if g == nil {
		return nil
	}
	return g.keys
}
