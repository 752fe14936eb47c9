package deopt_test

import (
	"fmt"
	gomaps "maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// orderProgram makes a function @work with random control flow. All of its sites have the same id. Each passes a number, which no record
// contains, to the function that it calls.
type orderProgram struct {
	*rand.Rand
	text   strings.Builder
	gc     bool // rewrite-statepoints-for-gc makes the statepoints
	kinds  int  // 1: calls with bundles; 2: also patchpoints; 3: also stackmaps
	alike  int  // number of sites in ten with the same bundle
	callee int  // number of called functions
	labels int
	values int
	sites  int
	block  string
}

func (p *orderProgram) put(format string, args ...any) {
	fmt.Fprintf(&p.text, "  "+format+"\n", args...)
}

func (p *orderProgram) label() string { p.labels++; return fmt.Sprintf("b%d", p.labels) }

func (p *orderProgram) start(label string) {
	fmt.Fprintf(&p.text, "%s:\n", label)
	p.block = label
}

func (p *orderProgram) next() string {
	p.values++
	v := fmt.Sprintf("%%n%d", p.values)
	leaf := ""
	if p.gc && p.Intn(3) > 0 {
		leaf = ` "gc-leaf-function"`
	}
	p.put("%s = call i64 @next()%s", v, leaf)
	return v
}

func (p *orderProgram) live() string {
	if p.Intn(10) < p.alike {
		return "i64 %a"
	}
	return []string{"i64 %b", "i64 %c", "i64 %a, i64 %b", "i64 7", "i64 8, i64 %b"}[p.Intn(5)]
}

func (p *orderProgram) site() {
	p.sites++
	callee := fmt.Sprintf("@log%d", p.Intn(p.callee))
	switch p.Intn(p.kinds) {
	case 1:
		p.put("call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 7, i32 16, ptr %s, i32 1, i64 %d, %s)", callee, p.sites, p.live())
	case 2:
		p.put("call void %s(i64 %d) %s", callee, p.sites, map[bool]string{true: `"gc-leaf-function"`}[p.gc])
		p.put("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, %s) ; site %d", p.live(), p.sites)
	default:
		p.put(`call void %s(i64 %d) [ "deopt"(%s) ]`, callee, p.sites, p.live())
	}
}

// some writes random statements, nested at most depth deep.
func (p *orderProgram) some(depth int) {
	for range 1 + p.Intn(3) {
		switch k := p.Intn(10); {
		case k < 4 || depth == 0:
			p.site()
		case k < 7: // an if
			then, other, join := p.label(), p.label(), p.label()
			p.put("%%c%s = trunc i64 %s to i1", then, p.next())
			p.put("br i1 %%c%s, label %%%s, label %%%s", then, then, other)
			p.start(then)
			p.some(depth - 1)
			if p.Intn(8) == 0 {
				p.put("ret i64 %%a")
			} else {
				p.put("br label %%%s", join)
			}
			p.start(other)
			if p.Intn(3) > 0 {
				p.some(depth - 1)
			}
			p.put("br label %%%s", join)
			p.start(join)
		case k < 9: // a loop with a constant or variable count
			before, body, done := p.block, p.label(), p.label()
			rounds := p.Intn(5)
			p.put("br label %%%s", body)
			p.start(body)
			if rounds > 1 {
				p.put("%%i%s = phi i64 [ 0, %%%s ], [ %%j%s, %%LATCH%s ]", body, before, body, body)
			}
			p.some(depth - 1)
			if rounds > 1 {
				p.put("%%j%s = add i64 %%i%s, 1", body, body)
				p.put("%%d%s = icmp eq i64 %%j%s, %d", body, body, rounds)
			} else {
				p.put("%%d%s = trunc i64 %s to i1", body, p.next())
			}
			p.put("br i1 %%d%s, label %%%s, label %%%s", body, done, body)
			text := strings.ReplaceAll(p.text.String(), "%LATCH"+body+" ", "%"+p.block+" ")
			p.text.Reset()
			p.text.WriteString(text)
			p.start(done)
		default: // a switch
			join, n := p.label(), 2+p.Intn(5)
			cases := make([]string, n)
			at := p.values
			p.values++
			p.put("%%s%d = and i64 %s, 7", at, p.next())
			var list strings.Builder
			for k := range cases {
				cases[k] = p.label()
				fmt.Fprintf(&list, " i64 %d, label %%%s", k, cases[k])
			}
			p.put("switch i64 %%s%d, label %%%s [%s ]", at, join, list.String())
			for _, c := range cases {
				p.start(c)
				p.some(depth - 1)
				p.put("br label %%%s", join)
			}
			p.start(join)
		}
	}
}

func orderModule(r *rand.Rand, mayGC bool) (text string, gc bool) {
	p := &orderProgram{Rand: r, kinds: 1 + r.Intn(3), alike: r.Intn(11), callee: 1 + r.Intn(3), gc: mayGC && r.Intn(2) == 0}
	gc = p.gc
	strategy := ""
	if gc {
		strategy = ` gc "statepoint-example"`
	}
	p.start("entry")
	p.some(3)
	p.put("ret i64 %%b")
	return `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare i64 @next()
declare void @log0(i64)
declare void @log1(i64)
declare void @log2(i64)
define i64 @work(i64 %a, i64 %b, i64 %c)` + strategy + " {\n" + p.text.String() + "}\n", gc
}

// orderHost runs @work a hundred times. It logs, for each call, its return address as an offset in the function, and its number.
const orderHost = `
#include <stdio.h>
extern long work(long, long, long);
static unsigned long state = 88172645463325252;
long next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state >> 20; }
static int left;
static void say(void *at, long site) { if (left-- > 0) printf("%ld %ld\n", (long)((char *)at - (char *)work), site); }
void log0(long site) { say(__builtin_return_address(0), site); }
void log1(long site) { say(__builtin_return_address(0), site + 0); }
void log2(long site) { say(__builtin_return_address(0), site + 0L); }
int main(void) { for (int k = 0; k < 100; k++) { left = 300; work(k, 2, 3); } }
`

// siteNumber returns the number that [orderModule] gave a site. It returns false if a pass has merged several sites, or has moved the call before
// a stackmap.
func siteNumber(s *ir.Site) (number int64, ok bool) {
	from, at := s.Instr, 0
	switch {
	case s.Kind == ir.StackMapSite:
		if from.Index == 0 || from.Block.Instrs[from.Index-1].Call == nil {
			return 0, false
		}
		from = from.Block.Instrs[from.Index-1]
	case s.Kind == ir.PatchPointSite:
		at = sites.PatchpointHead
	}
	if len(from.Args) > 5 && from.Typ.Kind == ir.TokenKind { // a statepoint from rewrite-statepoints-for-gc
		at = 5
	}
	if at >= len(from.Args) {
		return 0, false
	}
	c, ok := from.Args[at].(*ir.Const)
	if !ok || c.Kind != ir.ConstInt {
		return 0, false
	}
	return c.Int.Int64(), true
}

// orderTally counts the results for the records of programs.
type orderTally struct {
	records, before, after, held, shared int
	reasons                              map[string]int
}

// tellOrder compiles one random program, and compares the site that each record is assigned to with the program's log.
func tellOrder(t *testing.T, seed int64, dir string, tally *orderTally) {
	r := rand.New(rand.NewSource(seed))
	version := []int{14, 16, 19, 22}[r.Intn(4)]
	text, gc := orderModule(r, version > 14) // LLVM 14 rewrites only statepoints with typed pointers
	opaque := []string{}
	if version == 14 {
		opaque = append(opaque, "-opaque-pointers")
	}
	path := filepath.Join(dir, "order.ll")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	opt := func(passes string) {
		out := strings.TrimSuffix(path, ".ll") + "x.ll"
		frametest.Command(t, "", livetest.LLVM(t, version, "opt"), append(slices.Clone(opaque), "-passes="+passes, "-S", path, "-o", out)...)
		path = out
	}
	how := fmt.Sprintf("seed %d, llc-%d", seed, version)
	if r.Intn(3) == 0 {
		opt([]string{"default<O3>", "loop-unroll", "simplifycfg,jump-threading"}[r.Intn(3)])
		how += " optimized"
	}
	if gc {
		opt("rewrite-statepoints-for-gc")
	}
	flags := append(slices.Clone(opaque), []string{"-O0", "-O1", "-O2", "-O3"}[r.Intn(4)], "-relocation-model=static", "-enable-patchpoint-liveness=false")
	flags = append(flags, [][]string{nil, nil, {"-tail-dup-size=20"}, {"-tail-dup-size=50", "-tail-dup-placement-threshold=50", "-tail-dup-placement-aggressive-threshold=50"},
		{"-code-model=large"}, {"-enable-tail-merge=1", "-tail-merge-size=1"}}[r.Intn(6)]...)
	how += " " + strings.Join(flags, " ")
	object := strings.TrimSuffix(path, ".ll") + ".o"
	frametest.Command(t, "", livetest.LLVM(t, version, "llc"), append(flags, "-filetype=obj", path, "-o", object)...)
	host := filepath.Join(dir, "host.o")
	if _, err := os.Stat(host); err != nil {
		source := filepath.Join(dir, "host.c")
		require.NoError(t, os.WriteFile(source, []byte(orderHost), 0o600))
		frametest.Command(t, "", "gcc", "-O0", "-c", source, "-o", host)
	}
	program := filepath.Join(dir, "program")
	frametest.Command(t, "", "gcc", "-no-pie", "-o", program, object, host)
	out, err := exec.Command(program).Output()
	require.NoError(t, err, how)
	logged := map[int]map[int64]bool{} // numbers of the sites by return address
	for line := range strings.Lines(string(out)) {
		var at int
		var site int64
		_, err := fmt.Sscan(line, &at, &site)
		require.NoError(t, err)
		if logged[at] == nil {
			logged[at] = map[int64]bool{}
		}
		logged[at][site] = true
	}
	m, err := ir.ParseFile(path)
	require.NoError(t, err, how)
	for _, file := range []string{object, program} {
		for _, image := range frametest.MapsOf(t, file, m).Images {
			for f := range image.Functions() {
				for rec := range f.Records() {
					ms := sites.NewModules([]*ir.Module{m})
					e := sites.RecordEntry{Record: rec}
					e.Map, e.Function = f.Map, f.Function
					had, err := ms.Sites(e, "work")
					require.NoError(t, err, how)
					var reading maps.Reading
					f.Read(rec, &reading)
					require.NotEmpty(t, reading.Sites, "%s\n%s", how, reading.Note)
					tally.records++
					if len(had.Sites) == 1 {
						tally.before++
					}
					if len(reading.Sites) > 1 {
						tally.reasons[reading.Note[strings.LastIndex(reading.Note, "; ")+2:]]++
					}
					kind := reading.Sites[0].Kind
					at := int(rec.Offset)
					if kind == ir.PatchPointSite {
						at += 13
					}
					var may []int64
					told := true
					for _, s := range reading.Sites {
						number, ok := siteNumber(s)
						may, told = append(may, number), told && ok
					}
					if len(reading.Sites) == 1 {
						tally.after++
					}
					seen := logged[at]
					if len(seen) == 0 || !told {
						continue
					}
					tally.held++
					if len(seen) > 1 {
						tally.shared++
					}
					for number := range seen {
						require.Contains(t, may, number, "%s: %s: record at +%#x: it is %v\n%s", how, filepath.Base(file), rec.Offset, slices.Sorted(gomaps.Keys(seen)), text)
					}
				}
			}
		}
	}
}

// TestOrderTellsSitesApart requires that the order of sites with the same id distinguishes them, and that no record is assigned to a wrong site.
// Random programs log the site of each of their records.
func TestOrderTellsSitesApart(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	tally := orderTally{reasons: map[string]int{}}
	dir := t.TempDir()
	for seed := range int64(livetest.Times(16, 60)) { // 1,500 seeds were run once
		tellOrder(t, seed, dir, &tally)
	}
	require.Greater(t, tally.after, 10*tally.before)
	require.Positive(t, tally.shared, "no two sites share a record")
	t.Logf("%d records: %d told without their order, %d with it; %d held against the programs, %d of them of several sites; %v",
		tally.records, tally.before, tally.after, tally.held, tally.shared, tally.reasons)
}
