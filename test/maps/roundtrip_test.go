package maps_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// moment is a process that is stopped in a certain way.
type moment struct {
	name  string
	start func(t *testing.T) *livetest.Process
	ours  bool // the program is not a system file, so its copy can be stripped
}

// moments lists all programs of testdata, as each release compiles and runs them.
func moments() []moment {
	var all []moment
	paused := map[string][]int{
		"deoptimize.ll": {16, 19, 22}, "jit_pp.ll": {14, 19, 22}, "jit_sp.ll": {14, 19, 22}, "chain.ll": {16, 19, 22},
		"live_memory.ll": {16, 19, 22},
	}
	for _, program := range slices.Sorted(maps.Keys(paused)) {
		for _, version := range paused[program] {
			for _, kind := range []string{"mcjit", "orc"} {
				all = append(all, moment{fmt.Sprintf("lli-%d %s %s", version, kind, program), func(t *testing.T) *livetest.Process {
					return livetest.Lli(t, version, program, kind)
				}, false})
			}
			for _, flag := range []string{"-pie", "-no-pie"} {
				all = append(all, moment{fmt.Sprintf("linked %d %s %s", version, flag, program), func(t *testing.T) *livetest.Process {
					return livetest.Linked(t, version, program, flag, "-w")
				}, true})
			}
		}
	}
	once := map[string][]int{"stop_at.ll": {14, 19, 22}, "odd_types.ll": {19, 22}}
	for _, program := range slices.Sorted(maps.Keys(once)) {
		for _, version := range once[program] {
			all = append(all, moment{fmt.Sprintf("lli-%d %s", version, program), func(t *testing.T) *livetest.Process {
				p := livetest.Lli(t, version, program, "mcjit")
				return toRecord(t, p, func() { p.Signal(t, syscall.SIGUSR1) })
			}, false})
		}
	}
	hosts := map[int][]string{14: {"mcjit", "orcrt", "orcgdb"}, 19: {"mcjit", "orcgdb", "orcdbg"}}
	for _, version := range slices.Sorted(maps.Keys(hosts)) {
		for _, mode := range hosts[version] {
			all = append(all, moment{fmt.Sprintf("host-%d %s", version, mode), func(t *testing.T) *livetest.Process {
				return livetest.Host(t, version, mode, "block")
			}, true})
		}
	}
	for _, program := range []string{"tick.ll", "guards.ll", "patch.ll", "state.ll", "memory.ll", "floats.ll", "recursion.ll", "null.ll"} {
		for _, version := range []int{14, 19, 22} {
			for _, level := range []string{"-O0", "-O2"} {
				all = append(all, moment{fmt.Sprintf("object host %d %s %s", version, level, program), func(t *testing.T) *livetest.Process {
					object := livetest.PICObject(t, version, program, level)
					p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 1000})
					p.IR = livetest.IR(t, version, program)
					if program == "guards.ll" {
						return toDeoptimize(t, p, begin)
					}
					return toRecord(t, p, begin)
				}, true})
			}
		}
	}
	return all
}

// toDeoptimize runs a process until a thread calls __llvm_deoptimize, which leaves compiled code.
func toDeoptimize(t *testing.T, p *livetest.Process, begin func()) *livetest.Process {
	t.Helper()
	target, err := ptrace.Survey(p.PID, ptrace.Options{})
	require.NoError(t, err)
	defer target.Close()
	s, ok := target.FindSymbol("__llvm_deoptimize")
	require.True(t, ok)
	return to(t, p, begin, s.Addr)
}

// toRecord runs a process until a thread reaches the address of a record.
func toRecord(t *testing.T, p *livetest.Process, begin func()) *livetest.Process {
	t.Helper()
	var places []machine.Addr
	for _, image := range mapsOf(t, "-p", clitest.PID(p)) {
		for _, f := range clitest.Objects(t, image["functions"]) {
			for _, r := range clitest.Objects(t, f["records"]) {
				var at uint64
				_, err := fmt.Sscanf(r["address"].(string), "0x%x", &at)
				require.NoError(t, err)
				places = append(places, machine.Addr(at))
			}
		}
	}
	return to(t, p, begin, places...)
}

// to runs a process until it reaches one of the places, and leaves it stopped there.
func to(t *testing.T, p *livetest.Process, begin func(), places ...machine.Addr) *livetest.Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	s, err := ptrace.Open(ctx, p.PID)
	require.NoError(t, err)
	defer s.Detach() // has no effect after the Detach below
	begin()
	_, err = s.RunTo(ctx, places...)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(p.PID, syscall.SIGSTOP)) // the process handles this signal first when it is resumed
	require.NoError(t, s.Detach())
	return p
}

