package fidelity_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/static/instrument"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// An exiting program is compiled with sites in every block and after every call, which record all live values. At these sites it is verified while it
// runs.
type exiting struct {
	source string // csmith, lua, ...
	name   string
	module func(t *testing.T, v variant) string // compiles the module without sites
	only   string                               // pattern of the functions that get sites; "": all functions
	args   []string
	stdin  []byte
	files  map[string][]byte // in its working directory
}

// A way describes how a program is compiled and run.
type way struct {
	release int    // release of LLVM that compiles it
	level   string // of clang and of llc or lli
	how     string // "ahead", "mcjit" or "orc"
}

func (w way) String() string { return fmt.Sprintf("LLVM %d %s %s", w.release, w.level, w.how) }

// clang returns the release that writes the IR: the newest available one whose IR the release reads.
func (w way) clang() int {
	if w.release < 19 {
		return 14
	}
	return 19
}

// ways lists all ways.
func ways() (list []way) {
	for _, release := range []int{14, 16, 19, 22} {
		for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
			for _, how := range []string{"ahead", "mcjit", "orc"} {
				list = append(list, way{release, level, how})
			}
		}
	}
	return list
}

// tally counts the results of comparisons at exits.
type tally struct {
	same, different, notComparable uint64
	reasons                        map[string]uint64
	late                           bool // the run was ended at the time limit, so it may have had more exits
}

func (c *tally) add(s tally) {
	c.same, c.different, c.notComparable = c.same+s.same, c.different+s.different, c.notComparable+s.notComparable
	if c.reasons == nil {
		c.reasons = map[string]uint64{}
	}
	for why, n := range s.reasons {
		c.reasons[why] += n
	}
}

func (c tally) String() string {
	return fmt.Sprintf("%d the same, %d different, %d not comparable", c.same, c.different, c.notComparable)
}

// build adds sites to the program and compiles it. It returns the command and the module with the sites. The module is nil if no site could be added.
func (p *exiting) build(t *testing.T, w way) ([]string, *ir.Module) {
	t.Helper()
	plain := p.module(t, variant{w.clang(), w.level})
	text, err := os.ReadFile(plain)
	require.NoError(t, err)
	// A private global has no symbol, so its content is unknown.
	m, err := ir.Parse("plain.ll", []byte(strings.ReplaceAll(string(text), " = private ", " = internal ")))
	require.NoError(t, err)
	o := instrument.Options{Blocks: true, Calls: true, Complete: true, Release: w.release}
	if w.level == "-O0" {
		o.Most = 8
	}
	if p.only != "" {
		o.Function, err = names.Loose(p.only)
		require.NoError(t, err)
	}
	path, object := filepath.Join(t.TempDir(), "sites.ll"), ""
	for object == "" {
		r, err := instrument.Module(m, o)
		require.NoError(t, err)
		if len(r.Sites) == 0 {
			return nil, nil // a value is missing at each site
		}
		require.NoError(t, os.WriteFile(path, []byte(r.Text), 0o600))
		if w.how != "ahead" && o.Most > 0 {
			break
		}
		failure := ""
		object, failure = livetest.TryMade(t, livetest.LLVM(t, w.release, "llc"), "sites.o", w.level, "-filetype=obj", "-relocation-model=pic", path)
		if failure != "" { // at sites with many live values llc runs out of registers, also at higher levels
			require.Contains(t, failure, "ran out of registers")
			require.Zero(t, o.Most, failure)
			o.Most = 8
		}
	}
	m, err = ir.ParseFile(path)
	require.NoError(t, err)
	if w.how != "ahead" {
		return slices.Concat(livetest.LliWords(t, w.release), []string{w.level, "-jit-kind=" + w.how, path}, p.args), m
	}
	program := livetest.Made(t, "g++", "program", object, "-lm")
	return append([]string{program}, p.args...), m
}

// verified runs the program in one way, and verifies every every-th exit, at most limit of them. A run that exceeds its time, as on a loaded machine,
// still counts with the exits that it reached.
func (p *exiting) verified(t *testing.T, w way, every, limit, steps uint64) (sum tally) {
	t.Helper()
	command, m := p.build(t, w)
	if command == nil {
		return tally{}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stdin"), p.stdin, 0o600))
	for name, text := range p.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	s, err := ptrace.LaunchWith(t.Context(), command, ptrace.LaunchOptions{Dir: dir, Stdin: filepath.Join(dir, "stdin"), Stdout: os.DevNull, Stderr: os.DevNull, Bound: true})
	require.NoError(t, err)
	defer func() {
		_ = syscall.Kill(s.PID(), syscall.SIGKILL) // kill the program: it may run for long, and its output is not needed
		_ = s.Detach()
	}()
	o := verify.Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Every: every, Limit: limit, Steps: steps,
		Time: bound, For: bound, Wait: true, Warn: func(string) {}}
	summary, err := verify.Run(t.Context(), s, o, func(v *verify.Verified) error {
		if v.Status == verify.Different {
			report, err := json.Marshal(v.Report())
			require.NoError(t, err)
			t.Errorf("%s %s, %v: exit %d: %s", p.source, p.name, w, v.Number, report)
		}
		return nil
	})
	require.NoError(t, err, "%s %s, %v", p.source, p.name, w)
	return tally{summary.Same, summary.Different, summary.NotComparable, summary.Reasons, summary.End.Kind == trace.EndTime}
}

