package ptrace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// ways returns the functions that write a core of a process, and their names. The kernel's core is written last, because it ends the process.
func ways(t *testing.T, p *livetest.Process) map[string]func() string {
	t.Helper()
	return map[string]func() string{
		"1 gcore":     func() string { return livetest.Gcore(t, p) },
		"2 gcore all": func() string { return livetest.Gcore(t, p, "use-coredump-filter off", "dump-excluded-mappings on") },
		"2 own":       func() string { return ownCore(t, p) },
		"3 kernel": func() string {
			path, can := livetest.KernelCore(t, p)
			if !can {
				t.Log("this kernel hands its cores to a program: gdb's stands for it")
				return livetest.Gcore(t, p)
			}
			return path
		},
	}
}

func inOrder(m map[string]func() string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func openCore(t testing.TB, path string) *Target {
	t.Helper()
	target, err := OpenCore(path, CoreOptions{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return target
}

func survey(t testing.TB, pid int) *Target {
	t.Helper()
	target, err := Survey(pid, Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return target
}

// objects returns the bytes of all registered objects, read from the memory of the process or core.
func objects(t testing.TB, target *Target) [][]byte {
	t.Helper()
	var all [][]byte
	for _, r := range target.Registries {
		for _, e := range r.Entries {
			require.NotNil(t, e.Image(), e.Bad)
			b := make([]byte, e.Size)
			require.NoError(t, target.ReadMemory(b, e.Start))
			all = append(all, b)
		}
	}
	return all
}

// requireSame requires that a core has the same contents as the process.
func requireSame(t *testing.T, live, core *Target, liveObjects [][]byte) {
	t.Helper()
	type module struct {
		path       string
		bias       machine.Addr
		image      bool
		maps       []byte
		unverified string
	}
	modules := func(target *Target) (list []module) {
		for _, m := range target.Modules {
			row := module{path: m.Path, maps: m.StackMaps, unverified: m.Unverified}
			if m.Image != nil {
				row.image, row.bias = true, m.Image.Bias
			}
			require.Empty(t, m.MapsWhy)
			list = append(list, row)
		}
		return list
	}
	require.Equal(t, modules(live), modules(core))
	require.Equal(t, live.PID, core.PID)
	require.Empty(t, core.Notes)
	require.Len(t, core.Registries, len(live.Registries))
	for i, want := range live.Registries {
		got := core.Registries[i]
		require.Equal(t, []any{want.Descriptor, want.Module, want.Broken, want.head}, []any{got.Descriptor, got.Module, got.Broken, got.head})
		require.Len(t, got.Entries, len(want.Entries))
		for n, e := range want.Entries {
			g := got.Entries[n]
			require.Equal(t, []any{e.Addr, e.Start, e.Size, e.Bad, len(e.code)}, []any{g.Addr, g.Start, g.Size, g.Bad, len(g.code)})
		}
	}
	require.Equal(t, liveObjects, objects(t, core))
	require.Equal(t, []any{live.Scanned, live.ScanCut, live.HasJITCode()}, []any{core.Scanned, core.ScanCut, core.HasJITCode()})
	require.Equal(t, live.Found, core.Found)
	require.NotEmpty(t, core.Threads())
	require.Same(t, machine.AMD64, core.Arch())
}

// TestCoreOfLli requires that a core has the same registered objects as the process.
func TestCoreOfLli(t *testing.T) {
	livetest.Slow(t)
	for version, program := range map[int]string{14: "jit_pp.ll", 19: "jit_sp.ll", 22: "jit_sp.ll"} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			p := livetest.Lli(t, version, program, "mcjit")
			live := survey(t, p.PID)
			bytes := objects(t, live)
			require.NotEmpty(t, bytes)
			all := ways(t, p)
			for _, name := range inOrder(all) {
				if name == "2 gcore all" || version != 19 && name == "3 kernel" {
					continue // each of these cores has a hundred megabytes
				}
				core := openCore(t, all[name]())
				requireSame(t, live, core, bytes)
				require.Contains(t, core.Command, fmt.Sprintf("lli-%d", version))
			}
		})
	}
}

// TestCoreOfUnregistered requires that a core without registered objects is searched for stack maps, in the same way as a process.
func TestCoreOfUnregistered(t *testing.T) {
	livetest.Slow(t)
	p := livetest.Host(t, 14, "orcrt", "block")
	live := survey(t, p.PID)
	require.NotEmpty(t, live.Found)
	all := ways(t, p)
	for _, name := range inOrder(all) {
		requireSame(t, live, openCore(t, all[name]()), nil)
	}
}

// TestCoreOfLinked requires the stack maps of code that was compiled ahead of time. If the dynamic linker relocated the section, its bytes are in the
// core, otherwise in the file.
func TestCoreOfLinked(t *testing.T) {
	livetest.Slow(t)
	for flag, inCore := range map[string]bool{"-pie": true, "-no-pie": false} {
		t.Run(flag, func(t *testing.T) {
			p := livetest.Linked(t, 19, "deoptimize.ll", flag)
			live := survey(t, p.PID)
			own := live.Modules[0]
			require.NotEmpty(t, own.StackMaps)
			all := ways(t, p)
			for _, name := range inOrder(all) {
				core := openCore(t, all[name]())
				requireSame(t, live, core, nil)
				at := core.Modules[0].Image.Section(object.StackMapSection)
				require.Equal(t, own.Image.Section(object.StackMapSection).Loaded(), at.Loaded())
				r := regionAt(t, core, at.Loaded())
				if name == "3 kernel" {
					require.Equal(t, inCore, r.from != any(core.Modules[0].file), name)
				}
				stored, err := at.Data()
				require.NoError(t, err)
				require.Equal(t, !inCore, bytes.Equal(stored, own.StackMaps), "the dynamic linker relocates only the one of the PIE")
			}
		})
	}
}

func regionAt(t *testing.T, core *Target, addr machine.Addr) region {
	t.Helper()
	for _, r := range core.source.(*coreMemory).regions {
		if r.start <= addr && addr < r.end {
			return r
		}
	}
	require.FailNow(t, "no region", "%v", addr)
	return region{}
}

// TestCoreMemory requires that every page that a core provides equals that of the process, whether it comes from the core or from a file, and that
// all code is available.
func TestCoreMemory(t *testing.T) {
	livetest.Slow(t)
	p := livetest.Linked(t, 19, "deoptimize.ll", "-pie")
	// Use one processor: the kernel writes the number of the processor into the memory of a thread (rseq(2)) when it resumes.
	var first unix.CPUSet
	first.Set(0)
	require.NoError(t, unix.SchedSetaffinity(p.PID, &first))
	p.Signal(t, unix.SIGSTOP)
	requireState(t, p.PID, 'T')
	p.Signal(t, unix.SIGCONT)
	requireState(t, p.PID, 'S')
	maps, err := readMaps(p.PID)
	require.NoError(t, err)
	const page = 4096
	type pageOf struct {
		at   machine.Addr
		data []byte
		of   machine.Mapping
	}
	var pages []pageOf
	for _, m := range maps {
		if !m.Read || strings.HasPrefix(m.Path, "[vvar") { // the kernel's clocks advance
			continue
		}
		for at := m.Start; at < m.End; at += page {
			pages = append(pages, pageOf{at, peek(t, p.PID, at, page), m})
		}
	}
	all := ways(t, p)
	for _, name := range inOrder(all) {
		core := openCore(t, all[name]())
		for _, want := range pages {
			m, known := core.Mapping(want.at)
			got := make([]byte, page)
			if err := core.ReadMemory(got, want.at); err != nil {
				// Memory that was never written is in the file of its mapping, or in no file.
				require.ErrorContains(t, err, "not in the core")
				require.False(t, want.of.Exec, "%s: %v of %s", name, want.at, want.of.Path)
				continue
			}
			require.True(t, bytes.Equal(want.data, got), "%s: %v of %s", name, want.at, want.of.Path)
			require.True(t, known)
			require.Equal(t, want.of.Exec, m.Exec, "%s: %v of %s", name, want.at, want.of.Path)
		}
	}
}

// TestCoreRegisters requires that the registers in a core are those that a capture reads.
func TestCoreRegisters(t *testing.T) {
	p := program(t, "regs.c", []string{"-no-pie"}, "pause")
	var live *Target
	require.Eventually(t, func() bool {
		live = capture(t, p.PID, Options{})
		pc, err := live.Threads()[1].Registers.Addr(machine.AMD64.PC)
		require.NoError(t, err)
		return pc == symbols(t, executable(t, "regs.c", "-no-pie"))["paused"]
	}, livetest.Patience, time.Millisecond)
	core := openCore(t, livetest.Gcore(t, p))
	require.Len(t, core.Threads(), 2)
	for i, want := range live.Threads() {
		got := core.Threads()[i]
		require.Equal(t, want.ID, got.ID)
		for reg := range machine.DWARFReg(17) {
			w, err := want.Registers.Uint(reg)
			require.NoError(t, err)
			g, err := got.Registers.Uint(reg)
			require.NoError(t, err)
			require.Equal(t, w, g, machine.AMD64.RegisterName(reg))
		}
		for reg := range machine.DWARFReg(16) {
			w, err := want.Registers.Bytes(17 + reg)
			require.NoError(t, err)
			g, err := got.Registers.Bytes(17 + reg)
			require.NoError(t, err)
			// The offsets of the other registers in the note depend on the processor. If a core does not contain these offsets, the standard ones
			// apply, but only on some processors.
			require.GreaterOrEqual(t, len(g), min(len(w), 32), "xmm%d", reg)
			require.Equal(t, w[:min(len(w), len(g))], g, "xmm%d", reg)
		}
		_, err := got.Registers.Bytes(33)
		require.EqualError(t, err, "st0: not in the core")
	}
}

// TestCoreFilter requires that memory which a process excludes from its cores (coredump_filter of core(5)) is not replaced from files.
func TestCoreFilter(t *testing.T) {
	for _, c := range []struct {
		filter     string
		notes      int
		unverified string
		why        string
	}{
		{"0x32", 1, "", "section: 152 bytes at ADDR: not in the core, and neither are changes to the memory of PATH"},
		{"0x23", 0, "the core does not contain the beginning of the mapped file", ""},
	} {
		p := livetest.Linked(t, 19, "deoptimize.ll", "-pie")
		live := survey(t, p.PID)
		path := live.Modules[0].Path
		at := live.Modules[0].Image.Section(object.StackMapSection).Loaded()
		require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/coredump_filter", p.PID), []byte(c.filter), 0))
		all := ways(t, p)
		for _, name := range inOrder(all) {
			if name == "2 gcore all" || name == "2 own" {
				continue // the filter excludes only some kinds of mappings
			}
			core := openCore(t, all[name]())
			require.Len(t, core.Notes, c.notes)
			m := core.Modules[0]
			require.NotNil(t, m.Image, m.Why)
			require.Equal(t, live.Modules[0].Image.Bias, m.Image.Bias)
			require.Equal(t, c.unverified, m.Unverified)
			if c.why == "" {
				require.Equal(t, live.Modules[0].StackMaps, m.StackMaps)
				continue
			}
			require.Nil(t, m.StackMaps)
			why := strings.NewReplacer("section", object.StackMapSection, "ADDR", at.String(), "PATH", path).Replace(c.why)
			require.Equal(t, why, m.MapsWhy)
		}
	}
}

// TestCutCore requires that the existing part of a truncated core is used, and that the rest is unavailable.
func TestCutCore(t *testing.T) {
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	live := survey(t, p.PID)
	all := ways(t, p)
	whole, err := os.ReadFile(all["3 kernel"]())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "core")
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	found := 0
	for cut := len(whole); cut > 4096; cut -= len(whole) / 23 {
		require.NoError(t, os.Truncate(path, int64(cut)))
		core, err := OpenCore(path, CoreOptions{})
		require.NoError(t, err)
		require.Equal(t, cut != len(whole), len(core.Notes) > 0)
		for _, r := range core.Registries {
			if r.Broken == "" {
				found++
				require.Len(t, r.Entries, len(live.Registries[0].Entries))
			}
		}
		core.Close()
	}
	require.Positive(t, found)
}

// BenchmarkOpenCore measures the time to open a core, which depends on the registered objects and not on the size of the core.
func BenchmarkOpenCore(b *testing.B) {
	p := livetest.Lli(b, 19, "jit_sp.ll", "mcjit")
	path := livetest.Gcore(b, p)
	b.ReportAllocs()
	for b.Loop() {
		target, err := OpenCore(path, CoreOptions{})
		require.NoError(b, err)
		target.Close()
	}
}