// TestRoundTrip requires that frames has the same complete output for a live process and for every core of the same moment, except for the line about
// the target. This must also hold if the program has been stripped since, and its symbols are in a separate file.
func TestRoundTrip(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	whole := os.Getenv("FIDELITY") == "all"
	for n, m := range moments() {
		if !whole && n%17 != 0 { // a selection that contains each release and each way to run
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := m.start(t)
			p.Freeze(t)
			given := []string{"--ir", p.IR, "--json"}
			if path := strings.TrimSuffix(livetest.Testdata(t, "programs")+"/"+filepath.Base(p.IR), ".ll") + ".layout.json"; exists(path) {
				given = append(given, "--layout", path)
			}
			live := framesFrom(t, given, "-p", clitest.PID(p))
			require.Contains(t, live, `"record": {`)
			require.Contains(t, live, `"kind": "process"`)

			recorded := clitest.RecordedCore(t, "-p", clitest.PID(p))
			gcore := livetest.Gcore(t, p)
			for name, core := range map[string]string{
				"recorded": recorded, "all of it": clitest.RecordedCore(t, "-p", clitest.PID(p), "--memory", "all", "--compress"),
			} {
				requireSameMoment(t, live, framesFrom(t, given, "--core", core), name)
			}
			// gdb writes only the name of the first thread.
			requireSameMoment(t, unnamed(live), unnamed(framesFrom(t, given, "--core", gcore)), "gcore")
			requireSameMoment(t, unnamed(live), unnamed(framesFrom(t, given, "--core", clitest.RecordedCore(t, "--core", gcore))), "of gcore's")
			explained := func(target ...string) string {
				r := clitest.Run(t, append(append([]string{"explain"}, target...), given...)...)
				require.Contains(t, []int{0, 1}, r.Code, r.Stderr)
				return r.Stdout
			}
			requireSameMoment(t, explained("-p", clitest.PID(p)), explained("--core", recorded), "explain")
			if m.ours {
				testStripped(t, p, recorded, live, given)
			}
			if strings.HasPrefix(m.name, "linked") { // in some of the other programs a handler catches the signal
				p.Signal(t, syscall.SIGCONT)
				p.AwaitPause(t)
				if core, can := livetest.KernelCore(t, p); can {
					requireSameMoment(t, live, framesFrom(t, given, "--core", core), "kernel")
				}
			}
		})
	}
}

// testStripped requires the same frames from a core whose program has been stripped, if the original program or a separate debug file is given.
func testStripped(t *testing.T, p *livetest.Process, core, live string, given []string) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	require.NoError(t, err)
	root := clitest.SysrootOf(t, core)
	clitest.RunTool(t, "strip", filepath.Join(root, exe))
	poorer := framesFrom(t, given, "--core", core, "--sysroot", root)
	require.Less(t, strings.Count(poorer, `"function": `), strings.Count(live, `"function": `))

	requireSameMoment(t, live, framesFrom(t, given, "--core", core, "--sysroot", root, "--exe", exe), "--exe")
	debug := filepath.Join(root, "usr/lib/debug/.build-id")
	id := clitest.BuildID(t, exe)
	require.NoError(t, os.MkdirAll(filepath.Join(debug, id[:2]), 0o755))
	clitest.RunTool(t, "objcopy", "--only-keep-debug", exe, filepath.Join(debug, id[:2], id[2:]+".debug"))
	requireSameMoment(t, live, framesFrom(t, given, "--core", core, "--sysroot", root), "a debug file")
}

// framesFrom returns the output of frames.
func framesFrom(t *testing.T, given []string, target ...string) string {
	t.Helper()
	r := clitest.Run(t, append(append([]string{"frames"}, target...), given...)...)
	require.Contains(t, []int{0, 1}, r.Code, "%v: %s", target, r.Stderr)
	return r.Stdout
}

var targetLine = regexp.MustCompile(`(?m)^  "target": \{.*\},\n`)

// requireSameMoment compares two reports line by line, except for the line about the target.
func requireSameMoment(t *testing.T, live, core, name string) {
	t.Helper()
	require.Len(t, targetLine.FindAllString(live, -1), 1, "%s", live)
	require.Len(t, targetLine.FindAllString(core, -1), 1, "%s", core)
	want, got := strings.Split(targetLine.ReplaceAllString(live, ""), "\n"), strings.Split(targetLine.ReplaceAllString(core, ""), "\n")
	for n, line := range want[:min(len(want), len(got))] {
		around := func(lines []string) string { return strings.Join(lines[max(n-12, 0):min(n+3, len(lines))], "\n") }
		require.Equal(t, line, got[n], "%s\n%s\n%s", name, around(want), around(got))
	}
	require.Equal(t, len(want), len(got), name)
}

// unnamed returns a report without the names of threads except that of the first.
func unnamed(report string) string {
	name := regexp.MustCompile(`(?m)^      "name": .*\n`)
	first := name.FindStringIndex(report)
	if first == nil {
		return report
	}
	return report[:first[1]] + name.ReplaceAllString(report[first[1]:], "")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestSeparateDebugFile requires that a process whose program is stripped gets its names from a separate debug file only if the build ID matches.
func TestSeparateDebugFile(t *testing.T) {
	t.Parallel()
	built := livetest.Linked(t, 19, "deoptimize.ll", "-pie")
	whole, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", built.PID))
	require.NoError(t, err)
	dir := t.TempDir()
	stripped, debug := filepath.Join(dir, "program"), filepath.Join(dir, "debug")
	clitest.RunTool(t, "strip", "-o", stripped, whole)
	id := clitest.BuildID(t, whole)
	require.NoError(t, os.MkdirAll(filepath.Join(debug, ".build-id", id[:2]), 0o755))
	separate := filepath.Join(debug, ".build-id", id[:2], id[2:]+".debug")
	p := livetest.Program(t, stripped)
	given := []string{"-p", clitest.PID(p), "--ir", built.IR, "--json"}
	named := func(more ...string) bool {
		return strings.Contains(framesFrom(t, append(given, more...)), `"function": "sum_opt"`)
	}
	require.False(t, named())
	clitest.RunTool(t, "objcopy", "--only-keep-debug", livetest.CBinary(t, "nojit.c"), separate)
	require.False(t, named("--debug-dir", debug), "the file is of another program")
	clitest.RunTool(t, "objcopy", "--only-keep-debug", whole, separate)
	require.True(t, named("--debug-dir", debug))
	require.True(t, named("--debug-dir", t.TempDir(), "--debug-dir", debug))
	for _, core := range []string{livetest.Gcore(t, p), clitest.RecordedCore(t, "-p", clitest.PID(p))} {
		given = []string{"--core", core, "--ir", built.IR, "--json"}
		require.False(t, named())
		require.True(t, named("--debug-dir", debug))
	}
	clitest.RequireUnharmed(t, p)
}
