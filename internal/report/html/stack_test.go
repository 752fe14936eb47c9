package html

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestStackIsGDBs requires that the page of a core shows the same words of the stack that gdb reads from it, and that its frames end at the
// same addresses as gdb's.
func TestStackIsGDBs(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	core := livetest.Gcore(t, p)
	target, err := ptrace.OpenCore(core, ptrace.CoreOptions{})
	require.NoError(t, err)
	defer target.Close()
	v, err := deopt.Frames(target, frametest.Known(t, p))
	require.NoError(t, err)
	e, err := explain.Explain(v, explain.Question{Frame: -1})
	require.NoError(t, err)
	stack := Of(v, e, nil).Places[0].Stack
	require.Empty(t, stack.Why)
	require.Len(t, stack.Bands, 3)

	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	require.NoError(t, err)
	args := []string{"-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"}
	words, shown := 0, map[machine.Addr]string{}
	for _, b := range stack.Bands {
		// A small frame is shown whole, with a row for each word.
		require.EqualValues(t, b.Size(), 8*len(b.Words))
		args = append(args, "-ex", fmt.Sprintf("x/%dgx %v", b.Size()/8, b.Low))
		for n, w := range b.Words {
			require.Equal(t, b.Low+machine.Addr(8*n), w.Addr)
			shown[w.Addr] = w.Value
			words++
		}
	}
	args = append(args, exe, core)
	out, err := exec.Command(livetest.Tool(t, "gdb"), args...).Output()
	require.NoError(t, err)
	theirs := map[machine.Addr]string{}
	for _, line := range regexp.MustCompile(`(?m)^(0x[0-9a-f]+)(?: <[^>]*>)?:((?:\t0x[0-9a-f]+)+)$`).FindAllStringSubmatch(string(out), -1) {
		var at machine.Addr
		_, err := fmt.Sscanf(line[1], "0x%x", (*uint64)(&at))
		require.NoError(t, err)
		for n, word := range strings.Fields(line[2]) {
			value := strings.TrimLeft(strings.TrimPrefix(word, "0x"), "0")
			if value == "" {
				value = "0"
			}
			theirs[at+machine.Addr(8*n)] = "0x" + value
		}
	}
	require.Equal(t, theirs, shown)
	require.Equal(t, 1+2+16, words)
}

// TestLongFrame requires that a frame of 64 KiB is shown without the words that contain no value, with their number. Only the strip above the frame
// is to scale.
func TestLongFrame(t *testing.T) {
	module := livetest.Module(t, livetest.Prelude+`
define i64 @work(i64 %a) noinline {
  %big = alloca [8192 x i64]
  %end = getelementptr i64, ptr %big, i64 8191
  store volatile i64 7, ptr %end
  %b = add i64 %a, 11
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, ptr %big, ptr %end, i64 %b)
  %s = add i64 %r, %b
  ret i64 %s
}
`+livetest.Start)
	p := livetest.Lli(t, 19, module, "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	e, err := explain.Explain(v, explain.Question{Frame: -1})
	require.NoError(t, err)
	stack := Of(v, e, nil).Places[0].Stack
	band := stack.Bands[len(stack.Bands)-1]
	require.True(t, band.Explained)
	words, gaps := uint64(0), uint64(0)
	for _, w := range band.Words {
		if words++; w.Gap > 0 {
			words += w.Gap - 1
			gaps++
		}
	}
	require.EqualValues(t, band.Size(), 8*words, "no word is forgotten")
	require.Positive(t, gaps)
	require.Less(t, len(band.Words), 40)
	require.Greater(t, band.Size(), uint64(1<<16))
	bar := stack.Scale.Bands[len(stack.Scale.Bands)-1]
	require.InDelta(t, 1000*float64(band.Size())/float64(stack.Scale.Bytes), bar.Width, 1e-9)
	for _, mark := range stack.Scale.Marks {
		require.GreaterOrEqual(t, mark.Width, thinnest)
		require.LessOrEqual(t, mark.X+mark.Width, 1000+thinnest)
	}
}

// TestDeepStack requires that a deep recursion is shown at both ends. Each byte of its stack must be in a shown frame or be counted.
func TestDeepStack(t *testing.T) {
	module := livetest.Module(t, livetest.Prelude+`
define i64 @work(i64 %a) noinline {
  %end = icmp eq i64 %a, 0
  br i1 %end, label %stop, label %on
stop:
  %w = call i64 @wait(i64 %a)
  ret i64 %w
on:
  %b = sub i64 %a, 1
  %r = call i64 @work(i64 %b)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %a)
  %s = add i64 %r, %a
  ret i64 %s
}
`+livetest.Start)
	p := livetest.Lli(t, 19, module, "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	e, err := explain.Explain(v, explain.Question{Frame: 90})
	require.NoError(t, err)
	at := Of(v, e, nil).Places[0]
	require.Len(t, at.Stack.Bands, innerBands+1+outerBands)
	require.Equal(t, "to #66, not shown", at.Stack.Bands[innerBands].Name)
	for n, b := range at.Stack.Bands[1:] {
		require.Equal(t, at.Stack.Bands[n].High, b.Low)
	}
	last := at.Stack.Bands[len(at.Stack.Bands)-1]
	require.Equal(t, 90, last.Index)
	require.True(t, last.Explained)
}
