// Package frametest looks at the processes of internal/livetest for tests of what is built on a view.
package frametest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt"
	"reframe/deopt/ir"
	"reframe/deopt/layout"
	"reframe/internal/livetest"
	"reframe/ptrace"
)

// Look captures a live process and makes its frames. With hold the process stays stopped until the test ends.
func Look(t *testing.T, p *livetest.Process, hold bool, o deopt.Options) *deopt.View {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: hold})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, o)
	require.NoError(t, err)
	return v
}

// Known reads the module that the process's JIT compiled.
func Known(t *testing.T, p *livetest.Process) deopt.Options {
	t.Helper()
	m, err := ir.ParseFile(p.IR)
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return deopt.Options{Modules: []*ir.Module{m}}
}

// One returns the only frame of a function.
func One(t *testing.T, v *deopt.View, function string) *deopt.Frame {
	t.Helper()
	var found []*deopt.Frame
	for _, thread := range v.Threads {
		for _, f := range thread.Frames {
			if f.Function == function {
				found = append(found, f)
			}
		}
	}
	require.Len(t, found, 1, "frames of %s", function)
	return found[0]
}

// GDB runs commands on a live process.
func GDB(t *testing.T, pid int, commands ...string) string {
	t.Helper()
	args := []string{"-nx", "-batch", "-p", fmt.Sprint(pid), "-ex", "set backtrace past-main on"}
	for _, c := range commands {
		args = append(args, "-ex", c)
	}
	out, err := exec.Command(livetest.Tool(t, "gdb"), args...).Output()
	require.NoError(t, err)
	return string(out)
}

// PatchpointValues are the values of jit_pp.ll, by their names in the module.
func PatchpointValues() map[string]string {
	const a, b, c = 100, 105, 111
	const d, e = 2.5, 3.5
	v := map[string]int64{"%a": a, "%v1": a + 1, "%v2": a * b, "%v3": b - c, "%v4": a ^ c, "%v5": b << 3, "%v6": c | 7}
	v["%v7"] = v["%v2"] + v["%v3"]
	v["%v8"] = v["%v4"] * v["%v5"]
	v["%v9"] = v["%v8"] + v["%v6"]
	v["%v10"] = v["%v9"] * v["%v7"]
	out := map[string]string{"%d1": "6.0", "%d2": "8.75"}
	if d+e != 6.0 || d*e != 8.75 {
		panic("the text above is wrong")
	}
	for name, n := range v {
		out[name] = strconv.FormatInt(n, 10)
	}
	return out
}

// Open takes control of a process until the test or close ends it.
func Open(t *testing.T, p *livetest.Process) *ptrace.Session {
	t.Helper()
	s, err := ptrace.Open(context.Background(), p.PID)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() }) // nothing where the test did so
	return s
}

// ModuleOptions reads the module, and the layout where there is one, of a program of testdata/programs.
func ModuleOptions(t *testing.T, version int, program string) deopt.Options {
	t.Helper()
	m, err := ir.ParseFile(livetest.IR(t, version, program))
	require.NoError(t, err)
	o := deopt.Options{Modules: []*ir.Module{m}}
	if path := livetest.Testdata(t, "programs") + "/" + strings.TrimSuffix(program, ".ll") + ".layout.json"; fileExists(path) {
		l, err := layout.Read(path)
		require.NoError(t, err)
		o.Layouts = append(o.Layouts, l)
	}
	return o
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Alone is one frame of the first thread, to be resumed without its callers.
func Alone(v *deopt.View, f *deopt.Frame) *deopt.Stack {
	return &deopt.Stack{Thread: &v.Threads[0], Frames: []*deopt.Frame{f}}
}
