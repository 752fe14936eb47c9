package deopt_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// arm64Ways returns the view of the program of testdata/arm64ways, which has crashed.
func arm64Ways(t *testing.T, entry, pointer, number string) *deopt.View {
	t.Helper()
	v, err := deopt.Frames(arm64WaysCore(t, entry, pointer, number), deopt.Options{})
	require.NoError(t, err)
	return v
}

// arm64WaysCore returns the core of that program.
func arm64WaysCore(t *testing.T, entry, pointer, number string) *ptrace.Target {
	t.Helper()
	at := slices.IndexFunc(livetest.Crosses, func(c livetest.Cross) bool { return c.Arch == "arm64" })
	cross := livetest.Crosses[at]
	object := livetest.Object(t, 19, mustAbs(t, "testdata/arm64ways/f.ll"), "-O2", "-relocation-model=pic")
	flags := []string{"-O1", "-nostdlib", "-static", "-fno-omit-frame-pointer", "-fasynchronous-unwind-tables", "-Wl,-z,separate-code",
		"-DENTRY=" + entry, "-DPOINTER=" + pointer, "-DNUMBER=" + number, object}
	program := cross.Build(t, flags, mustAbs(t, "testdata/arm64ways/host.c"))
	core, err := ptrace.OpenCore(cross.Core(t, program), ptrace.CoreOptions{Exe: program})
	require.NoError(t, err)
	t.Cleanup(func() { core.Close() })
	return core
}

// TestSearchBudgetInJSON requires that the JSON of a stack that was cut short has the code of the reason.
func TestSearchBudgetInJSON(t *testing.T) {
	core := arm64WaysCore(t, "pointer", "h", "1")
	v, err := deopt.New(core, deopt.Options{})
	require.NoError(t, err)
	v.Unwinder().MaxSearched = 1
	thread, err := v.ThreadOf(core.Threads()[0])
	require.NoError(t, err)
	v.Threads = append(v.Threads, thread)
	text, err := json.Marshal(v.Report())
	require.NoError(t, err)
	require.Contains(t, string(text), `"end_code":"search-budget"`)
	require.Contains(t, thread.End.Reason, "ended at its limit of 1 instructions")
}

// TestTwoWaysToALinkLoser requires that a stub that has lost the link register has no certain caller if a second call may have led to it. That
// call goes through a register, in the same function or in one with an equal frame.
func TestTwoWaysToALinkLoser(t *testing.T) {
	for _, way := range [][]string{{"pointer", "f", "0"}, {"pointer", "f", "1"}, {"f", "f", "0"}, {"f", "f", "1"}, {"pointer", "g", "1"}} {
		v := arm64Ways(t, way[0], way[1], way[2])
		require.Equal(t, []string{"boom registers", "stub cfi"}, certainFrames(v, "boom", "stub", "f", "g", "run", "start"), "%v", way)
	}
}

// TestOnlyWayToALinkLoser requires that the caller of a stub that has lost the link register is certain if no other branch of the program agrees
// with the stack. The caller itself was entered through a pointer. The function run keeps a number in a register that it has loaded from memory,
// and that memory has changed since.
func TestOnlyWayToALinkLoser(t *testing.T) {
	v := arm64Ways(t, "pointer", "h", "1")
	require.Equal(t, []string{"boom registers", "stub cfi", "h code", "run cfi", "start cfi"}, certainFrames(v, "boom", "stub", "h", "run", "start"))
	at := slices.IndexFunc(v.Threads[0].Frames, func(f *deopt.Frame) bool { return f.Function == "h" })
	require.NotNil(t, v.Threads[0].Frames[at].Record)
	require.Equal(t, uint64(10), uint64(v.Threads[0].Frames[at].Record.ID))
}

// TestLinkLoserCalledByAnother requires that no caller is certain if a function without a frame has called the stub: the call has overwritten the
// function's own return address.
func TestLinkLoserCalledByAnother(t *testing.T) {
	v := arm64Ways(t, "k", "f", "1")
	require.Equal(t, []string{"boom registers", "stub cfi"}, certainFrames(v, "boom", "stub", "outer", "k", "run", "start"))
}
