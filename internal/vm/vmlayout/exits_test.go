package vmlayout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// told prints VM frames and objects as lines: a value with its place, its type and its text.
func told(vm *frame.VM) string {
	var b strings.Builder
	line := func(place string, v frame.VMValue) {
		text := strings.TrimSpace(v.Type + " " + v.Value)
		switch {
		case v.Object != nil:
			text = fmt.Sprintf("object %d", *v.Object)
		case v.Status != frame.OK:
			text = strings.TrimSpace(string(v.Status) + " " + v.Reason)
		}
		fmt.Fprintf(&b, "  %s: %s\n", place, text)
	}
	if vm.Error != "" {
		fmt.Fprintln(&b, vm.Error)
	}
	for _, f := range vm.Frames {
		fmt.Fprintf(&b, "%s @ %d %s %s\n", f.Method, *f.Position, f.Resume, f.Reason)
		for _, v := range f.Locals {
			line(fmt.Sprintf("local %d", *v.Index), v)
		}
		for _, v := range f.Stack {
			line(fmt.Sprintf("stack %d", *v.Index), v)
		}
		for _, m := range f.Monitors {
			place := "lock"
			if m.Eliminated {
				place = "eliminated lock"
			}
			line(place, m.Owner)
		}
		var names []string
		for name := range f.Extra {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			line(name, f.Extra[name])
		}
	}
	for _, o := range vm.Objects {
		fmt.Fprintf(&b, "object %d %s %s\n", o.ID, o.Class, o.Reason)
		for _, f := range o.Fields {
			line(fmt.Sprintf("+%d", f.At), f.VMValue)
		}
	}
	return b.String()
}

// lines converts a table of expectations into the form of told: without the indentation of the source, and without spaces at the ends.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(strings.TrimPrefix(line, "\t\t"), "\t \n")
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// exits lists programs whose records use an encoding, their physical frames with VM frames, innermost first, and the VM frames that the encoding
// describes.
var exits = []struct {
	layout string
	frames []string
	want   string
}{
	{"simple", []string{"compiled"}, `
		Foo.bar @ 17 reexecute
		  local 0: f64 3.5
		  local 1: object 4
		  local 2: double 3.5
		  stack 0: ref HEAP
		  stack 1: i32 41
		  eliminated lock: object 4
		  fuel: i64 700
		Foo.main @ 9 in-call
		  local 0: i32 41
		  local 1: dead
		object 4 Point
		  +8: i32 41
		  +16: object 4
	`},
	{"jeandle", []string{"Main.run", "Main.start"}, `
		0x7f0000005000 @ 3 reexecute
		  local 0: i32 41
		  local 1: ref 0x0
		  stack 0: f64 3.5
		  stack 2: object 2
		0x7f0000004000 @ 17 in-call
		  local 0: ref 0x5000
		  local 1: f32 3.5
		  stack 0: f32 3.5
		Main.run @ 9 in-call
		  local 0: i64 700
		  local 2: f64 3.5
		  local 4: dead
		  local 5: dead
		  local 6: object 1
		  local 7: i8 -3
		  stack 0: i32 7
		  stack 1: object 0
		  stack 2: i64 -5
		  lock: ref 0x5000
		  eliminated lock: object 1
		object 0 0x7f0000001000
		  +12: i32 41
		  +16: object 1
		  +24: i64 700
		object 1 0x7f0000002000
		  +16: object 0
		object 2 0x7f0000003000
		  +16: f64 3.5
		  +24: f64 0.5
		Main.start @ 4 in-call
		  local 0: i32 41
		  local 1: f64 3.5
		  local 3: ref 0x5000
	`},
	{"jllvm", []string{"interpreted", "Main.sum", "Main.run"}, `
		step(I)V @ 35 in-call
		  stack 0: i64 5
		  stack 1: ref 0x5000
		  stack 2: i64 -1
		  locals: ref STACK
		  mask of locals: ref STACK
		Main.sum @ 17 in-call
		  local 0: i32 41
		  local 1: i64 700
		  local 2: dead
		  local 3: i64 4615063718147915776
		  local 4: ref 0x5000
		  local 5: i32 1080033280
		Main.run @ 4 in-call
	`},
	{"wanco", []string{"func_5", "func_4", "func_3"}, `
		func_5 @ -1 reexecute
		  local 0: i32 41
		func_4 @ 12 in-call
		  local 0: i32 41
		  local 1: i64 700
		  local 2: f32 3.5
		  local 3: f64 3.5
		  stack 0: i32 -59
		  stack 1: i64 -700
		  stack 2: f32 -3.5
		  stack 3: f64 4.5
		func_3 @ 0 in-call
	`},
	{"ark", []string{"optimized", "caller"}, `
		0x5180 @ 35 reexecute
		  local 0: i32 41
		  local 3: f64 3.5
		  acc: i32 -9
		  argc: i32 1
		  env: ref 0x5000
		  function: ref 0x5180
		  new.target: symbol undefined
		  this: ref 0x5000
		0x5100 @ 17 in-call
		  local 1: symbol true
		  local 2: null null
		  local 3: symbol hole
		  argc: i32 0
		  function: ref 0x5100
		  new.target: symbol undefined
		  this: symbol undefined
		0x5080 @ 4 in-call
		  local 0: f64 nan
		  local 1: i32 -9
		  argc: i32 2
		  env: ref 0x5000
		  function: ref 0x5080
		  new.target: symbol undefined
		  this: ref 0x5000
		0x5200 @ 9 in-call
		  local 0: i32 41
		  local 1: f64 3.5
		  argc: i32 2
		  function: ref 0x5200
		  new.target: symbol undefined
		  this: symbol undefined
	`},
}

