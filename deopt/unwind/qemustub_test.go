package unwind

import (
	"debug/elf"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// qemuWays are the arguments of testdata/qemu.c.
var qemuWays = []string{"deep", "grows", "callback", "altstack", "nested", "bare"}

// qemuBuilds lists the flags for the program and for its part without CFI.
var qemuBuilds = []struct {
	name  string
	flags []string
	only  string // the only architecture to build for, "" for all
}{
	{"O0", []string{"-O0"}, ""},
	{"O2", []string{"-O2"}, ""},
	{"signed", []string{"-O2", "-mbranch-protection=standard"}, "arm64"},
	{"z9", []string{"-O2", "-march=z9-109"}, "s390x"}, // z9 cannot move general registers to others
}

// qemuDifference is a known reason why the walk under test and gdb find different frames.
type qemuDifference struct {
	arches, builds, ways string // "" for all
	core                 bool   // applies to the core, not to gdb's memory
	gdbExtra             bool   // gdb has one more frame, with pc 0
	gdbLost              bool   // gdb loses the stack, and the walk does not
	ends                 string // part of the reason if the walk is cut short
	why                  string
}

var qemuDifferences = []qemuDifference{
	{arches: "ppc64le ppc64", gdbExtra: true,
		why: "gdb takes the zero that the outermost frame returns to for the pc of a frame"},
	{arches: "ppc64le ppc64", ways: "altstack nested", gdbLost: true,
		why: "gdb knows the kernel's signal trampoline, and QEMU's is another"},
	{arches: "ppc64le ppc64", builds: "O0", ways: "bare", ends: "which does not give the place where r31 was saved",
		why: "a back chain does not tell where registers were saved, and main finds its frame by r31; gdb reads the prologue"},
	{arches: "arm64", ways: "bare", ends: "which does not say where its stack ends",
		why: "a frame record does not tell the CFA, and main finds its own from the stack pointer; gdb reads the prologue"},
	{arches: "arm64", builds: "signed", gdbLost: true,
		why: "QEMU 7.2 does not tell gdb which bits of an address are a signature"},
	{arches: "arm64", builds: "signed", ways: "bare", ends: "which does not say where its stack ends", gdbLost: true,
		why: "both"},
	{arches: "riscv64", builds: "O2", ways: "bare", gdbLost: true,
		why: "gdb reads the prologue of code without CFI, and takes that of a function wrongly that keeps a frame pointer"},
	{arches: "s390x", ways: "bare", ends: "s390x code does not link its frames",
		why: "nothing tells the frame of code without CFI; gdb reads its prologue"},
	{arches: "s390x", ways: "nested", gdbLost: true,
		why: "gdb 13 tells the frame of a handler with SA_SIGINFO by a trampoline on the stack, and QEMU's is elsewhere"},
	{arches: "s390x", builds: "O0", ways: "altstack", gdbLost: true,
		why: "what the signal interrupted keeps its caller's frame pointer in f2, and gdb applies no CFI to that"},
	{arches: "s390x", builds: "O0", core: true, ends: "f2: not in the core",
		why: "the innermost function keeps its caller's frame pointer in f2, and QEMU's cores have no floating-point registers"},
}

// difference returns the last listed difference for a walk, or none.
func difference(arch, build, way string, core bool) (d qemuDifference) {
	in := func(list, word string) bool {
		return list == "" || slices.Contains(strings.Fields(list), word)
	}
	for _, known := range qemuDifferences {
		if in(known.arches, arch) && in(known.builds, build) && in(known.ways, way) && (core || !known.core) {
			d = known
		}
	}
	d.core = core
	return d
}

// qemuTally counts the compared frames and registers.
type qemuTally struct {
	frames, same int // all frames, and those equal to gdb's
	found, not   int // numbers of frames found only by this package, and only by gdb, for a listed reason
	registers    int // number of equal registers
}

// compareQEMU compares a walk with gdb's frames, one by one.
func compareQEMU(t *testing.T, run *qemuRun, d qemuDifference, got []Frame, end End, tally *qemuTally) {
	t.Helper()
	a, want := run.program.qemuArch, run.frames
	explain := func(count *int, frames int) {
		require.Positive(t, frames)
		tally.frames += frames
		*count += frames
	}
	if d.gdbExtra {
		require.Zero(t, want[len(want)-1].PC)
		want = want[:len(want)-1]
		explain(&tally.found, 1) // walks without such a difference
	}
	if d.gdbLost {
		same := 0
		for same < min(len(want), len(got)) && want[same].PC == got[same].PC && want[same].Signal == got[same].Signal {
			same++
		}
		want = want[:same]
		explain(&tally.found, len(got)-same)
	}
	if d.ends != "" {
		require.Contains(t, end.Reason, d.ends)
		if !d.gdbLost {
			explain(&tally.not, len(want)-len(got))
			want = want[:len(got)]
		}
	} else {
		require.True(t, end.Complete, end.Reason)
		requireOuter(t, run, got)
	}
	if d.gdbLost {
		require.Greater(t, len(got), len(want))
	} else {
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
		case w.CFA != 0 && !f.Signal: // for a signal frame, gdb reports the frame's own CFA, and unwind reports that of the interrupted frame
			require.Equal(t, w.CFA, f.CFA, "CFA of frame #%d", i)
		}
		tally.registers += compareQEMURegisters(t, a, w, f, d, bare)
		tally.frames++
		tally.same++
	}
}

