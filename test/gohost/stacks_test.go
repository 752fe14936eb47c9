package gohost

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// ways lists the arguments of the host, which select how it calls C, each with the C functions on the stack between two Go functions, innermost
// first.
var ways = []struct {
	name string
	c    [][]string
}{
	{"plain", [][]string{{"finish"}, {"goCallback", "recurse", "recurse", "recurse", "recurse"}}},
	{"nested", [][]string{{"finish"}, {"goInner", "second"}, {"goCallback", "recurse", "recurse", "recurse", "recurse"}}},
	{"grown", [][]string{{"finish"}, {"goInner", "second"}, {"goCallback", "recurse", "recurse", "recurse", "recurse"}}},
	{"panic", [][]string{{"finish"}, {"goCallback", "recurse", "recurse", "recurse"}}},
	{"thread", [][]string{{"finish"}, {"goCallback", "body"}}},
	{"signal", [][]string{{"finish", "handle", "interrupted"}}},
}

// TestStacks requires that the stacks of Go programs are those that Go's run time prints.
func TestStacks(t *testing.T) {
	for _, flags := range [][]string{nil, {"-buildmode=pie"}, {"-ldflags=-w"}} {
		requireStacks(t, flags...)
	}
}

// TestStacksOfRaceDetector requires the stacks that Go's run time prints, for programs that are built with the race detector.
func TestStacksOfRaceDetector(t *testing.T) {
	livetest.Slow(t) // it builds Go's library
	requireStacks(t, "-race")
}

// TestStacksOfAddressSanitizer requires the stacks that Go's run time prints, for programs that are built with the address sanitizer, in which a g is
// larger.
func TestStacksOfAddressSanitizer(t *testing.T) {
	livetest.Slow(t) // it builds Go's library
	requireStacks(t, "-asan")
}

// TestStacksOfStrippedPrograms requires the stacks that Go's run time prints, for programs without symbols and CFI, in which C functions have no
// names.
func TestStacksOfStrippedPrograms(t *testing.T) {
	for _, flags := range [][]string{{"-ldflags=-s -w"}, {"-ldflags=-s -w", "-buildmode=pie"}} {
		requireStacks(t, flags...)
	}
}

func requireStacks(t *testing.T, flags ...string) {
	t.Helper()
	requireStacksOf(t, "local", flags...)
}

// requireStacksOf compares the stacks of a program that a release of Go builds with those that Go's run time prints.
func requireStacksOf(t *testing.T, release string, flags ...string) {
	t.Helper()
	// Without inlining, because the run time's log has no frames of inlined calls.
	exe := livetest.CgoBinaryOf(t, release, "testdata/host", append(flags, "-gcflags=-l")...)
	for _, way := range ways {
		t.Run(strings.Join(slices.Concat([]string{release}, flags, []string{way.name}), "/"), func(t *testing.T) {
			p := livetest.Program(t, exe, way.name)
			log, _, _ := strings.Cut(p.Output(), "\n")
			if slices.Contains(flags, "-ldflags=-s -w") {
				requireStack(t, p, strings.Fields(log), nil)
				return
			}
			requireStack(t, p, strings.Fields(log), way.c)
		})
	}
}

// TestIdleThreads requires that the stacks of threads that wait in Go's scheduler are unwound to their ends, also on a thread whose C functions have
// called a Go function that waits.
func TestIdleThreads(t *testing.T) {
	p := livetest.Program(t, livetest.CgoBinary(t, "testdata/host", "-gcflags=-l"), "parked")
	p.Quiet(t, 0)
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	defer target.Close()
	v, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	var parked [][]string
	for _, th := range v.Threads {
		require.True(t, th.End.Complete, th.End.Reason)
		var names []string
		for _, f := range th.Frames {
			names = append(names, strings.TrimSuffix(f.Function, ".abi0"))
		}
		if slices.Contains(names, "recurse") {
			parked = append(parked, names[slices.Index(names, "runtime.mcall"):])
		}
	}
	require.Len(t, parked, 1)
	require.Equal(t, []string{"runtime.mcall", "crosscall2", "goCallback", "recurse", "recurse", "recurse", "recurse"}, parked[0][:7])
	require.Equal(t, []string{"runtime.asmcgocall", "runtime.cgocall", "main._Cfunc_recurse", "main.worker", "main.main.gowrap1", "runtime.goexit"}, parked[0][8:])
}

// requireStack requires that one thread of p has the logged Go functions, and the C functions c between them if c is not nil. The functions are
// listed outwards, from the innermost.
func requireStack(t *testing.T, p *livetest.Process, logged []string, c [][]string) {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	defer target.Close()
	v, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	v.Sources(deopt.QuickSources)
	for _, th := range v.Threads {
		var names []string
		for _, f := range th.Frames {
			if strings.HasPrefix(f.Function, "main.") || strings.HasPrefix(f.Function, "runtime.") {
				require.NotEmpty(t, f.Source, "%d: %s", f.Index, f.Function)
				require.Equal(t, strings.TrimSuffix(f.Function, ".abi0"), f.Source[len(f.Source)-1].Function)
			}
			require.Empty(t, f.Guess(), "%d: %s", f.Index, f.Function)
			if strings.HasPrefix(f.Function, "runtime.asmcgocall") {
				require.Nil(t, f.Physical().Left().Row, "no rule was applied")
			}
			if filepath.Base(f.Module) == "host" {
				names = append(names, f.Function)
			}
		}
		if !slices.Contains(names, logged[1]) && !slices.Contains(names, logged[1]+".abi0") {
			continue
		}
		require.True(t, th.End.Complete, "%v\n%s", names, th.End.Reason)
		goNames, cNames := divide(names)
		if !slices.Contains(logged, "runtime.systemstack_switch") && len(cNames) > 1 {
			logged = logged[:len(logged)-1] // Go's run time takes a callback from a thread of C for the start of a goroutine.
		}
		require.Equal(t, divideLog(logged), goNames)
		if c == nil {
			return
		}
		for i := range cNames {
			cNames[i] = slices.DeleteFunc(cNames[i], func(s string) bool { return strings.HasPrefix(s, "_cgo_") })
		}
		require.Equal(t, c, cNames)
		return
	}
	require.Fail(t, "no thread has the stack")
}

// divide splits a stack into the runs of Go functions and the runs of C functions. It omits wrappers that Go's run time does not show.
func divide(names []string) (goRuns, cRuns [][]string) {
	inGo, last := false, ""
	cRuns = [][]string{nil}
	for _, name := range names {
		switch name := strings.TrimSuffix(name, ".abi0"); {
		case name == "runtime.asmcgocall":
			inGo, goRuns = true, append(goRuns, nil)
		case name == "crosscall2":
			inGo, cRuns = false, append(cRuns, nil)
		case !inGo:
			cRuns[len(cRuns)-1] = append(cRuns[len(cRuns)-1], name)
		case strings.Contains(name, ".gowrap"), name == "runtime.cgocallbackg" && last == name: // compiler-generated wrappers
		default:
			goRuns[len(goRuns)-1] = append(goRuns[len(goRuns)-1], name)
		}
		last = strings.TrimSuffix(name, ".abi0")
	}
	return goRuns, cRuns
}

// divideLog returns the runs of Go functions in the host's output, in which one pseudo-function replaces all functions between two runs.
func divideLog(names []string) [][]string {
	runs := [][]string{nil}
	for _, name := range names {
		if name == "runtime.systemstack_switch" {
			runs = append(runs, nil)
			continue
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], name)
	}
	return runs
}
