package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/cli/flags"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestBriefLook requires that a process continues while layouts run, and that the frames have the values to which pointers lead.
func TestBriefLook(t *testing.T) {
	p := livetest.Lli(t, 19, "vmsimple.ll", "mcjit")
	k := inputs{pid: p.PID, mute: true, Inputs: flags.Inputs{Modules: []string{p.IR}, Layouts: []string{"simple"}}}
	a := &app{stdout: os.Stdout, stderr: os.Stderr}
	_, view := briefly(t, &k, a)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	require.NoError(t, err)
	require.NotContains(t, string(stat[bytes.LastIndexByte(stat, ')'):]), " t ", "it is stopped by a tracer")
	var list []string
	for _, f := range view.Threads[0].Frames {
		if f.VM != nil {
			for _, vm := range f.VM.Frames {
				list = append(list, vm.Method)
				require.Empty(t, vm.Reason)
			}
		}
	}
	require.Equal(t, "Foo.bar Foo.main", strings.Join(list, " "))
}

// briefly builds the frames of a process without holding it, and requires that this succeeds.
func briefly(t *testing.T, k *inputs, a *app) (*ptrace.Target, *deopt.View) {
	t.Helper()
	o, err := k.options(a)
	require.NoError(t, err)
	target, view, err := k.lookBriefly(t.Context(), a, o)
	require.NoError(t, err)
	require.NotNil(t, target)
	t.Cleanup(func() { target.Close() })
	return target, view
}

// reading starts a process, and writes a layout that reads n blocks of its memory for a frame, and n more for the name of the frame's method. The
// first short stop copies none of these blocks, and each attempt finds at most 4096 more.
func reading(t *testing.T, n int) (k inputs, a *app, said func() string) {
	p := livetest.Lli(t, 19, "vmsimple.ll", "mcjit")
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
	require.NoError(t, err)
	var start, end uint64
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[heap]\n") {
			_, err = fmt.Sscanf(line, "%x-%x", &start, &end)
			require.NoError(t, err)
		}
	}
	if end-start < uint64(2*n*64) {
		t.Fatalf("the heap has %d bytes", end-start)
	}
	file := filepath.Join(t.TempDir(), "reads.star")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
def frames(site):
    print("begin")
    for k in range(%[1]d): read(%[2]d + 64 * k, "u8")
    f = frame(7, 1)
    skip(site.operands, "not read")
    return f

def method_name(m):
    for k in range(%[1]d, 2 * %[1]d): read(%[2]d + 64 * k, "u8")
    print("end")
    return "read all"
`, n, start), 0o600))
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	t.Cleanup(func() { stderr.Close() })
	said = func() string {
		text, err := os.ReadFile(stderr.Name())
		require.NoError(t, err)
		return string(text)
	}
	return inputs{pid: p.PID, mute: true, Inputs: flags.Inputs{Modules: []string{p.IR}, Layouts: []string{file}}}, &app{stdout: os.Stdout, stderr: stderr}, said
}

// methods returns the names and the errors of the methods of a view's VM frames.
func methods(view *deopt.View) (list []string) {
	for _, f := range view.Threads[0].Frames {
		if f.VM == nil {
			continue
		}
		if f.VM.Error != "" {
			list = append(list, f.VM.Error)
		}
		for _, vm := range f.VM.Frames {
			list = append(list, vm.Method+vm.Reason)
		}
	}
	return list
}

// TestBriefLookAgain requires that an attempt in which memory was missing leaves no error and no output, and that the time of its stop is counted.
func TestBriefLookAgain(t *testing.T) {
	k, a, said := reading(t, 3000)
	target, view := briefly(t, &k, a)
	require.Equal(t, []string{"read all"}, methods(view))
	require.Positive(t, k.paused)
	require.Greater(t, target.Pause, k.paused)
	lines := strings.Split(strings.TrimSpace(said()), "\n")
	require.Len(t, lines, 2, "each line once: %s", said())
	require.Contains(t, lines[0], "begin")
	require.Contains(t, lines[1], "end")
}

// TestBriefLookExhausted requires that a process is held after five attempts in which layouts read uncopied memory, and that the pause includes the
// stops of all attempts.
func TestBriefLookExhausted(t *testing.T) {
	k, a, said := reading(t, 12000)
	o, err := k.options(a)
	require.NoError(t, err)
	target, view, err := k.lookBriefly(t.Context(), a, o)
	require.NoError(t, err)
	require.Nil(t, target, "six attempts would be required")
	require.Nil(t, view)
	require.Empty(t, said())
	before := k.paused
	require.Positive(t, before)

	target, err = k.target(t.Context(), true)
	require.NoError(t, err)
	defer target.Close()
	o.VMMemory = nil
	_, view, err = framesOf(target, nil, o)
	require.NoError(t, err)
	require.Equal(t, []string{"read all"}, methods(view))
	require.Equal(t, 2, strings.Count(said(), "\n"), said())
	require.Greater(t, target.Release(), before)
	require.Greater(t, target.Pause, before)
}