// csmithExits returns a random program of csmith.
func csmithExits(t *testing.T, seed string) *exiting {
	t.Helper()
	number, err := strconv.Atoi(seed)
	require.NoError(t, err)
	source := livetest.Csmith(t, number)
	return &exiting{source: "csmith", name: seed, module: func(t *testing.T, v variant) string {
		return livetest.CModule(t, v.release, []string{v.level, "-fno-inline", "-Xclang", "-disable-O0-optnone", "-w", "-I/usr/include/csmith"}, source)
	}, only: `^func_\d+$`}
}

// packagedExits returns a program of a Debian source package, with the inputs that other tests use.
func packagedExits(t *testing.T, name string) *exiting {
	t.Helper()
	p := &exiting{source: name, name: name, module: sources[name].module}
	switch name {
	case "lua":
		p.args = []string{"-"}
		for _, script := range []string{"closures", "errors", "nbody", "sieve", "strings"} {
			text, err := os.ReadFile("testdata/lua/" + script + ".lua")
			require.NoError(t, err)
			p.stdin = append(p.stdin, "do\n"+string(text)+"\nend\n"...)
		}
	case "minigzip", "bzip2":
		p.args, p.stdin = []string{"-6"}, input(t, 8<<10)
	}
	return p
}

// sqliteExits returns SQLite on testdata/sqlite/statements.sql. It has sites only in B-trees, the pager, and the code that packs rows. With sites in
// all functions, the largest of which have thousands of blocks, each run of llc takes more than ten minutes.
func sqliteExits(t *testing.T) *exiting {
	t.Helper()
	statements, err := os.ReadFile("testdata/sqlite/statements.sql")
	require.NoError(t, err)
	dir := livetest.Amalgamation(t)
	return &exiting{source: "sqlite", name: "sqlite", only: `^(balance|btree|sqlite3Btree|sqlite3VdbeRecord|sqlite3VdbeSerial|pager_|vdbeRecord)`, stdin: statements, args: []string{"file.db"}, module: func(t *testing.T, v variant) string {
		return livetest.CModule(t, v.release, []string{v.level, "-w", "-I" + dir}, filepath.Join(dir, "sqlite3.c"), "testdata/sqlite/shell.c")
	}}
}

// cxxExits returns a C++ program that the interpreter's own tests run.
func cxxExits(t *testing.T, path string) *exiting {
	t.Helper()
	standard := "-std=c++20"
	if filepath.Base(path) == "specs.cc" { // later standards have no dynamic exception specifications
		standard = "-std=c++14"
	}
	return &exiting{source: "C++", name: filepath.Base(path), module: func(t *testing.T, v variant) string {
		return livetest.CModule(t, v.release, []string{v.level, standard, "-w"}, path)
	}}
}

// stressExits returns a module of llvm-stress, rewritten by a definer.
func stressExits(size, seed int) *exiting {
	return &exiting{source: "llvm-stress", name: fmt.Sprintf("size %d, seed %d", size, seed), module: func(t *testing.T, v variant) string {
		return stressed(t, v.release, size, seed, definer{room: "zeroinitializer"}.define)
	}, only: "^autogen$"}
}

