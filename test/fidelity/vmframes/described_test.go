package vmframes_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// describedPrograms is the number of random programs whose exits are described in memory.
const describedPrograms = 1000

// runDescribed compiles a program with a release of LLVM, and starts it. It returns when the program has logged what its own decoder reads.
func runDescribed(t *testing.T, p *program, seed uint64, llvm int, host string) *livetest.Process {
	t.Helper()
	dir := t.TempDir()
	module, object, program := filepath.Join(dir, "p.ll"), filepath.Join(dir, "p.o"), filepath.Join(dir, "p")
	require.NoError(t, os.WriteFile(module, []byte(p.IR()), 0o600))
	level := seed % 3
	llc := []string{"-filetype=obj", "-relocation-model=pic", fmt.Sprint("-O", level), module, "-o", object}
	if llvm == 14 {
		llc = append(llc, "-opaque-pointers")
	}
	if level > 0 && seed%8 == 1 { // at -O0, llc runs out of registers
		llc = append(llc, "-use-registers-for-deopt-values")
	}
	frametest.Command(t, dir, livetest.LLVM(t, llvm, "llc"), llc...)
	frametest.Command(t, dir, livetest.Tool(t, "gcc"), object, host, "-o", program, "-Wl,-z,notext", "-z", "noexecstack")
	process := livetest.Paused(t, exec.Command(program))
	process.IR = module
	return process
}

// describedLines returns the frames in the form of decode.c's log, without the text of numbers, which checkText compares.
func describedLines(t *testing.T, vm *frame.VM) (all []string) {
	t.Helper()
	line := func(place string, v *frame.VMValue) {
		text := string(v.Status) + " " + v.Reason
		switch {
		case v.Object != nil:
			text = fmt.Sprint("object ", *v.Object)
		case v.Status == frame.Dead:
			text = "dead"
		case v.Status != frame.OK:
		case v.Type == "symbol":
			text = "symbol " + v.Value
		case v.Type == "null":
			text = "null"
		default:
			bits := uint64(0)
			for k, b := range v.Bytes {
				bits |= uint64(b) << (8 * k)
			}
			text = fmt.Sprintf("%s %#x %s", v.Type, bits, v.Value)
		}
		all = append(all, fmt.Sprintf("  %s: %s", place, text))
	}
	if vm.Error != "" {
		all = append(all, vm.Error)
	}
	for n := range vm.Frames {
		f := &vm.Frames[n]
		all = append(all, fmt.Sprintf("%s @ %d %s", f.Method, *f.Position, f.Resume))
		for k := range f.Locals {
			line(fmt.Sprint("local ", *f.Locals[k].Index), &f.Locals[k])
		}
		for k := range f.Stack {
			line(fmt.Sprint("stack ", *f.Stack[k].Index), &f.Stack[k])
		}
		for k := range f.Monitors {
			place := "lock"
			if f.Monitors[k].Eliminated {
				place = "eliminated lock"
			}
			line(place, &f.Monitors[k].Owner)
		}
	}
	for _, o := range vm.Objects {
		all = append(all, fmt.Sprintf("object %d %s", o.ID, o.Class))
		for k := range o.Fields {
			line(fmt.Sprint("+", o.Fields[k].At), &o.Fields[k].VMValue)
		}
	}
	return all
}

// sameLine compares a line of decode.c's log with a shown one. The texts of floating-point numbers may differ in form, not in value.
func sameLine(logged, shown string) bool {
	if logged == shown {
		return true
	}
	start, printed, _ := cutLast(logged)
	before, text, found := cutLast(shown)
	if !found || start != before || !strings.Contains(shown, ": f64 ") {
		return false
	}
	a, errA := strconv.ParseFloat(text, 64)
	b, errB := strconv.ParseFloat(printed, 64)
	return errA == nil && errB == nil && (math.Float64bits(a) == math.Float64bits(b) || a != a && b != b)
}

func cutLast(s string) (before, after string, found bool) {
	at := strings.LastIndexByte(s, ' ')
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+1:], true
}

// compared counts what was compared.
type compared struct {
	programs, exits, frames, objects, values, words int
	unavailable                                     map[string]int // by reason
	wrong                                           []string
}

