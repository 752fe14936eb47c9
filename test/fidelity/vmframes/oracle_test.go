package vmframes_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// rdi is the first argument of a call (System V ABI for AMD64, figure 3.36).
const rdi = machine.DWARFReg(5)

// seeds is the number of programs, which are numbered from 0.
const seeds = 1000

// programs returns the numbers of the programs. All of them take hours; SEEDS=250-499 selects a range.
func programs(t *testing.T) iter.Seq[uint64] {
	t.Helper()
	first, last := uint64(0), uint64(seeds-1)
	if some := os.Getenv("SEEDS"); some != "" {
		n, err := fmt.Sscanf(some, "%d-%d", &first, &last)
		require.NoError(t, err, "SEEDS=%s (%d read): two numbers are wanted, as in SEEDS=250-499", some, n)
	}
	return func(yield func(uint64) bool) {
		for seed := first; seed <= last && yield(seed); seed++ {
		}
	}
}

// least returns the minimum number of exits that the test must compare: few in make test, all if all programs run, and 1 if SEEDS selects programs.
func least(few, all int) int {
	if os.Getenv("SEEDS") != "" {
		return 1
	}
	return livetest.Times(few, all)
}

// A way is a configuration of tinyvm: how it is built, and how it compiles.
type way struct {
	llvm  int
	opt   string
	fault string // the planted fault, or ""
}

func (w way) String() string { return fmt.Sprintf("LLVM %d, --opt %s", w.llvm, w.opt) }

// flags returns the flags of tinyvm.
func (w way) flags(more ...string) []string {
	f := append([]string{"--opt", w.opt}, more...)
	if w.fault != "" {
		f = append(f, "--fault", w.fault)
	}
	return f
}

// An exit holds the data that reframe shows at one exit.
type exit struct {
	key     tinyvmtest.Key
	skip    int    // number of frames of the arrival that are further in than the first shown frame
	wrong   string // why no frames can be compared, or ""
	arrival tinyvmtest.Arrival
	where   string
}

// tally counts what was compared.
type tally struct {
	runs, leaves, calls, outer, inlined, deepest, virtual, monitors, eliminated, objects int
}

func (c *tally) add(o tally) {
	c.runs, c.leaves, c.calls, c.outer = c.runs+o.runs, c.leaves+o.leaves, c.calls+o.calls, c.outer+o.outer
	c.inlined, c.deepest = c.inlined+o.inlined, max(c.deepest, o.deepest)
	c.virtual, c.monitors, c.eliminated, c.objects = c.virtual+o.virtual, c.monitors+o.monitors, c.eliminated+o.eliminated, c.objects+o.objects
}

func (c *tally) exits() int { return c.leaves + c.calls }

func (c tally) String() string {
	return fmt.Sprintf("%d runs, %d exits compared (%d that leave compiled code, %d calls) and %d frames further out; %d with inlined frames, up to %d deep; %d virtual objects, %d others, %d monitors, %d of them eliminated",
		c.runs, c.exits(), c.leaves, c.calls, c.outer, c.inlined, c.deepest, c.virtual, c.objects, c.monitors, c.eliminated)
}

// saw counts the contents of a physical frame.
func (c *tally) saw(vm *frame.VM, a *tinyvmtest.Arrival) {
	if len(vm.Frames) > 1 {
		c.inlined++
	}
	c.deepest = max(c.deepest, len(vm.Frames))
	for n := range vm.Frames {
		for _, m := range vm.Frames[n].Monitors {
			c.monitors++
			if m.Eliminated {
				c.eliminated++
			}
		}
	}
	c.virtual += len(vm.Objects)
	c.objects += len(a.Heap) - min(len(a.Heap), len(vm.Objects))
}

// dumped runs a program without a tracer and reads the IR that it dumps. The IR is the same in each run.
func dumped(t *testing.T, w way, file string) (modules []*ir.Module) {
	t.Helper()
	dir := t.TempDir()
	tinyvmtest.Run(t, tinyvmtest.Binary(t, w.llvm), w.flags("--dump", dir, file)...)
	files, err := filepath.Glob(filepath.Join(dir, "*.ll"))
	require.NoError(t, err)
	for _, f := range files {
		m, err := ir.ParseFile(f)
		require.NoError(t, err)
		modules = append(modules, m)
	}
	require.NoError(t, os.RemoveAll(dir)) // thousands of runs would fill the disk
	return modules
}

