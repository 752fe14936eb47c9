package maps_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// vmFrames holds the text that maps prints for the VM frames of the record in vmsimple.ll.
const vmFrames = `      vm (operand 8) @ 17, reexecute
           local[0]                operand 11 (%boxed), decoded
           local[1]                object 4
           local[2]         double operand 15 (%d)
           stack[0]         ref    operand 17
           stack[1]                operand 19 (%small), decoded
           lock, eliminated        object 4
           fuel             i64    operand 23 (%fuel)
         inlined into (operand 1) @ 9, in call
           local[0]         i32    operand 4 (%n)
           local[1]                dead
         object 4, not allocated: (operand 25)
           +8                      operand 28 (%small), decoded
           +16                     object 4
`

// TestMapsVMOfFile requires that maps --layout shows the VM frames of an object's records without a process, or the reason why a record has none.
func TestMapsVMOfFile(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, version := range []int{14, 19, 22} {
		object, module := livetest.PICObject(t, version, "vmsimple.ll", "-O2"), livetest.Testdata(t, "programs", "vmsimple.ll")
		r := clitest.Run(t, "maps", object, "--ir", module, "--layout", "simple")
		require.Equal(t, 0, r.Code, r.Stderr)
		require.True(t, strings.HasSuffix(r.Stdout, vmFrames), r.Stdout)
		clitest.RequireValid(t, "maps.schema.json", clitest.Run(t, "maps", object, "--ir", module, "--layout", "simple", "--json").Stdout)

		for text, want := range map[string]string{
			"def frames(site): return frame('m', read(address_of('x')))": "no VM frames: the layout reads memory, which only a process or a core has",
			"def frames(site): pass":                                     "no VM frames: no layout returned any",
			"def frames(site): return fail('no')":                        "record 2882400000 of @compiled: fail: no",
		} {
			layout := clitest.TempFile(t, "vm.star", text)
			r := clitest.Run(t, "maps", object, "--ir", module, "--layout", layout)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, clitest.JoinedLines(r.Stdout), want)
			clitest.RequireValid(t, "maps.schema.json", clitest.Run(t, "maps", object, "--layout", layout, "--json").Stdout)
		}
	}
	r := clitest.Run(t, "maps", "vm.o", "--layout", "simple", "--format", "llvm")
	require.Equal(t, 64, r.Code)
	require.Contains(t, r.Stderr, "--format llvm cannot be combined with a filter, --check, --json or --layout")
}

// vmRecord is a record of maps --json with its VM frames.
type vmRecord struct {
	ID uint64            `json:"id"`
	VM *vmlayout.Outline `json:"vm"`
}

// vmMaps is the output of maps --json.
type vmMaps struct {
	Images []struct {
		Functions []struct {
			Name    string     `json:"name"`
			Records []vmRecord `json:"records"`
		} `json:"functions"`
	} `json:"images"`
}

