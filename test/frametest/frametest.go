// Package frametest captures the processes of test/livetest for tests of packages that use a view. Its main functions are [Look], which returns the
// frames of a process, and [Known], which reads its module. It trusts the programs that livetest builds.
package frametest

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// Look captures a live process and returns its frames. With hold the process stays stopped until the test ends.
func Look(t *testing.T, p *livetest.Process, hold bool, o deopt.Options) *deopt.View {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: hold})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, o)
	require.NoError(t, err)
	for _, thread := range v.Threads {
		for _, f := range thread.Frames {
			if from := deopt.ProvenanceOfFrame(f); from != nil { // tests give the module that was compiled, so the match must be right
				require.NotEqual(t, string(sites.Contradicted), from.Sure, from.Why)
			}
		}
	}
	return v
}

// Known reads the module that the process's JIT has compiled.
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

// Open takes control of a process until the test ends.
func Open(t *testing.T, p *livetest.Process) *ptrace.Session {
	t.Helper()
	s, err := ptrace.Open(context.Background(), p.PID)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() }) // has no effect if the test has detached already
	return s
}

// ModuleOptions reads the module of a program of testdata/programs, and its layout if it has one.
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

// StackOf returns a stack with the given frame of the first thread, so that it can be resumed without its callers.
func StackOf(v *deopt.View, f *deopt.Frame) *deopt.Stack {
	return &deopt.Stack{Thread: &v.Threads[0], Frames: []*deopt.Frame{f}}
}

// Launched starts a command as a traced process and discards its output.
func Launched(t *testing.T, command []string) *ptrace.Session {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = null, null
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	s, err := ptrace.Launch(context.Background(), command)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() }) // has no effect if the test has detached already
	return s
}

// Hosted starts an object host, which waits, and returns options with the module of the object.
func Hosted(t *testing.T, version int, program, level string, h livetest.ObjectHostOptions) (*livetest.Process, func(), deopt.Options) {
	t.Helper()
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, version, program, level), h)
	m, err := ir.ParseFile(livetest.IR(t, version, program))
	require.NoError(t, err)
	return p, begin, deopt.Options{Modules: []*ir.Module{m}}
}

// Pattern returns the pattern of a text, which must be valid.
func Pattern(by func(string) (*names.Pattern, error), text string) *names.Pattern {
	p, err := by(text)
	if err != nil {
		panic(err)
	}
	return p
}

// Slot returns a slot of a frame by its name.
func Slot(t *testing.T, f *deopt.Frame, name string) frame.Slot {
	t.Helper()
	for _, s := range f.Slots {
		if s.Name == name {
			return s
		}
	}
	require.Fail(t, "no slot "+name)
	return frame.Slot{}
}

// Launched19 starts a program in obj_host.c, compiled by LLVM 19. The process is stopped until the session continues it.
func Launched19(t *testing.T, program string) (*ptrace.Session, deopt.Options) {
	t.Helper()
	s, err := ptrace.LaunchWith(context.Background(), livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, program, "-O2"), livetest.ObjectHostOptions{Rounds: 4}),
		ptrace.LaunchOptions{Stdout: "/dev/null"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Detach()) })
	m, err := ir.ParseFile(livetest.IR(t, 19, program))
	require.NoError(t, err)
	return s, deopt.Options{Modules: []*ir.Module{m}}
}
