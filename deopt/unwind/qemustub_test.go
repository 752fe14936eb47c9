package unwind

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
	"reframe/ptrace"
)

// qemuWays are the arguments of testdata/qemu.c.
var qemuWays = []string{"deep", "grows", "callback", "altstack", "nested", "bare"}

// qemuBuilds are the flags that the program and the part of it without CFI are compiled with.
var qemuBuilds = []struct {
	name  string
	flags []string
	only  string // an architecture, "" for all
}{
	{"O0", []string{"-O0"}, ""},
	{"O2", []string{"-O2"}, ""},
	{"O2 signed", []string{"-O2", "-mbranch-protection=standard"}, "arm64"},
}

// qemuDifference is why a walk of ours has other frames than gdb's.
type qemuDifference struct {
	arches, ways string // "" for all
	// same is what the frames up to which both are the same have in common: 0 for all but
	// gdb's last, else a function that the first frame of ours alone comes after.
	gdbExtra bool   // gdb has one frame more, at 0
	gdbLost  bool   // gdb loses its way at a signal frame, and we do not
	ends     string // how our walk ends where it is cut short
	why      string
}

var qemuDifferences = []qemuDifference{
	{arches: "ppc64le ppc64", ways: "deep grows callback bare", gdbExtra: true,
		why: "gdb takes the zero that the outermost frame returns to for the pc of a frame"},
	{arches: "ppc64le ppc64", ways: "altstack nested", gdbLost: true,
		why: "gdb knows the kernel's signal trampoline, and QEMU's is another"},
	{arches: "arm64", ways: "bare", ends: "which does not say where its stack ends",
		why: "a frame record does not tell the CFA, and main finds its own from the stack pointer; gdb reads its prologue"},
	{arches: "s390x", ways: "bare", ends: "s390x code does not link its frames",
		why: "nothing tells the frame without CFI; gdb reads its prologue"},
}

func (d *qemuDifference) holds(arch, way string) bool {
	return (d.arches == "" || strings.Contains(" "+d.arches+" ", " "+arch+" ")) && strings.Contains(" "+d.ways+" ", " "+way+" ")
}

// qemuTally counts frames.
type qemuTally struct{ frames, same, explained, registers int }

// compareQEMU compares a walk of ours with gdb's, frame by frame.
func compareQEMU(t *testing.T, run *qemuRun, way string, got []Frame, end End, tally *qemuTally) {
	t.Helper()
	a := run.program.qemuArch
	var d qemuDifference
	for _, known := range qemuDifferences {
		if known.holds(a.Arch, way) {
			d = known
		}
	}
	want := run.frames
	if d.gdbExtra {
		require.Zero(t, want[len(want)-1].PC)
		want = want[:len(want)-1]
		tally.frames++
		tally.explained++
	}
	if d.gdbLost {
		for i, f := range want {
			if f.Function == "" {
				want = want[:i]
				break
			}
		}
		require.Less(t, len(want), len(got))
		require.True(t, got[len(want)].Signal)
		tally.frames += len(got) - len(want)
		tally.explained += len(got) - len(want)
		requireOuter(t, run, got)
	}
	if d.ends != "" {
		require.Contains(t, end.Reason, d.ends)
		require.Less(t, len(got), len(want))
		tally.frames += len(want) - len(got)
		tally.explained += len(want) - len(got)
		want = want[:len(got)]
	} else {
		require.True(t, end.Complete, end.Reason)
	}
	require.GreaterOrEqual(t, len(got), len(want), end.Reason)
	if !d.gdbLost {
		require.Len(t, got, len(want), end.Reason)
	}
	bare := false
	for i, w := range want {
		f := got[i]
		require.Equal(t, w.PC, f.PC, "pc of frame #%d", i)
		require.Equal(t, w.Signal, f.Signal, "frame #%d", i)
		bare = bare || f.Rule == FromFramePointer || f.Rule == FromBackChain
		switch {
		case f.NoCFA != "":
			require.True(t, d.ends != "" || i == len(got)-1, "frame #%d: %s", i, f.NoCFA)
		case w.CFA != 0 && !f.Signal: // of a signal frame gdb says where it lies itself, and we where what it interrupted does
			require.Equal(t, w.CFA, f.CFA, "CFA of frame #%d", i)
		}
		tally.registers += compareQEMURegisters(t, a, w, f, i == 0 || got[i-1].Signal, bare)
		tally.frames++
		tally.same++
	}
}

