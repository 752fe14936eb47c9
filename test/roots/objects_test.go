package roots_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/gcprogram"
	"example.com/reframe/test/livetest"
)

// heapLayout describes the objects of the random programs.
func heapLayout(t *testing.T) string {
	t.Helper()
	return livetest.Testdata(t, "..", "test", "gcprogram", "testdata", "heap.star")
}

// TestRootsAreStartsOfObjects requires that the base of each root of a correct collector is the start of an object, and that the roots of frames that a wrong
// collector skips are in the space that it has left.
func TestRootsAreStartsOfObjects(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		log := filepath.Join(t.TempDir(), "log")
		process := livetest.Program(t, binary, "-log", log, "-stop", "1")
		process.AwaitPause(t)
		out, r := read(t, "-p", clitest.PID(process), "--ir", p.Module, "--layout", heapLayout(t))
		require.Zero(t, r.Code, "%s: %s", p, r.Stdout)
		require.Zero(t, out.Summary["wrong"], p)
		checked := 0
		for _, f := range out.Threads[0].Frames {
			for _, root := range f.Roots {
				switch {
				case root.Found == "object":
					checked++
					require.Regexp(t, `^object of \d+$`, root.Object.Class, p)
					require.GreaterOrEqual(t, root.Object.Size, uint64(40), p)
				case root.BaseOnly:
					require.Equal(t, "unchecked", root.Found, p)
				default:
					require.Contains(t, []string{"unchecked", ""}, root.Found, p) // stack objects, and pointers derived from a base that is not relocated
				}
			}
		}
		require.Positive(t, checked, p)

		var skipped *gcprogram.Frame
		for k, f := range gcprogram.ReadLog(t, log)[0].Frames {
			if len(f.Roots) > 0 {
				skipped = &gcprogram.ReadLog(t, log)[0].Frames[k]
				break
			}
		}
		require.NotNil(t, skipped, p)
		wrong := livetest.Program(t, binary, "-stop", "1", "-skip", strconv.FormatUint(skipped.ID, 10))
		wrong.AwaitPause(t)
		out, r = read(t, "-p", clitest.PID(wrong), "--ir", p.Module, "--layout", heapLayout(t))
		stale := 0
		for _, f := range out.Threads[0].Frames {
			for _, root := range f.Roots {
				if f.Record.ID == skipped.ID && root.Found == "none" {
					stale++
				} else {
					require.NotEqual(t, "none", root.Found, p)
				}
			}
		}
		require.Positive(t, stale, p)
		require.Equal(t, stale, out.Summary["wrong"], p)
		require.Equal(t, 1, r.Code, p)
	})
}

// TestObjectsAreThoseOfTheCollector requires that a walk from the roots reaches as many objects as the collector itself counts, and that references to
// objects that the layout does not describe are reported.
func TestObjectsAreThoseOfTheCollector(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		binary := p.Binary(t)
		total := p.Run(t, binary).Collections
		log := filepath.Join(t.TempDir(), "log")
		process := livetest.Program(t, binary, "-log", log, "-stop", strconv.Itoa(max(1, total*2/3)))
		process.AwaitPause(t)
		all := gcprogram.ReadLog(t, log)
		c := all[len(all)-1]
		out, r := read(t, "-p", clitest.PID(process), "--ir", p.Module, "--layout", heapLayout(t), "--objects")
		require.Zero(t, r.Code, "%s: %s", p, r.Stdout)
		require.Equal(t, []uint64{c.Objects, c.Bytes, 0, 0}, []uint64{out.Reached.Objects, out.Reached.Bytes, out.Reached.Dangling, out.Reached.Unread}, "%s", p)
		r = clitest.Run(t, "roots", "-p", clitest.PID(process), "--layout", heapLayout(t), "--ir", p.Module, "--objects")
		require.Regexp(t, fmt.Sprintf(`(?m)^%d objects, %d bytes, \d+ references, from \d+ roots?( · .*)?$`, c.Objects, c.Bytes), r.Stdout)

		text, err := os.ReadFile(heapLayout(t))
		require.NoError(t, err)
		partial := filepath.Join(t.TempDir(), "partial.star")
		changed := strings.Replace(string(text), "return heap_object(start", "return None if start == object_left_out else heap_object(start", 1)
		target := heapOf(t, out)
		require.NoError(t, os.WriteFile(partial, []byte(fmt.Sprintf("object_left_out = %s\n", target)+changed), 0o600))
		out, r = read(t, "-p", clitest.PID(process), "--ir", p.Module, "--layout", partial, "--objects")
		require.Equal(t, 1, r.Code, p)
		require.Positive(t, out.Reached.Dangling+uint64(out.Summary["wrong"]), p)
	})
}