// compareQEMURegisters compares the registers of a frame that are known here with gdb's, and returns their number.
func compareQEMURegisters(t *testing.T, a *qemuArch, want qemuFrame, f Frame, d qemuDifference, bare bool) int {
	t.Helper()
	known := 0
	for name, v := range want.Registers {
		reg := a.number(name)
		kept := a.arch.Kept(reg) > 0
		switch {
		case d.core && !kept:
			continue // differs between runs, like the stack protector's random number
		case a.arch == machine.S390X && a.floats[name] != 0 && f.Index > 0:
			// gdb 13 confuses the numbers of floating-point registers with those of vector registers, and does not apply CFI to these. checkDeepQEMU
			// checks them.
			continue
		}
		b, err := f.Registers.Bytes(reg)
		if err != nil {
			lost := d.core && (a.floats[name] != 0 || strings.Contains(err.Error(), "not in the core"))
			require.True(t, bare || !kept || lost, "%s of frame #%d: %v", name, f.Index, err)
			continue
		}
		if reg == a.arch.Link {
			// Compare without the signature: gdb shows it if the CFI does not say whether the address is signed.
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

// requireOuter requires that a walk through a signal frame ends with the frames of the program's startup code.
func requireOuter(t *testing.T, run *qemuRun, got []Frame) {
	t.Helper()
	var names []string
	for _, f := range got {
		names = append(names, run.program.function(t, f.lookup()))
	}
	require.Contains(t, strings.Join(names, " "), "main __libc_start_call_main")
}

// function returns the name of the program's function at addr. Under ELFv1 the address of a function is that of its descriptor in .opd, which starts
// with the address of its code.
func (p *qemuProgram) function(t *testing.T, addr machine.Addr) string {
	t.Helper()
	symbols, err := p.image.Symbols()
	require.NoError(t, err)
	var descriptors []byte
	opd := p.image.Section(".opd")
	if opd != nil {
		descriptors, err = opd.Data()
		require.NoError(t, err)
	}
	for _, s := range symbols {
		if opd != nil && s.Value >= opd.Addr && s.Value+8 <= opd.Addr+opd.Size {
			s.Value = p.arch.Uint(descriptors[s.Value-opd.Addr:][:8])
		}
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= uint64(addr) && uint64(addr) < s.Value+s.Size {
			return s.Name
		}
	}
	return ""
}

// checkDeepQEMU checks the numbers that the source puts in registers: in each run of activations of deep, the innermost is deep(0). Without floats
// the other registers are unknown. It returns the number of activations.
func checkDeepQEMU(t *testing.T, run *qemuRun, got []Frame, floats bool) int {
	t.Helper()
	a, n, seen := run.program.qemuArch, 0, 0
	for i, f := range got {
		if run.program.function(t, f.lookup()) != "deep" {
			n = 0
			continue
		}
		for k, want := range []uint64{0xa0000 + uint64(n), 0xb0000 + uint64(n), math.Float64bits(1000.5 + float64(n)), math.Float64bits(2000.25 + float64(n))} {
			b, err := f.Registers.Bytes(a.number(a.deep[k]))
			if err != nil && k > 1 && !floats {
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, a.arch.Uint(b[:8]), "%s of frame #%d", a.deep[k], i)
		}
		n++
		seen++
	}
	return seen
}

// TestQEMU compares every frame with gdb's for programs under QEMU's user mode: once from the memory that gdb reads through QEMU's stub, and once
// from the core that QEMU writes.
func TestQEMU(t *testing.T) {
	livetest.Slow(t)
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
					if way != "deep" && !livetest.Share(8, a.Arch, build.name, way) {
						continue
					}
					t.Run(build.name+"/"+way, func(t *testing.T) {
						run := p.underStub(t, way)
						u := run.unwinder()
						got, end := u.framesOf(run.regs)
						compareQEMU(t, run, difference(a.Arch, build.name, way, false), got, end, &stub)
						deep += checkDeepQEMU(t, run, got, true)
						if !a.WritesCores() {
							return
						}
						u, regs := p.fromCore(t, p.Core(t, p.path, way))
						got, end = u.framesOf(regs)
						compareQEMU(t, run, difference(a.Arch, build.name, way, true), got, end, &core)
						checkDeepQEMU(t, run, got, false)
					})
				}
			}
			for name, tally := range map[string]*qemuTally{"stub": &stub, "core": &core} {
				if tally.frames > 0 {
					t.Logf("%s: %d of %d frames are gdb's (%.1f %%), %d are where gdb is wrong or lost, %d we do not find; %d registers are the same",
						name, tally.same, tally.frames, 100*float64(tally.same)/float64(tally.frames), tally.found, tally.not, tally.registers)
				}
				require.Equal(t, tally.frames, tally.same+tally.found+tally.not)
			}
			require.GreaterOrEqual(t, deep, 40)
			require.Equal(t, a.WritesCores(), core.same > 0)
		})
	}
}

// fromCore returns an unwinder for a core that QEMU wrote, and the registers of its thread.
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
