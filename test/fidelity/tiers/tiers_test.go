package tiers

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// cells names the values of work, by the log cell that stores each.
var cells = []string{"%a", "%x", "%y", "%z", "%w"}

// version is one definition of the function work. All versions have the same callee, record id and number of operands.
type version struct {
	module   *ir.Module
	object   string
	operands []string          // operands of the stackmap, in order
	types    map[string]string // types of the values, by name
}

// newVersion writes a random version. Versions differ in the values of names, in the types of these values, and in the order of the operands.
func newVersion(t *testing.T, release, number int, r *rand.Rand) *version {
	t.Helper()
	formulas := []string{"mul i64 %a, 3", "add i64 %a, 1000", "sub i64 %a, 77", "xor i64 %a, 4095", "shl i64 %a, 7", "mul i64 %a, 11"}
	r.Shuffle(len(formulas), func(i, j int) { formulas[i], formulas[j] = formulas[j], formulas[i] })
	v := &version{operands: slices.Clone(cells), types: map[string]string{"%a": "i64"}}
	r.Shuffle(len(cells), func(i, j int) { v.operands[i], v.operands[j] = v.operands[j], v.operands[i] })
	var b strings.Builder
	b.WriteString("target datalayout = \"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128\"\ntarget triple = \"x86_64-pc-linux-gnu\"\n")
	b.WriteString("declare dso_local i64 @next(i64)\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
	for n := range cells {
		fmt.Fprintf(&b, "@cell%d = external dso_local global i64\n", n)
	}
	b.WriteString("define i64 @work(i64 %a) noinline {\n  store volatile i64 %a, ptr @cell0\n")
	sum := "%a"
	for n, name := range cells[1:] {
		wide := name
		if v.types[name] = "i64"; r.IntN(3) == 0 {
			v.types[name], wide = "i32", name+".wide"
			fmt.Fprintf(&b, "  %s.full = %s\n  %s = trunc i64 %s.full to i32\n  %s = sext i32 %s to i64\n", name, formulas[n], name, name, wide, name)
		} else {
			fmt.Fprintf(&b, "  %s = %s\n", name, formulas[n])
		}
		fmt.Fprintf(&b, "  store volatile i64 %s, ptr @cell%d\n  %s.sum = add i64 %s, %s\n", wide, n+1, name, sum, wide)
		sum = name + ".sum"
	}
	b.WriteString("  %r = call i64 @next(i64 %a)\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0")
	for _, name := range v.operands {
		fmt.Fprintf(&b, ", %s %s", v.types[name], name)
	}
	fmt.Fprintf(&b, ")\n  %%t = add i64 %%r, %s\n  ret i64 %%t\n}\n", sum)
	var err error
	v.module, err = ir.Parse(fmt.Sprintf("v%d.ll", number), []byte(b.String()))
	require.NoError(t, err)
	v.object = livetest.Object(t, release, livetest.Raw(t, b.String()), "-relocation-model=pic", []string{"-O0", "-O2"}[r.IntN(2)])
	return v
}

// jit is a running process of tiers.c.
type jit struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startJIT(t *testing.T) *jit {
	t.Helper()
	include, err := filepath.Abs("../../../internal/demo/target")
	require.NoError(t, err)
	program := livetest.CProgram(t, "gcc", []string{"-O1", "-no-pie", "-fno-pie", "-I" + include}, "testdata/tiers.c")
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close() // closing its standard input ends the process
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // an error means that it was killed
	})
	return &jit{t, cmd, in, bufio.NewScanner(out)}
}

func (j *jit) tell(format string, args ...any) {
	_, err := fmt.Fprintf(j.in, format+"\n", args...)
	require.NoError(j.t, err)
}

// activation is the log of one call of work.
type activation struct {
	slot   int
	values map[string]int64
}

// run makes the program build a stack, and returns the frames that it logs, outermost first. The program then waits until [jit.resume] is called.
func (j *jit) run(slots []int) (all []activation) {
	j.tell("r %s", strings.Trim(fmt.Sprint(slots), "[]"))
	for j.out.Scan() && j.out.Text() != "waits" {
		words := strings.Fields(j.out.Text())
		require.Len(j.t, words, len(cells)+1, j.out.Text())
		a := activation{values: map[string]int64{}}
		var err error
		a.slot, err = strconv.Atoi(words[0])
		require.NoError(j.t, err)
		for n, name := range cells {
			a.values[name], err = strconv.ParseInt(words[n+1], 10, 64)
			require.NoError(j.t, err)
		}
		all = append(all, a)
	}
	require.Len(j.t, all, len(slots))
	return all
}