// TestWhyInThePrograms requires a path from a root to objects that the collector has kept, whose references are in the memory of the process.
func TestWhyInThePrograms(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *gcprogram.Program) {
		program := p.Binary(t)
		total := p.Run(t, program).Collections
		log := filepath.Join(t.TempDir(), "log")
		process := livetest.Program(t, program, "-log", log, "-stop", strconv.Itoa(max(1, total*2/3)))
		process.AwaitPause(t)
		all := gcprogram.ReadLog(t, log)
		c := all[len(all)-1]
		memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", process.PID))
		require.NoError(t, err)
		defer memory.Close()
		reached := 0
		for _, m := range []gcprogram.Move{c.Moved[0], c.Moved[len(c.Moved)/2], c.Moved[len(c.Moved)-1]} {
			args := []string{"-p", clitest.PID(process), "--ir", p.Module, "--layout", heapLayout(t), "--why", fmt.Sprintf("%#x", m.To+8)}
			out, r := read(t, args...)
			require.NotNil(t, out.Why.Object, p)
			if out.Why.Root == nil { // only a variable of C or a stack object refers to the object
				require.Equal(t, 1, r.Code, p)
				continue
			}
			reached++
			require.Zero(t, r.Code, "%s: %s", p, r.Stderr)
			for k, s := range out.Why.Steps {
				next := m.To
				if k+1 < len(out.Why.Steps) {
					next, err = strconv.ParseUint(out.Why.Steps[k+1].Start, 0, 64)
					require.NoError(t, err)
				}
				at, err := strconv.ParseUint(s.Start, 0, 64)
				require.NoError(t, err)
				var word [8]byte
				_, err = memory.ReadAt(word[:], int64(at+s.Offset))
				require.NoError(t, err)
				require.Equal(t, next, binary.LittleEndian.Uint64(word[:]), "%s, step %d", p, k)
			}
			r = clitest.Run(t, append([]string{"roots"}, args...)...)
			require.Regexp(t, `(?m)^0x\w+: into an object: object of \d+, \d+ bytes at 0x\w+$`, r.Stdout)
			require.Regexp(t, fmt.Sprintf(`(?m)^ +object of \d+, \d+ bytes at %#x$`, m.To), r.Stdout)
		}
		require.Positive(t, reached, p)
	})
}

// TestWalkArguments requires a reason for each wrong combination of flags, and for a missing layout.
func TestWalkArguments(t *testing.T) {
	t.Parallel()
	p, module := collecting(t, 19, "explicit", "verify", 1)
	for want, args := range map[string][]string{
		"--count and --objects cannot be combined":          {"--count", "--objects"},
		"--objects and --why cannot be combined":            {"--why", "1", "--objects"},
		`--why "x": expected an address in hexadecimal`:     {"--why", "x"},
		"--objects requires a process or a core; " + module: {module, "--objects"},
	} {
		if args[0] != module {
			args = append(args, "-p", clitest.PID(p))
		}
		clitest.Run(t, append([]string{"roots"}, args...)...).Fails(t, 64, want)
	}
	clitest.Run(t, "roots", "-p", clitest.PID(p), "--ir", module, "--objects").Fails(t, 2, "no layout defines object(addr), which describes the objects of the heap: --layout FILE.star")
}

