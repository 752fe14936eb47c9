package fidelity_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// bareBuild is a way to compile a program without CFI.
type bareBuild struct {
	compiler, flags string
}

func (b bareBuild) String() string { return b.compiler + " " + b.flags }

// bareBuilds lists the builds of TestStrippedStacks. Without FIDELITY=all the test uses only the first build, and for Lua only its first six places.
var bareBuilds = []bareBuild{
	{"gcc", "-O2"},
	{"gcc", "-O0"},
	{"clang-19", "-O2"},
	{"clang-14", "-O2"},
	{"gcc", "-O1 -fomit-frame-pointer"},
	{"gcc", "-Os"},
	{"clang-19", "-O0"},
	{"gcc", "-O2 -fno-omit-frame-pointer"},
	{"gcc", "-O2 -static -no-pie -fno-pie"},
	{"clang-19", "-Os -static-pie -fPIE"},
	{"clang-14", "-O1 -no-pie -fno-pie"},
	{"gcc", "-O3"},
	{"clang-19", "-O3 -fno-omit-frame-pointer"},
}

// bareProgram is a program that executes much of its code. Each of its places is a point to stop: a number of instructions after the call of a function.
type bareProgram struct {
	name   string
	build  func(t *testing.T, b bareBuild) string
	args   []string
	places []string
}

var barePrograms = []bareProgram{
	{"lua", buildLua, []string{"testdata/stripped/work.lua"}, []string{
		"luaV_concat,5,60", "luaL_traceback,1,800", "lua_resume,3,333", "lua_pcallk,4,2000", "luaO_pushvfstring,7,150", "luaD_throw,2,25",
		"luaV_execute,20,37", "luaH_resize,30,11", "luaC_fullgc,1,400", "luaX_next,200,17", "luaK_exp2nextreg,9,90", "luaG_traceexec,1,5",
		"luaD_growstack,1,120", "luaD_callnoyield,700,5", "luaH_getn,9,3", "luaU_dump,1,500"}},
	{"sqlite", buildSQLite, nil, []string{
		"sqlite3VdbeExec,5,700", "sqlite3RunParser,12,900", "sqlite3BtreeInsert,60,40", "sqlite3Select,6,1500", "sqlite3WhereBegin,3,3000", "backwards,300,3",
		"twice,50,1", "sqlite3_str_vappendf,90,77", "final,2,30", "sqlite3VdbeRecordUnpack,20,9", "sqlite3MallocSize,900,0", "sqlite3BtreeDelete,5,400",
		"sqlite3ExprCodeTarget,60,250", "sqlite3ResolveExprNames,20,60", "step,100,2", "sqlite3PagerWrite,70,35"}},
}

