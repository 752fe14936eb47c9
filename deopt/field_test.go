package deopt_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

func fieldProgram(t *testing.T, flags ...string) string {
	t.Helper()
	return livetest.CBinary(t, filepath.Join("..", "deopt", "testdata", "gdbstack", "field.c"), flags...)
}

// TestHeld unwinds stacks that a short stop does not copy completely: one that fills its mapping, with a limit below the default, and one in several
// pieces. While the process is held, the whole stack can be read. With the default limit, a short stop copies all of the first one.
func TestHeld(t *testing.T) {
	livetest.Slow(t)
	for _, test := range []struct {
		how   string
		flags []string
		bytes int // bytes of the stack that a short stop copies; 0 is the default
		brief int // minimum number of frames that a short stop shows
		all   int
		whole bool // set if a short stop with the default limit copies the whole stack
	}{
		{"overflow", nil, 512 << 10, 10, 200, true},
		{"deep", []string{"-fsplit-stack", "-fno-optimize-sibling-calls"}, 0, 3, 110, false},
	} {
		t.Run(test.how, func(t *testing.T) {
			p := quiet(t, 0, fieldProgram(t, test.flags...), test.how)
			p.Freeze(t)
			brief := viewOf(t, p, ptrace.Options{StackBytes: test.bytes}).Threads[0]
			require.False(t, brief.End.Complete)
			require.Equal(t, frame.MemoryNotCopied, brief.End.Code, brief.End.Reason)
			require.GreaterOrEqual(t, len(brief.Frames), test.brief)

			v := viewOf(t, p, ptrace.Options{Hold: true})
			s := &stackPair{tid: p.PID, view: v, ours: v.Threads[0].Frames, end: v.Threads[0].End, theirs: gdbWalks(t, p)[p.PID], lost: map[string]int{}}
			s.compare()
			require.True(t, s.end.Complete, s.end.Reason)
			require.Empty(t, s.gaps)
			require.Empty(t, s.registers)
			require.GreaterOrEqual(t, len(s.both), test.all)
			for i, f := range brief.Frames {
				require.Equal(t, s.ours[i].PC, f.PC)
			}
			usual := viewOf(t, p, ptrace.Options{}).Threads[0]
			require.Equal(t, test.whole, usual.End.Complete, usual.End.Reason)
			if test.whole {
				require.Len(t, usual.Frames, len(s.ours))
			}
		})
	}
}

// viewOf returns the frames of a process, and lets the process resume.
func viewOf(t *testing.T, p *livetest.Process, o ptrace.Options) *deopt.View {
	t.Helper()
	target, err := ptrace.Capture(p.PID, o)
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	target.Release()
	return v
}

// TestNothingButCode unwinds a program without unwind information and symbols, C library included, up to the code that the kernel started. gdb
// unwinds the same program at the same addresses with its unwind information and symbols.
func TestNothingButCode(t *testing.T) {
	program := fieldProgram(t, "-static", "-no-pie", "-fno-optimize-sibling-calls")
	bare := filepath.Join(t.TempDir(), "bare")
	out, err := exec.Command(livetest.Tool(t, "objcopy"), "--strip-all", "-R", ".eh_frame", "-R", ".eh_frame_hdr", program, bare).CombinedOutput()
	require.NoError(t, err, "%s", out)

	full := quiet(t, 0, program, "sort")
	full.Freeze(t)
	want := gdbWalks(t, full)[full.PID].frames
	p := quiet(t, 0, bare, "sort")
	p.Freeze(t)
	thread := viewOf(t, p, ptrace.Options{}).Threads[0]
	require.True(t, thread.End.Complete, thread.End.Reason)
	var got, theirs []machine.Addr
	for _, f := range thread.Frames {
		require.Zero(t, f.Physical().FDE.Start)
		require.Empty(t, f.Function)
		got = append(got, f.Physical().PC)
	}
	for _, f := range want {
		theirs = append(theirs, f.PC)
	}
	require.Equal(t, theirs, got)
	require.Contains(t, thread.End.Reason, "its process began in it")
}

// TestUnsizedSymbol requires that a function without a symbol does not get the name of the symbol before it if that symbol has no size.
func TestUnsizedSymbol(t *testing.T) {
	program := fieldProgram(t, "-static", "-no-pie", "-fno-optimize-sibling-calls")
	stripped := filepath.Join(t.TempDir(), "stripped")
	out, err := exec.Command(livetest.Tool(t, "objcopy"), "-K", "unsized", "-K", "main", "--strip-all", program, stripped).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p := quiet(t, 0, program, "sort")
	p.Freeze(t)
	whole := viewOf(t, p, ptrace.Options{}).Threads[0].Frames
	p = quiet(t, 0, stripped, "sort")
	p.Freeze(t)
	nameless := 0
	for i, f := range viewOf(t, p, ptrace.Options{}).Threads[0].Frames {
		require.Equal(t, whole[i].PC, f.PC)
		switch whole[i].Function {
		case "main":
			require.Equal(t, "main", f.Function)
		case "wait_here", "order", "sort":
			require.Empty(t, f.Function)
			nameless++
		}
	}
	require.Equal(t, 9, nameless)
}
