package deopt_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// inlineSource is a program that waits in pause, called through two functions that were inlined.
func inlineSource(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../internal/machine/lines/testdata/inline.c")
	require.NoError(t, err)
	return path
}

// sourceModule returns that program as a module with debug information that LLVM of a release reads.
func sourceModule(t testing.TB, version int, flags ...string) string {
	t.Helper()
	flags = append([]string{"-O2", "-g"}, flags...)
	if version < 19 {
		return livetest.CModule(t, 14, flags, inlineSource(t))
	}
	return livetest.CModule(t, 19, flags, inlineSource(t))
}

var (
	gdbLine  = regexp.MustCompile(`(?m)^#\d+ .*$`)
	gdbPlace = regexp.MustCompile(`^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(.*\) at (\S+)$`)
)

// TestSourceAgainstGDB requires the same functions, files and lines as in gdb's backtrace: in programs, in libc with its separate file, and in code
// registered by JITs, with RuntimeDyld, which gives debug sections no address, and with JITLink.
func TestSourceAgainstGDB(t *testing.T) {
	livetest.Slow(t)
	lli := func(version int, kind string) func(*testing.T) *livetest.Process {
		return func(t *testing.T) *livetest.Process {
			return livetest.Lli(t, version, sourceModule(t, version), kind)
		}
	}
	program := func(compiler string, flags ...string) func(*testing.T) *livetest.Process {
		return func(t *testing.T) *livetest.Process {
			return quiet(t, 0, livetest.Compiled(t, compiler, inlineSource(t), flags...))
		}
	}
	for name, start := range map[string]func(*testing.T) *livetest.Process{
		"gcc": program("gcc", "-O2", "-g"), "gcc, static": program("gcc", "-O2", "-g", "-no-pie", "-static"),
		"clang 14, DWARF 4": program("clang-14", "-O2", "-gdwarf-4"), "clang 19": program("clang-19", "-O2", "-g"),
		"mcjit 16": lli(16, "mcjit"), "mcjit 19": lli(19, "mcjit"), "mcjit 22": lli(22, "mcjit"),
		"orc 16": lli(16, "orc"), "JITLink 19": lli(19, "orc-jitlink"), "RuntimeDyld 19": lli(19, "orc-rtdyld"), "JITLink 22": lli(22, "orc-jitlink"),
	} {
		if slices.Contains([]string{"mcjit 19", "orc 16", "RuntimeDyld 19", "mcjit 22"}, name) && !livetest.Whole() {
			continue // the remaining tests cover each release and each way
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			target, err := ptrace.Capture(p.PID, ptrace.Options{})
			require.NoError(t, err)
			defer target.Close()
			v, err := deopt.Frames(target, deopt.Options{})
			require.NoError(t, err)
			require.Empty(t, v.Sources(deopt.AllSources))
			var ours, theirs []string
			inlined := 0
			for _, f := range v.Threads[0].Frames {
				require.Empty(t, f.Guess())
				if f.Source == nil {
					ours = append(ours, "?")
				}
				for _, s := range f.Source {
					ours = append(ours, fmt.Sprintf("%s at %s", s.Function, deopt.SourceText(s)))
					if s.Inlined {
						inlined++
					}
				}
			}
			for _, line := range gdbLine.FindAllString(livetest.GDB(t, p.PID, "set width 0", "set print frame-arguments none", "bt"), -1) {
				if m := gdbPlace.FindStringSubmatch(line); m != nil {
					theirs = append(theirs, m[1]+" at "+m[2])
				} else {
					theirs = append(theirs, "?")
				}
			}
			require.Equal(t, theirs, ours)
			require.GreaterOrEqual(t, inlined, 2)
		})
	}
}