// bare compiles a program without CFI in memory, but with the debug information with which gdb unwinds. reframe gets the same file without symbols
// and .debug_frame, so the code is the same byte for byte.
func bare(t *testing.T, b bareBuild, sources []string, flags ...string) string {
	flags = append(slices.Concat(strings.Fields(b.flags), flags), "-g1", "-w", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions", "-Wl,--build-id")
	return livetest.CProgram(t, b.compiler, append(flags, "-lm"), sources...)
}

func buildLua(t *testing.T, b bareBuild) string {
	all, err := filepath.Glob(filepath.Join(livetest.DebianSource(t, "lua5.4"), "src", "*.c"))
	require.NoError(t, err)
	all = slices.DeleteFunc(all, func(path string) bool { return filepath.Base(path) == "luac.c" })
	return bare(t, b, all, "-Dluai_makeseed(L)=1", "-Itestdata/lua")
}

func buildSQLite(t *testing.T, b bareBuild) string {
	dir := livetest.Amalgamation(t)
	return bare(t, b, []string{filepath.Join(dir, "sqlite3.c"), "testdata/stripped/sqlite.c"}, "-I"+dir, "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION")
}

// noCFA is the CFA that gdb reports for the outermost frame.
const noCFA = "0x0"

// bareStop is a place at which gdb stopped a program, with gdb's frames.
type bareStop struct {
	Place, Core string
	Frames      []struct{ PC, CFA, Name string }
}

// stopsOf runs a program under gdb.
func stopsOf(t *testing.T, program string, p bareProgram) (stops []bareStop) {
	steps := fmt.Sprintf("python cores='%s'; places='%s'", filepath.Join(t.TempDir(), "core"), strings.Join(p.places, " "))
	cmd := exec.Command(livetest.Tool(t, "gdb"), append([]string{"-nx", "-batch", "-ex", steps, "-x", "testdata/stripped/stops.py", "--args", program}, p.args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range bytes.Lines(out) {
		var s bareStop
		if bytes.HasPrefix(line, []byte("{")) {
			require.NoError(t, json.Unmarshal(line, &s))
			stops = append(stops, s)
		}
	}
	require.GreaterOrEqual(t, len(stops), 4, "%s", out)
	return stops
}

// bareTally counts stacks.
type bareTally struct{ stacks, equal, short, marked, unmarked, frames, guessed int }

func (n *bareTally) add(o bareTally) {
	n.stacks, n.equal, n.short, n.marked, n.unmarked = n.stacks+o.stacks, n.equal+o.equal, n.short+o.short, n.marked+o.marked, n.unmarked+o.unmarked
	n.frames, n.guessed = n.frames+o.frames, n.guessed+o.guessed
}

func (n bareTally) String() string {
	return fmt.Sprintf("%3d stacks: %3d as gdb has them, %d cut short with all frames right, %d wrong and marked, %d wrong without a mark; %d of %d frames marked",
		n.stacks, n.equal, n.short, n.marked, n.unmarked, n.guessed, n.frames)
}

// TestStrippedStacks requires, for programs without symbols and CFI, that each frame is equal to gdb's, is marked as a guess, or is a caller of a
// guess. The programs are stopped at fixed places. gdb has the .debug_frame of the same code.
func TestStrippedStacks(t *testing.T) {
	livetest.Slow(t)
	builds, programs := bareBuilds, barePrograms
	if !all {
		lua := barePrograms[0]
		lua.places = lua.places[:6]
		builds, programs = bareBuilds[:1], []bareProgram{lua}
	}
	var sum bareTally
	for _, p := range programs {
		for _, b := range builds {
			t.Run(p.name+"/"+b.String(), func(t *testing.T) {
				full := p.build(t, b)
				stripped := filepath.Join(t.TempDir(), "stripped")
				require.NoError(t, exec.Command(livetest.Tool(t, "strip"), "--strip-all", "-o", stripped, full).Run())
				var n bareTally
				for _, s := range stopsOf(t, full, p) {
					n.add(s.check(t, stripped, p.name+" "+b.String()))
				}
				t.Logf("%-7s %-32s %v", p.name, b, n)
				sum.add(n)
			})
		}
	}
	t.Logf("%-40s %v", "all", sum)
	require.Zero(t, sum.unmarked)
	// Before the scan of the stack checked call targets, fewer were equal: doc/dev/rationale.md.
	require.GreaterOrEqual(t, 100*(sum.equal+sum.short), 90*sum.stacks)
}

// check compares reframe's stack at a stop with gdb's.
func (s *bareStop) check(t *testing.T, stripped, title string) bareTally {
	target, err := ptrace.OpenCore(s.Core, ptrace.CoreOptions{Exe: stripped, DebugDirs: []string{}})
	require.NoError(t, err)
	defer target.Close()
	defer os.Remove(s.Core)
	view, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	require.Len(t, view.Threads, 1)
	thread := &view.Threads[0]
	n := bareTally{stacks: 1, frames: len(thread.Frames)}
	wrong := -1
	for i, f := range thread.Frames {
		if f.Uncertain() != "" {
			n.guessed++
		}
		switch {
		case wrong >= 0:
		case i >= len(s.Frames) || f.PC != frame.Hex(s.Frames[i].PC):
			wrong = i
		case f.CFA != "" && s.Frames[i].CFA != noCFA && f.CFA != frame.Hex(s.Frames[i].CFA):
			wrong = min(i+1, len(thread.Frames)-1) // the place of the next number
		}
	}
	switch {
	case wrong >= 0 && thread.Frames[wrong].Uncertain() == "":
		n.unmarked = 1
	case wrong >= 0:
		n.marked = 1
	case len(thread.Frames) < len(s.Frames):
		n.short = 1
	default:
		n.equal = 1
	}
	if n.equal == 0 {
		t.Logf("%s, %s: frame %d of %d is not gdb's; %s", title, s.Place, wrong, len(s.Frames), thread.End.Reason)
		for i, f := range thread.Frames[:min(len(thread.Frames), max(wrong, len(thread.Frames)-3)+2)] {
			theirs := "none"
			if i < len(s.Frames) {
				theirs = s.Frames[i].PC + " " + s.Frames[i].CFA + " " + s.Frames[i].Name
			}
			t.Logf("  #%d %s %s by %s; gdb: %s; %s", i, f.PC, f.CFA, f.Rule, theirs, f.Uncertain())
		}
	}
	return n
}