func (c *compared) add(o compared) {
	c.programs, c.exits, c.frames = c.programs+o.programs, c.exits+o.exits, c.frames+o.frames
	c.objects, c.values, c.words = c.objects+o.objects, c.values+o.values, c.words+o.words
	c.wrong = append(c.wrong, o.wrong...)
	for reason, n := range o.unavailable {
		c.lack(reason, n)
	}
}

// lack counts unavailable values.
func (c *compared) lack(reason string, n int) {
	if c.unavailable == nil {
		c.unavailable = map[string]int{}
	}
	c.unavailable[reason] += n
}

// lacking returns the number of unavailable values.
func (c *compared) lacking() (sum int) {
	for _, n := range c.unavailable {
		sum += n
	}
	return sum
}

func (c *compared) String() string {
	return fmt.Sprintf("%d programs, %d exits, %d frames, %d objects, %d values, %d of them of several words: %d wrong, %d unavailable %v",
		c.programs, c.exits, c.frames, c.objects, c.values, c.words, len(c.wrong), c.lacking(), c.unavailable)
}

// expectedReasons are the reasons for which a value may be unavailable, each with its name in the counts. A module for x86-64 does not show whether it
// was compiled with SSE. Without SSE, LLVM records no location for a double in an x87 register, and the locations after it move. So the location of a
// double that is the last operand may be the constant 0 that follows the operands in the record.
var expectedReasons = map[string]string{
	"x87": "a value of this record in an x87 register has no location, so this one may belong to another value",
}

// compareDescribed compares the frames of a process with its log.
func compareDescribed(t *testing.T, process *livetest.Process, p *program, layouts []*vmlayout.Layout) (c compared) {
	t.Helper()
	m, err := ir.ParseFile(process.IR)
	require.NoError(t, err)
	v := frametest.Look(t, process, false, deopt.Options{Modules: []*ir.Module{m}, VMs: layouts})
	output := strings.ReplaceAll(process.Output(), "\r", "")
	c.programs++
	for n := range p.functions {
		f := frametest.One(t, v, p.functions[n].name)
		about := fmt.Sprintf("%s (%s)", f.Function, encodings[p.functions[n].encoding])
		if f.VM == nil {
			c.wrong = append(c.wrong, about+": no layout makes frames of its record")
			continue
		}
		c.exits, c.frames, c.objects = c.exits+1, c.frames+len(f.VM.Frames), c.objects+len(f.VM.Objects)
		var logged []string
		for line := range strings.Lines(output) {
			if text, is := strings.CutPrefix(line, f.Function+" "); is {
				logged = append(logged, strings.TrimRight(text, "\n"))
			}
		}
		shown := describedLines(t, f.VM)
		if len(logged) != len(shown) {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: the decoder logged %q, and %q is shown", about, logged, shown))
			continue
		}
		c.values += len(logged) - len(f.VM.Frames) - len(f.VM.Objects)
		for k := range logged {
			if reason, is := unavailableLine(logged[k], shown[k]); is {
				c.lack(reason, 1)
			} else if !sameLine(logged[k], shown[k]) {
				c.wrong = append(c.wrong, fmt.Sprintf("%s: line %d: the decoder logged %q, and %q is shown", about, k, logged[k], shown[k]))
			}
		}
		for _, slot := range f.VM.All() {
			if len(slot.Value.Words) > 0 {
				c.words++
			}
		}
	}
	return c
}

// unavailableLine reports whether a shown line has an expected reason instead of the logged value, and returns the name of the reason.
func unavailableLine(logged, shown string) (name string, is bool) {
	place, text, found := strings.Cut(shown, ": unavailable ")
	if !found || !strings.HasPrefix(logged, place+": ") {
		return "", false
	}
	for name, reason := range expectedReasons {
		if reason == text {
			return name, true
		}
	}
	return "", false
}

// describedLayouts reads the layouts of the encodings. change may change the text of one.
func describedLayouts(t *testing.T, change func(name, text string) string) (all []*vmlayout.Layout) {
	t.Helper()
	for _, name := range encodings {
		text, err := os.ReadFile(filepath.Join("testdata", name+".star"))
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), name+".star")
		require.NoError(t, os.WriteFile(path, []byte(change(name, string(text))), 0o600))
		all = append(all, layout(t, path))
	}
	return all
}

// describedHost compiles the run time of the programs.
func describedHost(t *testing.T) string {
	t.Helper()
	return livetest.Compiled(t, "gcc", filepath.Join("testdata", "decode.c"), "-O1", "-Wall", "-Wextra", "-Werror", "-c")
}