// compareQEMURegisters compares what we say is known of the registers of a frame with what gdb
// says, and returns how many that were.
func compareQEMURegisters(t *testing.T, a *qemuArch, want qemuFrame, f Frame, all, bare bool) int {
	t.Helper()
	known := 0
	for name, v := range want.Registers {
		reg := a.number(name)
		b, err := f.Registers.Bytes(reg)
		if err != nil {
			// After a signal frame all general ones are known; before it, and after code without
			// CFI, those are missing that nothing says anything of.
			require.True(t, bare || a.arch.Kept(reg) == 0 || a.floats[name] != 0, "%s of frame #%d: %v", name, f.Index, err)
			continue
		}
		if reg == a.arch.Link {
			// gdb shows the signature, or not, where the frame does not say.
			require.Equal(t, v&a.codeBits(), a.arch.Uint(b)&a.codeBits(), "%s of frame #%d", name, f.Index)
		} else {
			require.Equal(t, v, a.arch.Uint(b[:8]), "%s of frame #%d", name, f.Index)
		}
		known++
	}
	return known
}

func (a *qemuArch) codeBits() uint64 {
	if a.arch.Code == 0 {
		return math.MaxUint64
	}
	return a.arch.Code
}

// requireOuter says that a walk through a signal frame ends as the program began.
func requireOuter(t *testing.T, run *qemuRun, got []Frame) {
	t.Helper()
	var names []string
	for _, f := range got {
		names = append(names, strings.TrimPrefix(run.program.function(t, f.lookup()), "."))
	}
	require.Contains(t, strings.Join(names, " "), "main __libc_start_call_main")
}

// function names the function of the program that addr lies in.
func (p *qemuProgram) function(t *testing.T, addr machine.Addr) string {
	t.Helper()
	symbols, err := p.image.Symbols()
	require.NoError(t, err)
	for _, s := range symbols {
		if s.Value <= uint64(addr) && uint64(addr) < s.Value+s.Size {
			return s.Name
		}
	}
	return ""
}

// checkDeepQEMU checks the numbers that the source puts into registers: in runs of activations of
// deep, the innermost is deep(0).
func checkDeepQEMU(t *testing.T, run *qemuRun, got []Frame) int {
	t.Helper()
	a, n, seen := run.program.qemuArch, 0, 0
	for i, f := range got {
		if i >= len(run.frames) || !strings.HasSuffix(run.frames[i].Function, "deep") {
			n = 0
			continue
		}
		for k, want := range []uint64{0xa0000 + uint64(n), 0xb0000 + uint64(n), math.Float64bits(1000.5 + float64(n)), math.Float64bits(2000.25 + float64(n))} {
			b, err := f.Registers.Bytes(a.number(a.deep[k]))
			require.NoError(t, err)
			require.Equal(t, want, a.arch.Uint(b[:8]), "%s of frame #%d", a.deep[k], i)
		}
		n++
		seen++
	}
	return seen
}

// TestQEMU compares every frame with gdb's: of programs that QEMU's user mode runs, once from
// what gdb reads of them through QEMU's stub, and once from the core that QEMU writes.
func TestQEMU(t *testing.T) {
	for _, a := range qemuArches(t) {
		t.Run(a.Arch, func(t *testing.T) {
			var stub, core qemuTally
			deep := 0
			for _, build := range qemuBuilds {
				if build.only != "" && build.only != a.Arch {
					continue
				}
				p := buildQEMU(t, a, []string{"-fno-omit-frame-pointer"}, build.flags...)
				for _, way := range qemuWays {
					t.Run(build.name+"/"+way, func(t *testing.T) {
						run := p.underStub(t, way)
						u := run.unwinder()
						got, end := u.Unwind(run.regs)
						compareQEMU(t, run, way, got, end, &stub)
						deep += checkDeepQEMU(t, run, got)
						if !a.WritesCores() {
							return
						}
						u, regs := p.fromCore(t, p.Core(t, p.path, way))
						got, end = u.Unwind(regs)
						compareQEMU(t, run, way, got, end, &core)
					})
				}
			}
			for name, tally := range map[string]*qemuTally{"stub": &stub, "core": &core} {
				if tally.frames > 0 {
					t.Logf("%s: %d of %d frames are gdb's (%.1f %%), %d differ as explained, %d registers are the same",
						name, tally.same, tally.frames, 100*float64(tally.same)/float64(tally.frames), tally.explained, tally.registers)
				}
				require.Equal(t, tally.frames, tally.same+tally.explained)
			}
			require.Greater(t, stub.same, 100)
			require.Greater(t, deep, 60)
			require.Equal(t, a.WritesCores(), core.same > 0)
		})
	}
}

// fromCore is the unwinder for a core that QEMU wrote, and the registers of its thread.
func (p *qemuProgram) fromCore(t *testing.T, path string) (Unwinder, *machine.Registers) {
	t.Helper()
	target, err := ptrace.OpenCore(path, ptrace.CoreOptions{Exe: p.path})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	require.Same(t, p.arch, target.Arch())
	require.Len(t, target.Threads(), 1)
	require.NotNil(t, target.Threads()[0].Registers, target.Threads()[0].Missing)
	return Unwinder{Arch: p.arch, Memory: target, Finder: p, Executable: func(addr machine.Addr) bool {
		m, ok := target.Mapping(addr)
		return ok && m.Exec
	}}, target.Threads()[0].Registers
}