// TestMapsVMAsAtExits requires that maps shows the same VM frames for a record as frames does at an exit there: the same positions, places and
// operands.
func TestMapsVMAsAtExits(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for layout, least := range map[string]int{"simple": 2, "jeandle": 4, "jllvm": 2, "wanco": 3, "ark": 4} {
		for _, version := range livetest.ShareOf([]int{14, 19, 22}, layout) {
			p := livetest.Linked(t, version, "vm"+layout+".ll")
			known := []string{"-p", clitest.PID(p), "--ir", p.IR, "--layout", layout, "--json"}
			r := clitest.Run(t, append([]string{"maps"}, known...)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			clitest.RequireValid(t, "maps.schema.json", r.Stdout)
			var maps vmMaps
			require.NoError(t, json.Unmarshal([]byte(r.Stdout), &maps))
			outlines := map[string]*vmlayout.Outline{}
			for _, i := range maps.Images {
				for _, f := range i.Functions {
					for _, r := range f.Records {
						outlines[fmt.Sprint(f.Name, " ", r.ID)] = r.VM
					}
				}
			}
			var frames struct {
				Threads []struct {
					Frames []struct {
						Function string    `json:"function"`
						Record   *vmRecord `json:"record"`
						VM       *frame.VM `json:"vm"`
					} `json:"frames"`
				} `json:"threads"`
			}
			require.NoError(t, json.Unmarshal([]byte(clitest.Run(t, append([]string{"frames"}, known...)...).Stdout), &frames))
			compared := 0
			for _, thread := range frames.Threads {
				for _, f := range thread.Frames {
					if f.VM == nil || f.VM.Error != "" {
						continue
					}
					o := outlines[fmt.Sprint(f.Function, " ", f.Record.ID)]
					require.NotNil(t, o, "%s %d", f.Function, f.Record.ID)
					if slices.ContainsFunc(o.Frames, func(f vmlayout.OutlineFrame) bool {
						return slices.ContainsFunc(f.Stack, func(v vmlayout.OutlineValue) bool { return strings.HasPrefix(v.From, "row from ") })
					}) {
						continue // the number of values in a row is known only at an exit
					}
					require.Equal(t, placesAtExit(f.VM, o), placesOf(o), "%s, LLVM %d, %s", layout, version, f.Function)
					compared += len(f.VM.Frames)
				}
			}
			require.GreaterOrEqual(t, compared, least, "%s, LLVM %d", layout, version)
		}
	}
}

// placesOf lists the frames of an outline and the first operand of each value.
func placesOf(o *vmlayout.Outline) (list []string) {
	add := func(what string, values []vmlayout.OutlineValue) {
		for _, v := range values {
			of := "none"
			if len(v.Operands) > 0 && !strings.HasPrefix(v.From, "memory at ") {
				of = fmt.Sprint(v.Operands[0])
			}
			if v.Object != nil {
				of = fmt.Sprint("object ", *v.Object)
			}
			at := ""
			if v.Index != nil {
				at = fmt.Sprint(*v.Index)
			}
			list = append(list, strings.Join([]string{what, at, of, v.Value}, " "))
		}
	}
	for _, f := range o.Frames {
		at := "?"
		if f.Position != nil {
			at = fmt.Sprint(*f.Position)
		}
		list = append(list, fmt.Sprint(f.Method, " @ ", at, " ", f.Resume))
		add("local", f.Locals)
		add("stack", f.Stack)
		add("lock", f.Monitors)
	}
	for _, of := range o.Objects {
		add(fmt.Sprint("object ", of.ID), of.Fields)
	}
	return list
}

// placesAtExit lists the frames at an exit in the form of [placesOf]. It omits values that only an exit has.
func placesAtExit(vm *frame.VM, o *vmlayout.Outline) (list []string) {
	add := func(what, at string, v frame.VMValue, is vmlayout.OutlineValue) {
		of, value := "none", ""
		if v.Slot != nil {
			of = fmt.Sprint(*v.Slot)
		}
		if v.Object != nil {
			of = fmt.Sprint("object ", *v.Object)
		}
		if is.Value != "" {
			value = cmp.Or(v.Value, v.Reason)
		}
		list = append(list, strings.Join([]string{what, at, of, value}, " "))
	}
	outlined := func(values []vmlayout.OutlineValue, k int) (is vmlayout.OutlineValue) {
		if k < len(values) {
			is = values[k]
		}
		return is
	}
	for n, f := range vm.Frames {
		var is vmlayout.OutlineFrame
		if n < len(o.Frames) {
			is = o.Frames[n]
		}
		method, at := f.Method, "?"
		if is.MethodFrom != "" {
			method = ""
		}
		if is.PositionFrom == "" && f.Position != nil {
			at = fmt.Sprint(*f.Position)
		}
		list = append(list, fmt.Sprint(method, " @ ", at, " ", f.Resume))
		for k, v := range f.Locals {
			add("local", fmt.Sprint(*v.Index), v, outlined(is.Locals, k))
		}
		for k, v := range f.Stack {
			add("stack", fmt.Sprint(*v.Index), v, outlined(is.Stack, k))
		}
		for k, v := range f.Monitors {
			add("lock", "", v.Owner, outlined(is.Monitors, k))
		}
	}
	for n, of := range vm.Objects {
		for k, v := range of.Fields {
			add(fmt.Sprint("object ", of.ID), fmt.Sprint(v.At), v.VMValue, outlined(o.Objects[n].Fields, k))
		}
	}
	return list
}

// TestMapsVMOfTinyvm requires that each exit in tinyvm's log has a record with the same frames: the methods, the positions, and the numbers of
// locals, stack entries and monitors.
func TestMapsVMOfTinyvm(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, llvm := range livetest.ShareOf(tinyvmtest.Versions, "maps") {
		log, dump := filepath.Join(t.TempDir(), "exits"), t.TempDir()
		binary, file := tinyvmtest.Binary(t, llvm), tinyvmtest.File(t, 2)
		whole := tinyvmtest.Run(t, binary, "--exits", "--log-exits", log, file)
		// At its last exit, the process has compiled all methods.
		p := livetest.Program(t, binary, "--fuel", tinyvmtest.Fuel, "--stand", fmt.Sprint(whole.Exits), "--dump", dump, file)
		r := clitest.Run(t, "maps", "-p", clitest.PID(p), "--ir", dump, "--layout", "simple", "--json")
		require.Equal(t, 0, r.Code, r.Stderr)
		var maps vmMaps
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), &maps))
		described := map[string]bool{}
		for _, i := range maps.Images {
			for _, f := range i.Functions {
				for _, r := range f.Records {
					chain := ""
					for _, f := range r.VM.Frames {
						chain += fmt.Sprintf("%s @ %d: %d %d %d\n", f.Method, *f.Position, len(f.Locals), len(f.Stack), len(f.Monitors))
					}
					described[chain] = true
				}
			}
		}
		compared := 0
		for _, e := range tinyvmtest.ReadLog(t, log, func(tinyvmtest.Key) bool { return true }) {
			chain := ""
			for _, f := range e.Frames {
				chain += fmt.Sprintf("%s @ %d: %d %d %d\n", f.Method, f.Position, len(f.Locals), len(f.Stack), len(f.Monitors))
			}
			require.Contains(t, described, chain, "LLVM %d", llvm)
			compared++
		}
		require.Positive(t, compared, "LLVM %d", llvm)
		t.Logf("LLVM %d: %d exits, %d different frames in records", llvm, compared, len(described))
		p.Kill()
	}
}
