package unwind

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// gdbFrame is a line that testdata/frames.py prints.
type gdbFrame struct {
	Moment    int
	TID       int
	PC, CFA   string
	Name      string // name of the function; "" if gdb prints ??
	Signal    bool
	Jumped    []string // functions between this frame and the one before that left by a tail call
	Registers map[string]string
}

// stop holds gdb's report of a stopped thread, and a core of the process at that time.
type stop struct {
	want []gdbFrame
	core *core
}

// stacks compiles testdata/stacks.c and bare.c.
func stacks(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	object, program := filepath.Join(dir, "bare.o"), filepath.Join(dir, "stacks")
	livetest.Make(t, "gcc", "-O2", "-fno-optimize-sibling-calls", "-fPIE", "-c", "-o", object, "testdata/bare.c")
	livetest.Make(t, "gcc", append(flags, "-fno-optimize-sibling-calls", "-fPIE", "-pie", "-pthread", "-o", program, "testdata/stacks.c", object)...)
	return program
}

// underGDB runs a program under gdb until it traps, and returns the frames that gdb sees and a core of the process at that time.
func underGDB(t *testing.T, program string, args ...string) ([]gdbFrame, *core) {
	t.Helper()
	m := stops(t, []string{"run"}, program, args...)[0]
	return m.want, m.core
}

// stops runs a program under gdb from one stop to the next, as testdata/frames.py describes.
func stops(t *testing.T, to []string, program string, args ...string) []stop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "core")
	steps, err := json.Marshal(to)
	require.NoError(t, err)
	out := run(t, livetest.Tool(t, "gdb"), append([]string{"-nx", "-batch", "-ex", fmt.Sprintf("python core='%s'; moments=%s", path, steps),
		"-x", "testdata/frames.py", "--args", program}, args...)...)
	all := make([]stop, len(to))
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("{")) {
			var f gdbFrame
			require.NoError(t, json.Unmarshal(line, &f))
			all[f.Moment].want = append(all[f.Moment].want, f)
		}
	}
	for i := range all {
		require.NotEmpty(t, all[i].want, "moment %d: … %s", i, out[max(0, len(out)-400):])
		all[i].core = openCore(t, fmt.Sprintf("%s.%d", path, i))
	}
	return all
}

// TestGDB unwinds real stacks and compares every frame with gdb's: pc, CFA and registers. gdb shows old values for registers that a callee may
// overwrite, so only registers known here are compared. gdb has the CFI of the functions of bare.c; the unwinder does not, and reads their code.
func TestGDB(t *testing.T) {
	livetest.Slow(t)
	for b, build := range []struct {
		name  string
		flags []string
	}{
		{"O0", []string{"-O0"}},
		{"O2", []string{"-O2"}},
		{"O2 with frame pointers", []string{"-O2", "-fno-omit-frame-pointer"}},
	} {
		program := stacks(t, build.flags...)
		for w, way := range []struct {
			name    string
			least   int // minimum number of frames
			signals int
			bare    int      // frames found by reading code
			jumped  []string // functions with missing frames
		}{
			{name: "deep", least: 25},
			{name: "realigned", least: 10},
			{name: "noreturn", least: 6},
			{name: "callback", least: 10, jumped: []string{"qsort"}}, // qsort jumps to qsort_r
			{name: "thread", least: 10},
			{name: "altstack", least: 14, signals: 1},
			{name: "nested", least: 15, signals: 2},
			{name: "fault", least: 18, signals: 1},
			{name: "bare", least: 14, bare: 3},
			{name: "caught", least: 8, bare: 4},
		} {
			if livetest.Out(3, b+w) {
				continue // without FIDELITY=all, each kind of stack is tested with some of the builds
			}
			t.Run(build.name+"/"+way.name, func(t *testing.T) {
				want, core := underGDB(t, program, way.name)
				core.hide(program, "first", "second", "third", "caught")
				u := Unwinder{Arch: machine.AMD64, Memory: core, Finder: core, Executable: core.executable}
				got, end := u.framesOf(core.threads[want[0].TID])
				signals, bare := 0, 0
				var jumped []string
				for i, f := range got {
					require.Less(t, i, len(want), "frame #%d at %v is one more than gdb has", i, f.PC)
					compareFrame(t, want[i], got, i)
					if f.Skipped != 0 {
						jumped = append(jumped, core.nameOf(f.Skipped))
					}
					if f.Signal {
						signals++
					}
					if f.Rule == FromCode {
						bare++
					}
				}
				require.Equal(t, len(want), len(got), end.Reason)
				require.True(t, end.Complete, end.Reason)
				require.GreaterOrEqual(t, len(got), way.least)
				require.Equal(t, way.signals, signals)
				require.Equal(t, way.bare, bare)
				require.Equal(t, way.jumped, jumped)
				checkDeep(t, core, program, got)
			})
		}
	}
}