// traced runs a program under a trace and calls each at each exit, with the remaining fuel and the method that is called there, if any. If o has no
// module or layout, those in the process are used. flags are further flags of tinyvm.
func traced(t *testing.T, w way, file string, o deopt.Options, each func(x *trace.Exited, fuel int64, callee string) error, flags ...string) tinyvmtest.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	dir := t.TempDir()
	out, errors := filepath.Join(dir, "stdout"), filepath.Join(dir, "stderr")
	command := append([]string{tinyvmtest.Binary(t, w.llvm), "--fuel", tinyvmtest.Fuel}, w.flags(append(flags, "--exits", file)...)...)
	s, err := ptrace.LaunchWith(ctx, command, ptrace.LaunchOptions{Stdin: os.DevNull, Stdout: out, Stderr: errors, Bound: true})
	require.NoError(t, err)
	ended := false
	defer func() { require.NoError(t, s.Kill(ended)) }()
	options := trace.Options{Options: o, Full: true, Wait: true, Warn: func(text string) { t.Errorf("%v %s: %s", w, file, text) }}
	if o.Modules == nil {
		describe := describer(t)
		options.Describe = func(where string, img *object.Image) ([]*ir.Module, []*vmlayout.Layout) {
			modules, layouts := describe(where, img)
			if o.VMs != nil {
				layouts = nil
			}
			return modules, layouts
		}
	}
	var at machine.Addr // address of tinyvm_fuel
	summary, err := trace.Run(ctx, s, options, func(x *trace.Exited) error {
		target := x.Frame.View().Target()
		for _, m := range target.Modules {
			if at != 0 || m.Image == nil {
				continue
			}
			if symbol, ok := m.Image.Lookup("tinyvm_fuel"); ok {
				at = symbol.Addr
			}
		}
		fuel, err := word(target, at)
		if err != nil {
			return err
		}
		callee := ""
		// The exit calls tinyvm_call, whose first argument is a method; the method's first word points to its name.
		if x.Point.Site == string(ir.StatepointSite) {
			method, err := x.Thread.Registers.Uint(rdi)
			if err != nil {
				return err
			}
			name, err := word(target, machine.Addr(method))
			if err != nil {
				return err
			}
			if callee, err = text(target, name); err != nil {
				return err
			}
		}
		return each(x, int64(fuel), callee)
	})
	require.NoError(t, err, "%v %s", w, file)
	if w.fault == "" { // the exit status is checked only for correctly compiled code
		require.Equal(t, trace.EndExited, summary.End.Kind, "%v %s: %+v", w, file, summary.End)
	}
	ended = true
	printed, err := os.ReadFile(out)
	require.NoError(t, err)
	said, err := os.ReadFile(errors)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	return tinyvmtest.Told(summary.End.ExitCode, string(printed), string(said))
}

// describer returns a function that reads the descriptions which registered objects of a run contain.
func describer(t *testing.T) func(string, *object.Image) ([]*ir.Module, []*vmlayout.Layout) {
	d := &described.Description{}
	return func(where string, img *object.Image) (_ []*ir.Module, layouts []*vmlayout.Layout) {
		modules, known := len(d.Modules), len(d.Layouts)
		d.Add(where, img, true, true)
		for _, l := range d.Layouts[known:] {
			require.Equal(t, "simple", string(l.Text))
			layouts = append(layouts, layout(t, "simple"))
		}
		require.Empty(t, d.Notes)
		return d.Modules[modules:], layouts
	}
}

// seen returns the exits of a run as reframe shows them.
func seen(t *testing.T, w way, file string, c *tally) (all []exit, r tinyvmtest.Result) {
	t.Helper()
	r = traced(t, w, file, deopt.Options{}, func(x *trace.Exited, fuel int64, callee string) error {
		memory := x.Frame.View().Target()
		if callee == "" {
			c.leaves++
		} else {
			c.calls++
		}
		first := exitOf(x.Frame.VM, memory, fuel, callee, callee != "")
		first.where = fmt.Sprintf("%s+%#x", x.Point.Function, x.Point.Offset)
		if first.wrong == "" {
			c.saw(x.Frame.VM, &first.arrival)
		}
		all = append(all, first)
		if first.wrong != "" {
			return nil
		}
		// Frames further out wait for the return of a call, and are part of the same arrival in the log. Deoptimized frames are not: they stay on the
		// stack below the interpreter, which continues with their values.
		for _, f := range x.Frames {
			if f == x.Frame || f.Record == nil || f.Record.Site == string(ir.DeoptimizeSite) {
				continue
			}
			c.outer++
			further := exitOf(f.VM, memory, fuel, "", true)
			further.where = fmt.Sprintf("%s, called at %s+%#x", first.where, f.Function, *f.Offset)
			if further.wrong == "" {
				further.key = first.key
				further.skip = first.key.Depth - further.arrival.Depth
			}
			all = append(all, further)
		}
		return nil
	})
	return all, r
}

