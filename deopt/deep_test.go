package deopt_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestDeepStacks requires that both ends of a deep stack are shown, and the frames between are counted. The numbers are those of eu-stack, which
// lists all frames. A frame in the middle is shown if it is chosen.
func TestDeepStacks(t *testing.T) {
	livetest.Slow(t)
	for _, depth := range []string{"100000", "-1"} {
		p := livetest.C(t, "deep.c", nil, depth)
		target, err := ptrace.Capture(p.PID, ptrace.Options{})
		require.NoError(t, err)
		defer target.Close()
		listed := euStack(t, p.PID)
		names := strings.Fields(listed[len(listed)-1]) // "#100006 0x0000000000401075 _start"
		last, err := strconv.Atoi(strings.TrimPrefix(names[0], "#"))
		require.NoError(t, err)
		require.Equal(t, "_start", names[2])
		if depth == "100000" {
			require.Equal(t, 100006, last) // pause, wait_here, 100001 of recurse, main, two of libc, _start
		} else {
			require.Greater(t, last, 100000)
		}

		v, err := deopt.Frames(target, deopt.Options{})
		require.NoError(t, err)
		thread := v.Threads[0]
		require.True(t, thread.End.Complete, thread.End.Reason)
		require.Equal(t, last+1, thread.Total)
		require.Len(t, thread.Frames, 512)
		require.Equal(t, 255, thread.Frames[255].Index)
		require.Equal(t, last-255, thread.Frames[256].Index)
		require.Equal(t, "_start", thread.Frames[511].Function)
		report := v.Report().Threads[0]
		require.Equal(t, last+1, report.Total)
		require.Len(t, report.Omitted, 1)
		o := report.Omitted[0]
		require.Equal(t, []int{256, last + 1 - 512}, []int{o.From, o.Count})
		require.Len(t, o.PCs, 1)
		require.Equal(t, []any{"recurse", o.Count, thread.Frames[255].PC, thread.Frames[255].Offset}, []any{o.PCs[0].Function, o.PCs[0].Count, o.PCs[0].PC, o.PCs[0].Offset})

		for number, want := range map[int]string{600: "recurse", 50000: "recurse", deopt.Outermost(1): "_start", deopt.Outermost(2): "__libc_start_main", deopt.Outermost(1000): "recurse"} {
			c := deopt.Choice{Frame: number}
			v, err := deopt.Frames(target, deopt.Options{Depth: c.Depth()})
			require.NoError(t, err)
			v.Keep(c)
			require.Len(t, v.Threads[0].Frames, 1, "%d", number)
			f := v.Threads[0].Frames[0]
			require.Contains(t, f.Function, want)
			fields := strings.Fields(listed[f.Index])
			pc, err := strconv.ParseUint(fields[1], 0, 64)
			require.NoError(t, err)
			require.Equal(t, []any{fmt.Sprintf("#%d", f.Index), frame.HexOf(pc)}, []any{fields[0], f.PC})
			if number >= 0 {
				require.Equal(t, number, f.Index)
			} else {
				require.Equal(t, last+2+number, f.Index)
			}
		}

		// Each kept frame equals the frame of a walk that keeps all frames.
		whole, err := deopt.Frames(target, deopt.Options{Depth: unwind.Depth{Inner: 600, Outer: 600}})
		require.NoError(t, err)
		byIndex := map[int]*frame.Frame{}
		for _, f := range whole.Threads[0].Frames {
			byIndex[f.Index] = &f.Frame
		}
		for _, f := range thread.Frames {
			require.Equal(t, byIndex[f.Index], &f.Frame)
		}
	}
}

// euStack returns all frames of a process's only thread, as eu-stack lists them.
func euStack(t *testing.T, pid int) (lines []string) {
	out, _ := exec.Command(livetest.Tool(t, "eu-stack"), "-n", "0", "-p", fmt.Sprint(pid)).Output() // its status is 1 if a frame has no CFI
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	require.NotEmpty(t, lines)
	return lines
}