// TestWildJump stops at the address of a wild jump. gdb continues there, with the word at the stack pointer as the return address.
func TestWildJump(t *testing.T) {
	want, core := underGDB(t, stacks(t, "-O2"), "wild")
	u := Unwinder{Arch: machine.AMD64, Memory: core, Finder: core, Executable: core.executable}
	got, end := u.framesOf(core.threads[want[0].TID])
	require.Len(t, got, 9) // trap, deep 0 to 4, handler, trampoline, nowhere
	for i := range got[:8] {
		compareFrame(t, want[i], got, i)
	}
	last := got[8]
	require.Zero(t, last.PC)
	require.False(t, last.Return)
	require.Equal(t, want[8].Registers["rsp"], addrOf(t, last, 7))
	requireEnd(t, End{Code: frame.NoUnwindInfo, Reason: "cut short: frame #8 has no unwind information for 0x0, and no code is there: it is not in executable memory"}, end)
	require.Equal(t, end.Reason, last.NoCFA)
}

func addrOf(t *testing.T, f Frame, reg machine.DWARFReg) string { return valueOf(t, f, reg).String() }

func valueOf(t *testing.T, f Frame, reg machine.DWARFReg) machine.Addr {
	t.Helper()
	v, err := f.Registers.Addr(reg)
	require.NoError(t, err)
	return v
}

// compareFrame compares frame i of a walk with gdb's.
func compareFrame(t *testing.T, want gdbFrame, frames []Frame, i int) {
	t.Helper()
	f := frames[i]
	require.Equal(t, i, f.Index)
	require.Equal(t, want.PC, f.PC.String(), "pc of frame #%d", i)
	require.Equal(t, want.Signal, f.Signal, "frame #%d", i)
	// gdb computes no CFA for the outermost frame, and a different one for a trampoline without CFI.
	trampoline := i+1 < len(frames) && frames[i+1].Rule == FromTrampoline
	if cfa := address(t, want.CFA); cfa != 0 && !trampoline {
		require.Equal(t, cfa, f.CFA, "CFA of frame #%d", i)
		require.Empty(t, f.NoCFA)
	}
	interrupted := i > 0 && frames[i-1].Signal
	require.Equal(t, i > 0 && !interrupted, f.Return, "frame #%d", i)
	for reg := range machine.DWARFReg(16) {
		name := machine.AMD64.RegisterName(reg)
		v, err := f.Registers.Addr(reg)
		if err == nil {
			require.Equal(t, want.Registers[name], v.String(), "%s of frame #%d", name, i)
			require.True(t, i == 0 || interrupted || machine.AMD64.Preserved(reg), "%s of frame #%d", name, i)
			continue
		}
		require.False(t, i == 0 || interrupted, "%s of frame #%d: %v", name, i, err)
		require.False(t, machine.AMD64.Preserved(reg), "%s of frame #%d: %v", name, i, err)
		if !frames[i-1].Signal {
			require.EqualError(t, err, fmt.Sprintf("%s is caller-saved and frame #%d does not preserve it", name, i-1))
		}
	}
}

// checkDeep checks the numbers that the source puts in registers: in each run of activations of deep, the innermost is deep(0).
func checkDeep(t *testing.T, c *core, program string, frames []Frame) {
	t.Helper()
	deep := c.symbol(program, "deep")
	n := uint64(0)
	for _, f := range frames {
		if f.FDE.Start != deep {
			n = 0
			continue
		}
		for reg, base := range map[machine.DWARFReg]uint64{3: 0xb0000, 12: 0xc0000, 13: 0xd0000, 14: 0xe0000, 15: 0xf0000} {
			v, err := f.Registers.Uint(reg)
			require.NoError(t, err)
			require.Equal(t, base+n, v, "%s of frame #%d", machine.AMD64.RegisterName(reg), f.Index)
		}
		n++
	}
}