func exitOf(vm *frame.VM, memory machine.Memory, fuel int64, callee string, calling bool) exit {
	a, err := arrival(vm, memory, fuel, callee, calling)
	if err != nil {
		return exit{wrong: err.Error()}
	}
	return exit{key: a.Key(), arrival: a}
}

// compare returns a description of the first difference between the shown frames and the log, or "".
func (e *exit) compare(log map[tinyvmtest.Key]tinyvmtest.Arrival) string {
	if e.wrong != "" {
		return e.wrong
	}
	was, ok := log[e.key]
	if !ok {
		return fmt.Sprintf("the interpreter never came to %+v", e.key)
	}
	if e.skip < 0 || e.skip >= len(was.Frames) {
		return fmt.Sprintf("%d frames, and this one would be number %d", len(was.Frames), e.skip)
	}
	was.Frames = was.Frames[e.skip:]
	return tinyvmtest.Compare(was, e.arrival)
}

// arrivals reads the arrivals with the keys of the exits.
func arrivals(t *testing.T, log string, exits ...[]exit) map[tinyvmtest.Key]tinyvmtest.Arrival {
	t.Helper()
	wanted := map[tinyvmtest.Key]bool{}
	for _, list := range exits {
		for _, e := range list {
			if e.wrong == "" {
				wanted[e.key] = true
			}
		}
	}
	all := map[tinyvmtest.Key]tinyvmtest.Arrival{}
	for _, a := range tinyvmtest.ReadLog(t, log, func(k tinyvmtest.Key) bool { return wanted[k] }) {
		all[a.Key()] = a
	}
	return all
}

// interpreted runs a program in the plain interpreter, and returns the result and the path of its log.
func interpreted(t *testing.T, llvm int, file string) (tinyvmtest.Result, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "arrivals")
	return tinyvmtest.Run(t, tinyvmtest.Binary(t, llvm), "--log", log, "--log-limit", fmt.Sprint(logLimit), file), log
}

func layout(t *testing.T, name string) *vmlayout.Layout {
	t.Helper()
	l, err := vmlayout.Read(name)
	require.NoError(t, err)
	return l
}

// TestExitsAreAsLogged requires that reframe shows at each exit of tinyvm's compiled code the data in the log of tinyvm's plain interpreter, which
// does not use stack maps: the frame that exits, frames that were inlined into it, frames of compiled code further out, all live values, monitors,
// and the reachable objects, including those that exist only as fields. reframe gets no modules or layouts, because the process describes itself.
func TestExitsAreAsLogged(t *testing.T) {
	livetest.Slow(t)
	sums := make([]tally, len(tinyvmtest.Versions))
	t.Run("all", func(t *testing.T) {
		for n, llvm := range tinyvmtest.Versions {
			t.Run(fmt.Sprint("llvm", llvm), func(t *testing.T) {
				t.Parallel()
				sums[n] = asLogged(t, n)
			})
		}
	})
	var sum tally
	for _, s := range sums {
		sum.add(s)
	}
	t.Logf("%v", sum)
	require.GreaterOrEqual(t, sum.exits(), least(100, 100_000))
	require.GreaterOrEqual(t, sum.deepest, least(2, 4))
}

// asLogged compares the programs in a tinyvm that uses the n-th release of LLVM.
func asLogged(t *testing.T, n int) (sum tally) {
	t.Helper()
	llvm := tinyvmtest.Versions[n]
	by := map[string]*tally{}
	done := 0
	for seed := range programs(t) {
		if livetest.Out(167, int(seed)+55*n) {
			continue
		}
		done++
		file := tinyvmtest.File(t, seed)
		want, log := interpreted(t, llvm, file)
		for _, opt := range livetest.ShareOf([]string{"0", "2"}, llvm, seed) {
			w := way{llvm: llvm, opt: opt}
			c := tally{runs: 1}
			all, r := seen(t, w, file, &c)
			require.Equal(t, want.Output, r.Output, "seed %d, %v", seed, w)
			require.Equal(t, want.Status, r.Status, "seed %d, %v", seed, w)
			require.Equal(t, r.Exits, c.leaves, "seed %d, %v: exits that tinyvm took", seed, w)
			was := arrivals(t, log, all)
			for _, e := range all {
				require.Empty(t, e.compare(was), "seed %d, %v, %s: %+v", seed, w, e.where, e.key)
			}
			sum.add(c)
			if by[opt] == nil {
				by[opt] = &tally{}
			}
			by[opt].add(c)
		}
		require.NoError(t, os.Remove(log))
		if done%25 == 0 {
			t.Logf("%d programs: %v", done, sum)
		}
	}
	for _, opt := range slices.Sorted(maps.Keys(by)) {
		t.Logf("%d programs, --opt %s: %v", done, opt, by[opt])
	}
	return sum
}
