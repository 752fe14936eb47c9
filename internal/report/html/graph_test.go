package html

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/test/livetest"
)

// TestGraph requires the contents of the boxes for the frames of vmsimple.ll and its object, which refers to itself, and the targets of clicks on
// an arrow or a row.
func TestGraph(t *testing.T) {
	var vm exit
	for _, x := range exits {
		if x.name == "vm" {
			vm = x
		}
	}
	p, file := drawn(t, vm.view(t), explain.Question{Frame: -1})
	tab := livetest.Chromium(t).Open(t, file, 1400, 1000)
	var boxes [][]string
	tab.Eval(t, `[...document.querySelectorAll(".graph .box")].map(b => [...b.querySelectorAll("text")].map(t => t.textContent))`, &boxes)
	require.Len(t, boxes, 3)
	require.Equal(t, []string{"Foo.bar @ 17, reexecute", "local[0] f64", "3.5", "local[1]", "object 4", "local[2] double", "3.5"}, boxes[0][:7])
	require.Equal(t, []string{"Foo.main @ 9, in call", "calls the frame above", "local[0] i32", "41", "local[1]", "dead"}, boxes[1])
	require.Equal(t, []string{"object 4: Point", "not allocated", "+8 i32", "41", "+16", "object 4"}, boxes[2])
	var edges []string
	tab.Eval(t, `[...document.querySelectorAll(".graph .edge")].map(e => e.getAttribute("href"))`, &edges)
	require.Equal(t, []string{"#vm-0-1", "#vm-0-5", "#object-4-1"}, edges)
	clicked := func(selector string) (hash string) {
		tab.Click(t, selector)
		tab.Eval(t, "location.hash", &hash)
		return hash
	}
	require.Equal(t, "#object-4", clicked("#vm-0-1"), "a reference leads to its object")
	require.Equal(t, "#v11", clicked("#vm-0-0"), "a value to its row")
	require.Equal(t, "%boxed", p.Places[0].Values[11].Name)
	// A reference highlights the object and all arrows to it.
	tab.Eval(t, `history.replaceState(null, "", location.pathname)`, nil)
	tab.Key(t, "Escape")
	tab.Hover(t, "#vm-0-1")
	require.Equal(t, []string{"VM: object 4: Point"}, said(t, tab, "via"))
	var lines int
	tab.Eval(t, `document.querySelectorAll(".edge.lit").length`, &lines)
	require.Equal(t, 3, lines)
	require.Empty(t, tab.Messages())
}

// TestGraphLayout requires a box for each object in a reference cycle and for each object without a reference, and that boxes do not overlap.
func TestGraphLayout(t *testing.T) {
	ref := func(id int64) frame.VMValue { return frame.VMValue{Object: &id} }
	vm := &frame.VM{}
	for n := range 3 {
		vm.Frames = append(vm.Frames, frame.VMFrame{Method: fmt.Sprint(n), Locals: []frame.VMValue{ref(int64(n)), ref(int64(n + 1)), ref(99)}})
	}
	for n := range int64(20) {
		o := frame.VMObject{ID: n}
		for k := range int64(3) {
			o.Fields = append(o.Fields, frame.VMField{At: k, VMValue: ref((n*7 + k) % 20)})
		}
		vm.Objects = append(vm.Objects, o)
	}
	at := &Place{Place: &explain.Place{VM: vm}}
	g := at.graph(roomy)
	require.Len(t, g.Boxes, 23)
	require.Len(t, g.Edges, 6+60)
	for i, a := range g.Boxes {
		require.LessOrEqual(t, a.X+a.Width, g.Width)
		require.LessOrEqual(t, a.Y+a.Height, g.Height)
		for _, b := range g.Boxes[:i] {
			apart := a.X+a.Width < b.X || b.X+b.Width < a.X || a.Y+a.Height < b.Y || b.Y+b.Height < a.Y
			require.True(t, apart, "%s and %s", a.Title, b.Title)
		}
	}
	require.Equal(t, g, at.graph(roomy), "the same each time")

	few := roomy
	few.boxes, few.rows = 5, 2
	g = at.graph(few)
	require.Len(t, g.Boxes, 5)
	require.Equal(t, 18, g.More)
	require.Len(t, g.Boxes[0].Rows, 2)
	require.Equal(t, 1, g.Boxes[0].More)
}