// exitPrograms lists the programs to verify, with the ways to compile each and the number of exits. Compiling a program takes as long as verifying
// several hundred exits. With FIDELITY=all, a program with many exits is therefore compiled in all ways ahead of time, and verified at many exits.
// Just-in-time compilation, and programs with few exits, use a part of the ways in turn. Without it, each program has one way, or a few.
func exitPrograms(t *testing.T) (list []exitRun) {
	t.Helper()
	number := 0
	add := func(p *exiting, of []way, few, out int, limit uint64) {
		number++
		var some []way
		if all {
			for n, w := range of {
				if (n+number)%out == 0 {
					some = append(some, w)
				}
			}
		}
		for n := 0; !all && n < few; n++ {
			some = append(some, livetest.ShareOf(of, p.source, p.name, n)...)
		}
		for _, w := range some {
			list = append(list, exitRun{p, w, limit})
		}
	}
	var ahead, jit, slow []way
	for _, w := range ways() {
		switch {
		case w.how == "ahead":
			ahead = append(ahead, w)
		case w.level == "-O0": // lli is slow on the IR of clang -O0
			slow = append(slow, w)
		default:
			jit = append(jit, w)
		}
	}
	every, modules := ways(), 25
	seeds := csmithSeeds(t, 0)
	if all {
		seeds = seeds[:60]
	} else {
		every, modules = ahead, 3
		for _, e := range frametest.Everywheres { // programs of the first group that have the most exits
			seeds = append(seeds, strconv.Itoa(e.Seed))
		}
	}
	for n, seed := range seeds {
		p := csmithExits(t, seed)
		add(p, ahead, 2, 1, uint64(livetest.Times(120, 260)))
		add(p, jit, 1, 6, 60)
		if n%6 == 0 {
			add(p, slow, 0, 2, 60)
		}
	}
	for _, size := range []int{100, 300} {
		for seed := 1; seed <= modules; seed++ {
			add(stressExits(size, seed), every, 1, 8, 50)
		}
	}
	for _, name := range []string{"lua", "zlib-example", "bzip2", "minigzip"} {
		limit := livetest.Times(250, 1500)
		if !all && len(name) < 9 && name != "lua" { // bzip2 and minigzip have large buffers
			limit = 100
		}
		add(packagedExits(t, name), ahead, 1, 1, uint64(limit))
		add(packagedExits(t, name), jit, 0, 4, 300)
	}
	cxx, err := filepath.Glob("../../deopt/interp/testdata/[ce]*x*/*.cc")
	require.NoError(t, err)
	require.Len(t, cxx, 7)
	for n, path := range cxx {
		if all || n < 3 {
			add(cxxExits(t, path), every, 1, 3, 200)
		}
	}
	if all {
		add(sqliteExits(t), ahead, 0, 4, 1000) // only ahead of time: lli takes minutes
	}
	// Mix the programs in an order that is always the same, so that a campaign that is cut short has verified some programs of each kind.
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// An exitRun is one way to run a program, with the number of its exits to verify.
type exitRun struct {
	*exiting
	way   way
	limit uint64
}

// TestExitsAreAsInterpreted requires that native code and the interpreter do not differ at exits of random programs, of modules of llvm-stress, and
// of programs by other authors. Each is compiled by each release at each level, ahead of time and just in time. About 2,000 exits are compared, with
// FIDELITY=all 100,000.
func TestExitsAreAsInterpreted(t *testing.T) {
	livetest.Slow(t)
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	part, parts := livetest.Part(t)
	var sum tally
	by, late := map[string]*tally{}, 0
	for n, r := range exitPrograms(t) {
		if n%parts != part-1 {
			continue
		}
		// With FIDELITY=all every n-th exit is verified, so that the exits are spread over the program's run.
		every := uint64(1)
		if all {
			every = []uint64{1, 2, 3, 7}[n%4]
		}
		began := time.Now()
		c := r.verified(t, r.way, every, r.limit, 1000)
		sum.add(c)
		for _, key := range []string{r.source, fmt.Sprintf("LLVM %d", r.way.release), r.way.level, r.way.how} {
			if by[key] == nil {
				by[key] = &tally{}
			}
			by[key].add(c)
		}
		if c.late {
			late++
		}
		t.Logf("%s %s, %v: %v, %.1f s", r.source, r.name, r.way, c, time.Since(began).Seconds())
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		t.Logf("%-12s %v", key, by[key])
	}
	reasons := slices.Sorted(maps.Keys(sum.reasons))
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(sum.reasons[b], sum.reasons[a]) })
	for _, why := range reasons[:min(len(reasons), 20)] {
		t.Logf("%6d %s", sum.reasons[why], why)
	}
	t.Logf("all: %v; %d programs were ended after %v", sum, late, bound)
	require.Zero(t, sum.different)
	if parts == 1 { // a single part may have few exits
		require.GreaterOrEqual(t, sum.same, uint64(livetest.Times(1000, 100_000)))
	}
}

// TestExitsThatWereDifferent requires no difference at exits at which a defect of verify or of the interpreter once caused one. The comment of each
// exit gives the subject of the defect.
func TestExitsThatWereDifferent(t *testing.T) {
	livetest.Slow(t)
	const cxx = "../../deopt/interp/testdata/"
	for _, c := range []struct {
		path  string
		way   way
		every uint64
	}{
		// Both sides make a call that the dynamic linker binds, which writes the slot and the linker's counters.
		{"cxx/objects.cc", way{19, "-O2", "ahead"}, 7},
		{"exceptions/basics.cc", way{19, "-O2", "ahead"}, 7},   // std::uncaught_exceptions counted an exception that only native code has thrown
		{"exceptions/pointers.cc", way{19, "-O2", "ahead"}, 7}, // the interpreter has std::exception::~exception as IR
		{"exceptions/pointers.cc", way{14, "-O1", "ahead"}, 7}, // the IR frees memory that libstdc++ itself frees
	} {
		require.Zero(t, cxxExits(t, cxx+c.path).verified(t, c.way, c.every, 400, 2000).different)
	}
}