// TestDescribedExits requires that the frames of random programs are those in the log of the virtual machine's own decoder, which is written in C and
// reads no stack maps. The frames are inlined into each other and share objects. They have three encodings. The type of a value may be in another
// operand or in the next word, and values have up to 24 bytes.
func TestDescribedExits(t *testing.T) {
	livetest.Slow(t)
	host := describedHost(t)
	part, parts := livetest.Part(t)
	sums := make([]compared, len(tinyvmtest.Versions))
	t.Run("all", func(t *testing.T) {
		for n, llvm := range tinyvmtest.Versions {
			t.Run(fmt.Sprint("llvm", llvm), func(t *testing.T) {
				t.Parallel()
				layouts := describedLayouts(t, func(_, text string) string { return text })
				for seed := range uint64(describedPrograms) {
					if livetest.Out(334, int(seed)+111*n) || int(seed)%parts != part-1 {
						continue
					}
					t.Run(fmt.Sprint(seed), func(t *testing.T) {
						p := describedProgram(seed, llvm == 14)
						process := runDescribed(t, p, seed, llvm, host)
						defer process.Kill()
						c := compareDescribed(t, process, p, layouts)
						sums[n].add(c)
						require.Empty(t, c.wrong)
					})
				}
			})
		}
	})
	var sum compared
	for n := range sums {
		t.Logf("LLVM %d: %v", tinyvmtest.Versions[n], &sums[n])
		sum.add(sums[n])
	}
	t.Logf("all: %v", &sum)
	require.GreaterOrEqual(t, sum.values, 20*sum.programs)
	require.Positive(t, sum.words)
	if livetest.Whole() {
		require.Less(t, sum.lacking()*1000, sum.values, "more than 1 of 1,000 values is unavailable")
	}
}

// TestDescribedExitsCanDiffer requires that the comparison of TestDescribedExits finds a wrong line for each mistake that is made in a layout.
func TestDescribedExitsCanDiffer(t *testing.T) {
	livetest.Slow(t)
	host := describedHost(t)
	type started struct {
		*program
		*livetest.Process
	}
	var all []started
	for seed := range uint64(3) {
		p := describedProgram(seed, false)
		process := runDescribed(t, p, seed, 19, host)
		defer process.Kill()
		all = append(all, started{p, process})
	}
	for _, change := range []struct{ name, from, to, wrong string }{
		{"table", "words(left, right)", "words(right, left)", "is shown"},
		{"table", "u16 left, u16 right", "u16 right, u16 left", "is shown"},
		{"table", "values, next + k", "values, next + at.locals - 1 - k", "is shown"},
		{"table", `+ right.as_type("i32")`, `- right.as_type("i32")`, "i64.* and .*i64.*is shown"},
		{"stream", "constant = s.sleb()", "constant = s.uleb()", "is shown"},
		{"stream", "at = constant + 8 * k", "at = constant + 8 * (2 - k)", "is shown"},
		{"stream", "eliminated = s.uleb() != 0", "eliminated = s.uleb() == 0", "lock.* and .*lock.*is shown"},
		{"stream", `"after", "in-call"`, `"in-call", "after"`, "the decoder logged.*is shown"},
		{"keys", "(a + b) & all", "(a - b) & all", "i64.* and .*i64.*is shown"},
		{"keys", "words(r.next(), r.next())", "words(*[r.next(), r.next()][::-1])", "is shown"},
		{"keys", "key >> 5 &", "key >> 4 &", "@.* and .*@.*is shown"},
	} {
		t.Run(change.name+"/"+change.to, func(t *testing.T) {
			layouts := describedLayouts(t, func(name, text string) string {
				if name != change.name {
					return text
				}
				require.Contains(t, text, change.from)
				return strings.ReplaceAll(text, change.from, change.to)
			})
			var sum compared
			for _, s := range all {
				sum.add(compareDescribed(t, s.Process, s.program, layouts))
			}
			require.Regexp(t, change.wrong, strings.Join(sum.wrong, "\n"))
			require.Less(t, len(sum.wrong), sum.values/2, "the other encodings are right")
			for _, wrong := range sum.wrong {
				require.Contains(t, wrong, "("+change.name+")")
			}
		})
	}
}
