package deopt_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// outline holds the properties of a frame that two runs of one program share, at any load address.
type outline struct {
	native string            // function and offset, for code with a file
	size   machine.Addr      // distance from the CFA of the callee's frame
	values map[string]uint64 // values of registers that are not addresses
}

func outlineOf(frames []*deopt.Frame, i int) outline {
	f := frames[i]
	o := outline{values: map[string]uint64{}}
	if !generated(f) {
		o.native = f.Module
		if f.Offset != nil { // it has a symbol
			o.native = fmt.Sprintf("%s+%d", f.Function, *f.Offset)
		}
	}
	if f.Physical().NoCFA == "" {
		o.size = f.Physical().CFA - frames[i-1].Physical().CFA
	}
	for _, reg := range calleeSaved {
		const lowest = 1 << 16 // addresses are not lower (vm.mmap_min_addr)
		if v, err := f.Physical().Registers.Uint(reg); err == nil && v < lowest {
			o.values[machine.AMD64.RegisterName(reg)] = v
		}
	}
	return o
}

// generated reports whether the code of a frame has no file.
func generated(f *deopt.Frame) bool { return !strings.HasPrefix(f.Module, "/") }

// split returns the range of the frames of generated code, and the frame of main.
func split(t *testing.T, frames []*deopt.Frame) (begin, end, main int) {
	t.Helper()
	begin = slices.IndexFunc(frames, generated)
	require.GreaterOrEqual(t, begin, 0)
	end = begin + slices.IndexFunc(frames[begin:], func(f *deopt.Frame) bool { return !generated(f) })
	main = end + slices.IndexFunc(frames[end:], func(f *deopt.Frame) bool { return f.Function == "main" })
	require.Greater(t, end, begin)
	require.GreaterOrEqual(t, main, end)
	return begin, end, main
}

// mainThread captures a stopped process and returns the frames of its main thread, whose stack must be complete.
func mainThread(t *testing.T, p *livetest.Process) []*deopt.Frame {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, deopt.Options{Thread: p.PID})
	require.NoError(t, err)
	require.True(t, v.Threads[0].End.Complete, v.Threads[0].End.Reason)
	return v.Threads[0].Frames
}

// registered unwinds a process whose JIT registered its code. gdb must agree on all frames.
func registered(t *testing.T, p *livetest.Process) []*deopt.Frame {
	t.Helper()
	pair := captured(t, p)[0]
	require.Equal(t, p.PID, pair.tid)
	require.Empty(t, pair.gaps)
	require.Empty(t, pair.registers)
	return pair.ours
}

// sameOutlines requires that two runs have the same frames of generated code, except for the innermost of each. It also requires that the caller of
// these frames and the frames from main on are equal. It returns the numbers of frames of generated code.
func sameOutlines(t *testing.T, want, got []*deopt.Frame) (gotJIT, wantJIT int) {
	t.Helper()
	wantBegin, wantEnd, wantMain := split(t, want)
	begin, end, main := split(t, got)
	for i := 0; i < min(wantEnd-wantBegin, end-begin); i++ {
		w, g := outlineOf(want, wantEnd-i), outlineOf(got, end-i)
		at := fmt.Sprintf("frame #%d of %d", end-i, len(got))
		require.Equal(t, w.native, g.native, at)
		require.Equal(t, w.size, g.size, at)
		for name, v := range g.values {
			if x, ok := w.values[name]; ok {
				require.Equal(t, x, v, "%s of %s", name, at)
			}
		}
	}
	require.Len(t, got[main:], len(want[wantMain:]))
	for i := range want[wantMain:] {
		require.Equal(t, outlineOf(want, wantMain+i).native, outlineOf(got, main+i).native)
	}
	return end - begin, wantEnd - wantBegin
}

// unregistered lists JITs of LLVM 14 that do not register their code with debuggers. Each entry also has a JIT that registers its code and runs
// the same program.
var unregistered = []struct {
	name            string
	silent, telling func(t *testing.T) *livetest.Process
	jit             int // frames of JIT code
}{
	{"LLJIT",
		func(t *testing.T) *livetest.Process { return livetest.Host(t, 14, "orc", "block") },
		func(t *testing.T) *livetest.Process { return livetest.Host(t, 14, "orcgdb", "block") }, 1},
	{"lli", jitted(14, "orc-jitlink"), jitted(14, "orc"), 10},
}

// TestUnregisteredJIT unwinds through unknown code. gdb shows ?? for the first frame of that code, and then wrong frames. The frames here must be
// those of the same program in a JIT that registered it.
func TestUnregisteredJIT(t *testing.T) {
	livetest.Slow(t)
	for _, test := range unregistered {
		t.Run(test.name, func(t *testing.T) {
			want := registered(t, test.telling(t))
			p := test.silent(t)
			pair := captured(t, p)[0]
			require.Equal(t, p.PID, pair.tid)
			require.True(t, pair.end.Complete, pair.end.Reason)
			got := pair.ours
			gotJIT, wantJIT := sameOutlines(t, want, got)
			require.Equal(t, test.jit, wantJIT)
			require.Equal(t, test.jit, gotJIT)
			for i, f := range got {
				require.NotEmpty(t, f.Rule)
				require.Empty(t, f.Physical().Guess, "frame #%d", i)
				if generated(f) {
					require.Zero(t, f.Physical().FDE.Start, "it has no CFI")
				}
			}

			first, _, _ := split(t, got)
			theirs := pair.theirs.frames
			require.Equal(t, got[first].Physical().PC, theirs[first].PC)
			require.Empty(t, theirs[first].Function, "gdb prints ??")
			for _, at := range pair.both {
				require.LessOrEqual(t, at[0], first, "gdb knows frame #%d", at[0])
			}
			for _, f := range theirs {
				require.NotEqual(t, "main", f.Function)
			}
		})
	}
}

// TestInsideUnregisteredJIT requires the frames of the registered program at any pc in unregistered code: in a loop, and in a function that the loop
// calls, also in its prologue or epilogue.
func TestInsideUnregisteredJIT(t *testing.T) {
	livetest.Slow(t)
	want := registered(t, jitted(14, "orc")(t))
	p := livetest.Program(t, livetest.LLVM(t, 14, "lli"), "-opaque-pointers", "-jit-kind=orc", "-jit-linker=jitlink", programSource(t, "stack.ll"), "compute", "please")
	places := map[machine.Addr]bool{}
	for n := range 20 {
		p.FreezeAfter(t, n+1)
		got := mainThread(t, p)
		p.Signal(t, syscall.SIGCONT)
		gotJIT, wantJIT := sameOutlines(t, want, got)
		require.Contains(t, []int{wantJIT, wantJIT + 1}, gotJIT, "@leaf may be running")
		places[got[0].Physical().PC] = true
	}
	require.GreaterOrEqual(t, len(places), 4)
}