// heapOf returns the address of the object of the first root.
func heapOf(t *testing.T, r report) string {
	t.Helper()
	for _, f := range r.Threads[0].Frames {
		for _, root := range f.Roots {
			if root.Object != nil {
				return root.Object.Start
			}
		}
	}
	require.Fail(t, "no root points to an object")
	return ""
}

// TestHeapLayoutIsDocumented requires that doc/user/layouts.md shows the layout of these tests.
func TestHeapLayoutIsDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../doc/user/layouts.md")
	require.NoError(t, err)
	layout, err := os.ReadFile(heapLayout(t))
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(layout), "\n")
	require.Contains(t, string(document), code)
}

// TestRootsWithWrongObjects requires one line about a function object(addr) that fails or describes an impossible object.
func TestRootsWithWrongObjects(t *testing.T) {
	t.Parallel()
	p, module := collecting(t, 19, "explicit", "verify", 1)
	for text, want := range map[string]string{
		"return 7":                                                     `object returned a int; expected heap_object\(…\) or None`,
		"return heap_object(addr, -8)":                                 `a size of -8 bytes`,
		"return heap_object(addr, 4)":                                  `an object of 4 bytes; expected at least 8`,
		"return heap_object(addr, 1 << 63)\n  # too large":             "",
		"return heap_object(addr + 8, 16)":                             `object\(0x\w+\) returned an object from 0x\w+ to 0x\w+, which does not contain the address`,
		"return heap_object(addr, 16, refs = [16])":                    `a reference at offset 16 or after it lies outside of the object, which has 16 bytes`,
		"return heap_object(addr, 16, refs = [-8])":                    `a reference at offset -8`,
		"return heap_object(addr, 16, refs = range(1 << 40))":          `a reference at offset 0 or after it lies outside of the object`,
		"return heap_object(addr, 64, refs = range(0, 1 << 60, 0x10))": `a reference at offset 0 or after it lies outside of the object`,
		"return heap_object(addr, 16, refs = [8, 0])":                  `the offsets of references must be in ascending order`,
		"return heap_object(addr, 16, state = 'lost')":                 `the state "lost"; expected live, freed or from-space`,
		"return heap_object(addr, 1 << 64)":                            `a size of 18446744073709551616 bytes`,
		"while True: pass":                                             `object\(0x\w+\) did not end after 200000 steps`,
		"fail('no')":                                                   `fail: no`,
	} {
		layout := filepath.Join(t.TempDir(), "heap.star")
		require.NoError(t, os.WriteFile(layout, []byte("def object(addr):\n  "+text+"\n"), 0o600))
		r := clitest.Run(t, "roots", "-p", clitest.PID(p), "--ir", module, "--layout", layout)
		if want == "" {
			require.Zero(t, r.Code, r.Stdout)
			continue
		}
		require.Equal(t, 1, r.Code, r.Stdout+r.Stderr)
		require.Regexp(t, `(?m)^object\(addr\) failed: .*heap.star(:\d+:\d+)?: .*`+want+`.*$`, r.Stdout, text)
		require.Empty(t, r.Stderr)
		out, _ := read(t, "-p", clitest.PID(p), "--ir", module, "--layout", layout)
		require.Equal(t, out.Summary["roots"], out.Summary["unchecked"], text)
	}
	for state, want := range map[string]string{"freed": "freed", "from-space": "in from-space: stale", "live": "an object"} {
		layout := filepath.Join(t.TempDir(), "heap.star")
		require.NoError(t, os.WriteFile(layout, []byte("def object(addr):\n  return heap_object(addr - 8, 64, 3, state = '"+state+"')\ndef class_name(c): return 'of %d' % c\n"), 0o600))
		r := clitest.Run(t, "roots", "-p", clitest.PID(p), "--ir", module, "--layout", layout)
		if state == "live" {
			want = "into an object"
		}
		require.Equal(t, 1, r.Code, r.Stdout+r.Stderr)
		require.Regexp(t, `(?m)  `+want+`: of 3, 64 bytes at 0x\w+$`, r.Stdout)
	}
}
