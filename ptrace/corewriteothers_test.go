package ptrace

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/proc"
	delvecore "github.com/go-delve/delve/pkg/proc/core"
	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

var lldbFrame = regexp.MustCompile(`(?m)^ .*frame #\d+: .*$`)

// lldbFrames returns the frames of all threads as lldb shows them.
func lldbFrames(t *testing.T, commands ...string) []string {
	t.Helper()
	args := []string{"-x", "-b"}
	for _, c := range append(commands, "thread backtrace all") {
		args = append(args, "-o", c)
	}
	text := output(t, "lldb-19", args...)
	_, text, found := strings.Cut(text, "(lldb) thread backtrace all\n")
	require.True(t, found)
	frames := lldbFrame.FindAllString(text, -1)
	for i := range frames {
		frames[i] = strings.TrimLeft(frames[i], "* ") // marks the thread that is shown first
	}
	slices.Sort(frames)
	return frames
}

// TestWriteCoreForLLDB requires that lldb reports the same for a core and for the process.
func TestWriteCoreForLLDB(t *testing.T) {
	livetest.Slow(t)
	for name, p := range map[string]*livetest.Process{
		"threads":  livetest.C(t, "threads.c", []string{"-g"}, "3"),
		"compiled": livetest.Linked(t, 19, "deoptimize.ll", "-pie"),
	} {
		t.Run(name, func(t *testing.T) {
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
			require.NoError(t, err)
			live := lldbFrames(t, fmt.Sprintf("process attach -p %d", p.PID))
			require.Greater(t, len(live), 3)
			for _, c := range []string{ownCore(t, p), recordedCore(t, p, Options{Record: true}, Minimal), recordedCore(t, p, Options{Record: true, Hold: true}, All)} {
				require.Equal(t, live, lldbFrames(t, "target create "+exe+" --core "+c))
			}
		})
	}
}

// TestWriteCoreForDelve requires that Delve opens a core of a Go program, and finds the functions in which its threads are.
func TestWriteCoreForDelve(t *testing.T) {
	livetest.Slow(t)
	exe := livetest.GoBinary(t, "../deopt/testdata/gdbstack/goprogram")
	p := livetest.Program(t, exe)
	p.Quiet(t, 1)
	for _, path := range []string{ownCore(t, p), recordedCore(t, p, Options{Record: true}, Minimal), recordedCore(t, p, Options{Record: true, Hold: true}, All)} {
		ours := openCore(t, path)
		group, err := delvecore.OpenCore(path, exe, nil)
		require.NoError(t, err)
		pcs := map[int]machine.Addr{}
		functions := map[string]bool{}
		for _, th := range group.Selected.ThreadList() {
			regs, err := th.Registers()
			require.NoError(t, err)
			pcs[th.ThreadID()] = machine.Addr(regs.PC())
			frames, err := proc.ThreadStacktrace(group.Selected, th, 50)
			require.NoError(t, err)
			for _, f := range frames {
				if f.Current.Fn != nil {
					functions[f.Current.Fn.Name] = true
				}
			}
		}
		want := map[int]machine.Addr{}
		for _, th := range ours.Threads() {
			pc, err := th.Registers.Addr(ours.Arch().PC)
			require.NoError(t, err)
			want[th.ID] = pc
		}
		require.Equal(t, want, pcs)
		require.Contains(t, functions, "runtime.futex", "where idle threads wait")
		require.Contains(t, functions, "main.down", "the one in a system call has called it")
		require.NoError(t, group.Detach(false))
	}
}