func (j *jit) resume() {
	j.tell("c")
	require.True(j.t, j.out.Scan())
	require.True(j.t, strings.HasPrefix(j.out.Text(), "returned "), j.out.Text())
}

// given chooses the modules to pass to reframe: all, the loaded ones, some, or one that is not loaded.
func given(r *rand.Rand, all []*version, loaded map[int]*version) (modules []*ir.Module, how string) {
	isLoaded := func(v *version) bool {
		for _, l := range loaded {
			if l == v {
				return true
			}
		}
		return false
	}
	switch how = []string{"all", "loaded", "some", "stale"}[r.IntN(4)]; how {
	case "all":
		for _, v := range all {
			modules = append(modules, v.module)
		}
	case "loaded":
		for _, v := range all {
			if isLoaded(v) {
				modules = append(modules, v.module)
			}
		}
	case "some":
		for _, v := range all {
			if r.IntN(2) == 0 {
				modules = append(modules, v.module)
			}
		}
	case "stale":
		for _, v := range all {
			if !isLoaded(v) {
				modules = append(modules, v.module)
				break
			}
		}
	}
	r.Shuffle(len(modules), func(i, j int) { modules[i], modules[j] = modules[j], modules[i] })
	return modules, how
}

// TestTiers requires that each shown name, type and value is that of the running version of a function, whatever modules reframe is given. The
// versions have the same sites, ids and counts. A JIT loads them, replaces them at the same addresses, and unloads them; several may be on the stack.
func TestTiers(t *testing.T) {
	stacks, named, unnamed := 0, map[string]int{}, map[string]int{}
	perRelease := livetest.Times(40, 3400)
	for _, release := range []int{16, 19, 22} {
		r := rand.New(rand.NewPCG(uint64(release), 35))
		var all []*version
		for n := range livetest.Times(6, 24) {
			all = append(all, newVersion(t, release, n, r))
		}
		j := startJIT(t)
		loaded := map[int]*version{}
		for range perRelease {
			for range 1 + r.IntN(3) {
				slot := r.IntN(8)
				if loaded[slot] != nil {
					j.tell("u %d", slot)
					delete(loaded, slot)
				}
				if v := all[r.IntN(len(all))]; r.IntN(4) > 0 || len(loaded) == 0 {
					j.tell("l %d %s", slot, v.object)
					loaded[slot] = v
				}
			}
			var present, slots []int
			for slot := range 8 {
				if loaded[slot] != nil {
					present = append(present, slot)
				}
			}
			for range 1 + r.IntN(6) {
				slots = append(slots, present[r.IntN(len(present))])
			}
			log := j.run(slots)
			modules, how := given(r, all, loaded)
			target, err := ptrace.Capture(j.cmd.Process.Pid, ptrace.Options{})
			require.NoError(t, err)
			view, err := deopt.Frames(target, deopt.Options{Modules: modules})
			require.NoError(t, err)
			var frames []*deopt.Frame
			for _, f := range view.Threads[0].Frames {
				if f.Function == "work" {
					frames = append(frames, f)
				}
			}
			require.Len(t, frames, len(log))
			slices.Reverse(frames)
			for n, f := range frames {
				v, about := loaded[log[n].slot], fmt.Sprintf("LLVM %d, stack %d, %s, frame #%d", release, stacks, how, f.Index)
				if f.Record == nil { // the record is after instructions that copy values, so only a module tells which values it describes
					unnamed[how] += len(cells)
					continue
				}
				for k, s := range f.Slots {
					if !s.Type.IsZero() {
						require.Equal(t, v.types[v.operands[k]], s.Type.Source, "%s: %+v", about, s)
					}
					if strings.HasPrefix(s.Name, "loc") {
						unnamed[how]++
						continue
					}
					named[how]++
					require.Equal(t, v.operands[k], s.Name, "%s: %+v %v", about, s, f.Notes)
					require.Equal(t, frame.OK, s.Status, about)
					require.Equal(t, fmt.Sprint(log[n].values[s.Name]), s.Value, "%s: %+v", about, s)
				}
			}
			target.Close()
			j.resume()
			stacks++
		}
	}
	t.Logf("%d stacks; values with names: %v; without: %v", stacks, named, unnamed)
	require.Positive(t, named["all"])
	require.Positive(t, named["loaded"])
	require.Positive(t, unnamed["stale"])
	require.Zero(t, named["stale"])
}
