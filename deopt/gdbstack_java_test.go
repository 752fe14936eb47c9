package deopt_test

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

var (
	javaThread = regexp.MustCompile(`(?m)^"([^"]+)" .* nid=(0x[0-9a-f]+) `)
	javaFrame  = regexp.MustCompile(`(?m)^\tat `)
)

// javaDump makes a Java process print its stacks. It returns the number of Java frames of each thread by thread number, and the thread numbers by
// name.
func javaDump(t *testing.T, p *livetest.Process) (frames map[int]int, ids map[string]int) {
	t.Helper()
	seen := len(p.Output())
	p.Signal(t, syscall.SIGQUIT)
	const last = "JNI global refs" // begins the part of the dump after the threads' stacks
	require.Eventually(t, func() bool { return strings.Contains(p.Output()[seen:], last) }, livetest.Patience, 10*time.Millisecond)
	text := p.Output()[seen:]
	frames, ids = map[int]int{}, map[string]int{}
	heads := javaThread.FindAllStringSubmatchIndex(text, -1)
	for i, at := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		id, err := strconv.ParseInt(text[at[4]:at[5]], 0, 32)
		require.NoError(t, err)
		frames[int(id)] = len(javaFrame.FindAllString(text[at[0]:end], -1))
		ids[text[at[2]:at[3]]] = int(id)
	}
	return frames, ids
}

// TestJavaStacks counts frames like the Java virtual machine. gdb's stack ends at the first Java frame. An interpreted method has one physical
// frame. A compiled method shares its frame with the methods inlined into it, and the frame may be missing if the frame pointer skips it. A call
// from native code into Java has one more frame, of the stub that changes the calling convention.
func TestJavaStacks(t *testing.T) {
	livetest.Slow(t)
	p := java(t)
	want, ids := javaDump(t, p)
	p.Quiet(t, 1)
	p.Freeze(t)
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	got, ends := map[int]int{}, map[int]unwind.End{}
	for _, thread := range v.Threads {
		if want[thread.ID] == 0 {
			continue // the thread runs no Java code
		}
		for _, f := range thread.Frames {
			if f.Module == "" {
				got[thread.ID]++
			}
		}
		ends[thread.ID] = thread.End
	}
	for _, name := range []string{"cold", "Finalizer", "Common-Cleaner", "Reference Handler"} {
		id := ids[name]
		require.Equal(t, want[id]+1, got[id], "interpreted frames of %q and the stub", name)
		require.True(t, ends[id].Complete, ends[id].Reason)
	}
	require.Equal(t, 16, want[ids["cold"]])
	for _, name := range []string{"sleep", "wait", "park", "spin"} {
		id := ids[name]
		require.LessOrEqual(t, got[id], want[id]+1, "frames of %q and the stub", name)
		require.Greater(t, got[id], 1)
	}
}