// TestExits reads the programs of the builtin layouts from outside, compiled by three releases of LLVM, ahead of time and just in time.
func TestExits(t *testing.T) {
	livetest.Slow(t)
	for _, c := range exits {
		for _, version := range []int{14, 19, 22} {
			for _, how := range livetest.ShareOf([]string{"mcjit", "orc", "llc"}, c.layout, version) {
				t.Run(fmt.Sprintf("%s %d %s", c.layout, version, how), func(t *testing.T) {
					program := "vm" + c.layout + ".ll"
					var p *livetest.Process
					if how == "llc" {
						p = livetest.Linked(t, version, program)
					} else {
						p = livetest.Lli(t, version, program, how)
					}
					o := frametest.Known(t, p)
					l, err := vmlayout.Read(c.layout)
					require.NoError(t, err)
					o.VMs = []*vmlayout.Layout{l}
					require.Equal(t, lines(c.want), seen(t, frametest.Look(t, p, true, o), c.frames))
				})
			}
		}
	}
}

// TestExitsWithoutModule covers self-describing encodings, which need no module: their constants are in the record. Only a module shows the kind of a
// site, and the width of an operand whose type in the encoding differs.
func TestExitsWithoutModule(t *testing.T) {
	livetest.Slow(t)
	differs := map[string][]string{
		"jeandle": {"local 7: i8 -3", "local 7: unavailable it is i32 in the layout, but slot 35 has 1 bytes"},
		"ark":     {"0x5180 @ 35 reexecute", "0x5180 @ 35 in-call"},
	}
	for _, c := range exits {
		of, there := differs[c.layout]
		if !there {
			continue
		}
		for _, version := range livetest.ShareOf([]int{14, 19, 22}, c.layout) {
			p := livetest.Linked(t, version, "vm"+c.layout+".ll")
			l, err := vmlayout.Read(c.layout)
			require.NoError(t, err)
			v := frametest.Look(t, p, true, deopt.Options{VMs: []*vmlayout.Layout{l}})
			require.Equal(t, lines(strings.Replace(c.want, of[0], of[1], 1)), seen(t, v, c.frames), "%s, LLVM %d", c.layout, version)
		}
	}
}

// seen prints the VM frames of physical frames. It replaces addresses of the heap and the stack by fixed names.
func seen(t *testing.T, v *deopt.View, functions []string) string {
	t.Helper()
	var b strings.Builder
	for _, function := range functions {
		f := frametest.One(t, v, function)
		require.NotNil(t, f.VM, function)
		for _, of := range f.VM.Frames {
			for k := range of.Stack {
				if x := &of.Stack[k]; x.Type == "ref" && len(x.Value) > len("0x5000") {
					x.Value = "HEAP"
				}
			}
			for name, x := range of.Extra {
				if strings.Contains(name, "locals") && x.Status == frame.OK {
					x.Value = "STACK"
					of.Extra[name] = x
				}
			}
		}
		b.WriteString(told(f.VM))
	}
	return lines(b.String())
}
