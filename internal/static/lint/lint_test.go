package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// linted returns the findings of a module: place, severity, rule and names of each.
func linted(t *testing.T, m *ir.Module, layouts ...*layout.Layout) []string {
	t.Helper()
	report, err := lint.Lint([]*ir.Module{m}, layouts)
	require.NoError(t, err)
	out := []string{}
	for _, f := range report.Findings {
		require.NotEmpty(t, f.What)
		require.NotEmpty(t, f.Do)
		place := strings.TrimSpace(fmt.Sprint(f.Line) + " " + f.Path)
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", place, f.Severity, f.Rule, strings.Join(f.Names, " "))))
	}
	return out
}

func lintFile(t *testing.T, dir, name string, layouts ...string) []string {
	t.Helper()
	m, err := ir.ParseFile(livetest.Testdata(t, dir, name))
	require.NoError(t, err)
	var read []*layout.Layout
	for _, path := range layouts {
		l, err := layout.Read(livetest.Testdata(t, dir, path))
		require.NoError(t, err)
		read = append(read, l)
	}
	return linted(t, m, read...)
}

// TestLintPrograms covers the programs whose frames other tests rebuild; the findings were checked by hand.
func TestLintPrograms(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		// Each bundle has %n, the only value that is read after the calls, except for their results.
		"chain.ll": {},
		// The guard's exit has to resume in @sum, which the IR does not name.
		"deoptimize.ll": {"31 warning: no-layout"},
		// The id is unique in the source. TestLintInlined covers the duplicate that inlining makes.
		"dup.ll":         {},
		"false_match.ll": {},
		"host_mod.ll":    {},
		// The stackmap of line 37 records four values; %s3 to %s9 read eight more after it.
		"jit_pp.ll": {"37 cannot resume: unrecorded %v3 %v4 %v5 %v6 %v7 %v8 %v9 %v10"},
		// %o2 is in no bundle, but the pass will put it into gc-live, as the only pointer.
		"jit_sp.ll":      {},
		"live_memory.ll": {},
		"odd_types.ll": {
			"24 cannot resume: lost-operand %f",
			"24 cannot resume: lost-operand %agg",
		},
		"pc_ret.ll":   {},
		"sm_spill.ll": {},
		"sp_push.ll":  {},
		"tick.ll":     {},
		"guards.ll":   {"36 warning: no-layout", "39 warning: no-layout", "42 warning: no-layout"},
		"patch.ll":    {},
		"shadows.ll":  {"126 warning: patch-bytes", "133 warning: patch-bytes", "140 warning: patch-bytes", "147 warning: patch-bytes"},
		// The tests of patched code do not need these results of calls, and allocas.
		"patches.ll": {
			"108 cannot resume: unrecorded %r",
			"149 cannot resume: unrecorded %r",
			"163 cannot resume: unrecorded %r",
			"226 cannot resume: unrecorded %p",
			"242 cannot resume: unrecorded %p",
			"350 warning: patch-bytes", // the interpreter makes no call at this statepoint
			"362 warning: patch-bytes",
			"374 warning: patch-bytes",
			"386 warning: patch-bytes",
			"387 warning: patch-bytes",
		},
		"patchexit.ll":       {"53 warning: not-compiled"}, // the block then calls @tick, which reads mxcsr
		"patching.ll":        {},
		"state.ll":           {},
		"memory.ll":          {},
		"crossing.ll":        {},
		"baseline.ll":        {},
		"floats.ll":          {},
		"recursion.ll":       {},
		"returned.ll":        {},
		"null.ll":            {},
		"vmark.ll":           {"43 warning: no-layout"},
		"vmframes.ll":        {},
		"vmjeandle.ll":       {"28 warning: no-layout"},
		"vmjllvm.ll":         {"53 warning: undefined-operand"}, // a local variable that was never stored to
		"vmsimple.ll":        {"33 warning: no-layout"},
		"vmpatchpoint.ll":    {},
		"vmtables.ll":        {},
		"vmrenamed.ll":       {},
		"vmrenamedseldom.ll": {},
		// The result of a call is not part of the frame while the call runs.
		"vmwanco.ll": {"42 cannot resume: unrecorded %r", "48 cannot resume: unrecorded %r"},
		// Operand 10 is undef on purpose, and no instruction reads it.
		"stop_at.ll": {"26 warning: undefined-operand"},
	}
	files, err := filepath.Glob(livetest.Testdata(t, "programs") + "/*.ll")
	require.NoError(t, err)
	require.Len(t, want, len(files))
	for _, path := range files {
		name := filepath.Base(path)
		require.Equal(t, want[name], lintFile(t, "programs", name), name)
	}
	require.Empty(t, lintFile(t, "programs", "deoptimize.ll", "deoptimize.layout.json"))
	require.Empty(t, lintFile(t, "programs", "guards.ll", "guards.layout.json"))
}

// TestLintRewritten requires no finding for a statepoint without a deopt bundle: it is only for the collector, and no frame resumes there.
// rewrite-statepoints-for-gc makes such a statepoint of every call, such as that of @twice in live_memory.ll. A frame would resume at a statepoint with
// an empty bundle, because another statepoint of the module has deopt operands.
func TestLintRewritten(t *testing.T) {
	t.Parallel()
	for _, version := range []int{16, 19, 22} {
		for name, want := range map[string][]string{
			"jit_sp.ll":      {},
			"live_memory.ll": {},
		} {
			m, err := ir.ParseFile(livetest.IR(t, version, name))
			require.NoError(t, err)
			found := linted(t, m)
			for n := range found {
				_, found[n], _ = strings.Cut(found[n], " ") // the line depends on the release
			}
			require.Equal(t, want, found, "%s, LLVM %d", name, version)
		}
		text, err := os.ReadFile(livetest.IR(t, version, "live_memory.ll"))
		require.NoError(t, err)
		const call = "@twice, i32 1, i32 0, i64 %n, i32 0, i32 0)"
		require.Equal(t, 1, strings.Count(string(text), call))
		asked := strings.Replace(string(text), call, call+` [ "deopt"() ]`, 1)
		require.Contains(t, strings.Join(linted(t, frametest.ReadModule(t, "asked.ll", asked)), "\n"), "cannot resume: unrecorded %heap %slot %a %b %c %d")
	}
}

// TestLintOnlyForCollector requires no advice about deopt bundles where every deopt bundle of a module is empty: the statepoints are for the collector.
// Where one statepoint has deopt operands, or the function has no collector, an empty bundle is a mistake.
func TestLintOnlyForCollector(t *testing.T) {
	t.Parallel()
	const rewritten = `declare void @collect()
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
define i64 @f(ptr addrspace(1) %o, ptr addrspace(1) %p, i64 %n) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2, i32 0, ptr elementtype(void ()) @collect, i32 0, i32 0, i32 0, i32 0) [ "deopt"(), "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %p) ]
  %r = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 1, i32 1)
  %v = load i64, ptr addrspace(1) %r
  %w = load i64, ptr addrspace(1) %q
  %s = add i64 %v, %w
  %u = add i64 %s, %n
  ret i64 %u
}
`
	const raw = `declare void @collect()
define i64 @f(ptr addrspace(1) %o, i64 %n) gc "statepoint-example" {
  call void @collect() [ "deopt"() ]
  %v = load i64, ptr addrspace(1) %o
  %s = add i64 %v, %n
  ret i64 %s
}
`
	const resumes = `define void @g(i64 %n) gc "statepoint-example" {
  call void @collect() "statepoint-id"="3" [ "deopt"(i64 %n) ]
  ret void
}
`
	require.Empty(t, linted(t, frametest.ReadModule(t, "rewritten.ll", rewritten)))
	require.Empty(t, linted(t, frametest.ReadModule(t, "raw.ll", raw)))
	require.Equal(t, []string{"5 cannot resume: unrecorded %n", "5 cannot resume: gc-live %o %p"}, linted(t, frametest.ReadModule(t, "both.ll", rewritten+resumes)))
	require.Equal(t, []string{"3 cannot resume: unrecorded %n"}, linted(t, frametest.ReadModule(t, "both.ll", raw+resumes)))
	require.Equal(t, []string{"3 cannot resume: unrecorded %o %n"},
		linted(t, frametest.ReadModule(t, "without.ll", strings.Replace(raw, ` gc "statepoint-example"`, "", 1))))
}

func TestLintFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, layout string
		want         []string
	}{
		{"unrecorded.ll", "", []string{
			"18 cannot resume: unrecorded %b",
			"25 cannot resume: unrecorded %p",
			"32 cannot resume: unrecorded %a",
			"44 cannot resume: unrecorded %x",
		}},
		{"gclive.ll", "", []string{"15 cannot resume: gc-live %o %p"}},
		{"ids.ll", "", []string{
			"10 cannot resume: same-id",
			"13 cannot resume: same-id",
			"17 warning: same-id",
			"18 warning: same-id",
			"28 warning: same-id",
			"33 warning: same-id",
			"34 warning: same-id",
			"35 warning: same-id",
			"36 warning: same-id",
		}},
		{"dropped.ll", "", []string{"12 warning: no-record", "16 warning: no-record"}},
		{"patchpoints.ll", "", []string{"24 warning: not-compiled", "29 warning: not-compiled"}},
		{"guard.ll", "", []string{
			"7 warning: no-layout",
			"7 warning: not-compiled",
			"11 warning: no-layout",
			"11 warning: undefined-operand",
		}},
		{"guard.ll", "guard.layout.json", []string{
			"7 warning: not-compiled",
			"11 cannot resume: undefined-operand", // the operand is %b of @slow
		}},
		{"guard.ll", "misfit.layout.json", []string{
			"2 exits[0].function cannot resume: layout",
			"3 exits[1] cannot resume: layout",
			"4 exits[2].slots[0].operand cannot resume: layout",
			"4 exits[2].when warning: layout",
			"4 exits[2].resume.function cannot resume: layout",
			"5 exits[3].when[0].operand cannot resume: layout",
			"5 exits[3].resume.block cannot resume: layout",
			"5 exits[3].slots[0].name cannot resume: layout",
			"7 cannot resume: unrecorded %b",
			"7 cannot resume: layout %t",
			"7 warning: not-compiled",
			"11 cannot resume: no-layout",
			"11 warning: undefined-operand",
		}},
		{"clobbered.ll", "clobbered.layout.json", []string{"8 warning: clobbered-operand %v"}},
		// Without the layout, no code needs %v.
		{"clobbered.ll", "", []string{}},
	} {
		var layouts []string
		if c.layout != "" {
			layouts = append(layouts, c.layout)
		}
		require.Equal(t, c.want, lintFile(t, "lint", c.file, layouts...), "%s %s", c.file, c.layout)
	}
}

// TestLintPatchBytes covers regions that are too small, for each kind of site and architecture.
func TestLintPatchBytes(t *testing.T) {
	t.Parallel()
	const cannot, warning = "2 cannot resume: patch-bytes", "2 warning: patch-bytes"
	for _, c := range []struct{ triple, site, want string }{
		{"x86_64-pc-linux-gnu", "patchpoint 12 @callee", cannot},
		{"x86_64-pc-linux-gnu", "patchpoint 13 @callee", ""},
		{"x86_64-pc-linux-gnu", "patchpoint 12 inttoptr (i64 4096 to ptr)", cannot},
		{"", "patchpoint 0 @callee", cannot},
		{"x86_64-pc-linux-gnu", "patchpoint 0 null", warning},
		{"x86_64-pc-linux-gnu", "patchpoint 4 null", warning},
		{"x86_64-pc-linux-gnu", "patchpoint 5 null", ""},
		{"x86_64-pc-linux-gnu", "stackmap 0", ""},
		{"x86_64-pc-linux-gnu", "stackmap 4", warning},
		{"x86_64-pc-linux-gnu", "stackmap 5", ""},
		{"x86_64-pc-linux-gnu", "statepoint 0", ""},
		{"x86_64-pc-linux-gnu", "statepoint 4", warning + "; " + warning},
		{"x86_64-pc-linux-gnu", "statepoint 5", warning}, // large enough, but the region has nops in place of the call
		{"x86_64-pc-linux-gnu", "gc.statepoint 0 @callee", ""},
		{"x86_64-pc-linux-gnu", "gc.statepoint 5 @callee", warning},
		{"x86_64-pc-linux-gnu", "gc.statepoint 5 null", ""}, // also without a call, but so is the module's site: its callee is null
		{"aarch64-unknown-linux-gnu", "stackmap 6", cannot},
		{"aarch64-unknown-linux-gnu", "stackmap 8", ""},
		{"aarch64-unknown-linux-gnu", "patchpoint 12 inttoptr (i64 4096 to ptr)", cannot},
		{"aarch64-unknown-linux-gnu", "patchpoint 16 inttoptr (i64 4096 to ptr)", ""},
		{"aarch64-unknown-linux-gnu", "patchpoint 4 null", ""},
		{"aarch64-unknown-linux-gnu", "statepoint 3", warning + "; " + warning},
		{"s390x-ibm-linux-gnu", "statepoint 8", warning},
		{"s390x-ibm-linux-gnu", "patchpoint 0 @callee", ""}, // lint reports nothing for this kind of site on s390x
	} {
		want := []string{}
		if c.want != "" {
			want = strings.Split(c.want, "; ")
		}
		require.Equal(t, want, linted(t, frametest.ReadModule(t, "bytes.ll", regionOf(c.triple, c.site))), "%s %s", c.triple, c.site)
	}
}

// regionOf is a module with one site in its second line: its kind, its bytes, and its target.
func regionOf(triple, site string) string {
	words := strings.SplitN(site, " ", 3)
	kind, bytes := words[0], words[1]
	call := "call void @callee() #0 [ \"deopt\"(i64 %a) ]"
	switch kind {
	case "stackmap":
		call = fmt.Sprintf("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 %s, i64 %%a)", bytes)
	case "gc.statepoint":
		call = fmt.Sprintf("%%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 %s, ptr elementtype(void ()) %s, i32 0, i32 0, i32 0, i32 0) [ \"deopt\"(i64 %%a) ]", bytes, words[2])
	case "patchpoint":
		call = fmt.Sprintf("call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 %s, ptr %s, i32 0, i64 %%a)", bytes, words[2])
	}
	return fmt.Sprintf(`target triple = %q
define void @f(i64 %%a) gc "statepoint-example" { %s ret void }
declare void @callee()
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
attributes #0 = { "statepoint-num-patch-bytes"=%q }
`, triple, call+"\n", bytes)
}

// TestLintPointerBesideAConstant requires that a record does not distinguish a pointer from a constant next to it in gc-live, except for a null that
// is not relocated.
func TestLintPointerBesideAConstant(t *testing.T) {
	for _, c := range []struct {
		constant, relocate string
		unnamed            bool
	}{
		{"null", "", false},
		{"null", "%m = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 1, i32 1)", true},
		{"addrspacecast (ptr @heap to ptr addrspace(1))", "", true},
	} {
		m, err := ir.Parse("beside.ll", []byte(strings.NewReplacer("CONSTANT", c.constant, "RELOCATE", c.relocate).Replace(livetest.Prelude+`
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
@heap = global i64 0
define i64 @v(ptr addrspace(1) %p, i64 %a) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %a), "gc-live"(ptr addrspace(1) %p, ptr addrspace(1) CONSTANT) ]
  %n = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  RELOCATE
  %l = load i64, ptr addrspace(1) %n
  ret i64 %l
}`)))
		require.NoError(t, err)
		report, err := lint.Lint([]*ir.Module{m}, nil)
		require.NoError(t, err)
		var names []string
		for _, f := range report.Findings {
			if f.Rule == lint.GCLiveUnnamed {
				names = append(names, f.Names...)
			}
		}
		require.Equal(t, c.unnamed, slices.Equal(names, []string{"%p"}), "%s %s: %v", c.constant, c.relocate, names)
	}
}

// TestLintLayoutNamesTwice requires an error for two spellings of one name, because such a layout is rejected at run time.
func TestLintLayoutNamesTwice(t *testing.T) {
	m := frametest.ReadModule(t, "m.ll", `
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @opt(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a)
  ret i64 %a
}
define i64 @plain(i64 %"$n") {
  br label %l
l:
  ret i64 %"$n"
}
`)
	l, err := layout.Parse("l.json", []byte(`{"schema":"reframe.layout/v1","exits":[{"function":"opt","resume":{"function":"plain","block":"l"},
"slots":[{"operand":0,"name":"%$n"},
{"operand":0,"name":"%\"$n\""}]}]}`))
	require.NoError(t, err)
	report, err := lint.Lint([]*ir.Module{m}, []*layout.Layout{l})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	require.Equal(t, "l.json:3: exits[0].slots[1].name: %\"$n\" is given twice",
		fmt.Sprintf("%s:%d: %s: %s", report.Findings[0].File, report.Findings[0].Line, report.Findings[0].Path, report.Findings[0].What))
}

// TestLintVMLayouts requires that a layout of a virtual machine runs over every site. With such a layout, a deoptimize needs no other one.
func TestLintVMLayouts(t *testing.T) {
	simple, err := vmlayout.Read("simple")
	require.NoError(t, err)
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "vmsimple.ll"))
	require.NoError(t, err)
	found := func(from, to string) (what []string) {
		changed := strings.Replace(string(text), from, to, 1)
		require.True(t, from == to || changed != string(text), from)
		m, err := ir.Parse("vm.ll", []byte(changed))
		require.NoError(t, err)
		report, err := lint.Lint([]*ir.Module{m}, nil, simple)
		require.NoError(t, err)
		for _, f := range report.Findings {
			require.Equal(t, lint.VMLayout, f.Rule)
			require.Equal(t, lint.CannotResume, f.Severity)
			require.EqualValues(t, uint64(2882400000), *f.ID)
			what = append(what, f.What)
		}
		return what
	}
	require.Empty(t, found("", ""))
	const at = "simple does not read its operands: simple:"
	for _, c := range []struct{ name, from, to, says string }{
		{"two operands swapped", "i64 12901679105,\n    i64 %small", "i64 %small,\n    i64 12901679105", "record 2882400000 of @compiled: constant: operand 18 (i64 %small) is a value; expected a tag"},
		{"a tag left out", "i64 12901679105,\n    i64 %small", "i64 %small", "record 2882400000 of @compiled: constant: operand 18 (i64 %small) is a value; expected a tag"},
		{"an object that is not there", "i64 21474836484", "i64 21474836485", "record 2882400000 of @compiled: local[1] of frame 0 is object 4, which is not defined"},
		{"a place twice", "i64 12901679105", "i64 12901679104", "record 2882400000 of @compiled: two values for place 0"},
		{"a frame that would run twice", "i64 4294967298", "i64 4294967296", `frame 1 is resumed by "reexecute"`},
		{"fewer fields than it says", "i32 2,", "i32 1,", "record 2882400000 of @compiled: fail: operand 29 is no tag: 6"},
		{"a boxed double", "i64 8606711808,\n    i64 %boxed", "i64 8606711808,\n    double %d", "simple: local[0] of frame 0, operand 11 (%d): it is double, but the layout decodes bits"},
		{"undef", "i64 8606711808,\n    i64 %boxed", "i64 8606711808,\n    i64 undef", "simple: local[0] of frame 0, operand 11: it is undef or poison in the module; mark a dead place with dead()"},
		{"a double for a reference", "[4 x i64]* @heap", "double %d", "simple: stack[0] of frame 0, operand 17 (%d): it is double, but ref in the layout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			what := found(c.from, c.to)
			require.Len(t, what, 1)
			require.Contains(t, what[0], c.says)
			if !strings.HasPrefix(c.says, "simple: ") {
				require.Contains(t, what[0], at[:len(at)-1])
			}
		})
	}
}

// TestLintInfo requires that a layout's info about a position is compared with a site's frame at that position, if constants of the site give the
// position.
func TestLintInfo(t *testing.T) {
	layout, err := vmlayout.Parse("table.star", []byte(`
CODE = {(7, 4): {"stack in-call": 1}, (7, 17): {"stack": 2, "locks": 1}}
def info(method, position): return CODE.get((method, position))
def frames(site):
    r, all = site.operands.reader(), []
    while r.more:
        f = frame(r.next(), r.next(), r.constant("how") and "in-call" or "reexecute")
        for _ in range(r.constant("operands")): f.push(r.next())
        for _ in range(r.constant("locks")): f.monitor(r.next())
        all.append(f)
    return all[::-1]
`))
	require.NoError(t, err)
	const caller, inner = "i64 7, i32 4, i32 1, i32 1, i32 %a, i32 0, ", "i64 7, i32 17, i32 0, "
	for deopt, says := range map[string][]string{
		caller + inner + "i32 2, i32 %a, i32 %b, i32 1, ptr %lock": nil,
		caller + inner + "i32 1, i32 %a, i32 1, ptr %lock":         {`table.star: frame 0, at position 17: 1 on the operand stack, but in info "stack" is 2`},
		caller + inner + "i32 2, i32 %a, i32 %b, i32 0":            {`table.star: frame 0, at position 17: 0 locks, but in info "locks" is 1`},
		"i64 7, i32 4, i32 1, i32 0, i32 0, " + inner + "i32 3, i32 %a, i32 %b, i32 %b, i32 1, ptr %lock": {
			`table.star: frame 0, at position 17: 3 on the operand stack, but in info "stack" is 2`, `table.star: frame 1, at position 4: 0 on the operand stack, but in info "stack in-call" is 1`},
	} {
		m, err := ir.Parse("vm.ll", fmt.Appendf(nil, "declare void @g()\ndefine void @f(i32 %%a, i32 %%b, ptr %%lock) {\n  call void @g() [ \"deopt\"(%s) ]\n  ret void\n}\n", deopt))
		require.NoError(t, err)
		report, err := lint.Lint([]*ir.Module{m}, nil, layout)
		require.NoError(t, err)
		var what []string
		for _, f := range report.Findings {
			require.Equal(t, lint.VMLayout, f.Rule)
			what = append(what, f.What)
		}
		require.Equal(t, says, what, deopt)
	}
}

// TestLintMemory requires one warning for a layout that reads memory, which lint does not have, and no finding for its sites.
func TestLintMemory(t *testing.T) {
	layout, err := vmlayout.Parse("table.star", []byte("def frames(site):\n  return frame('m', read(address_of('exits') + 4 * site.id, 'u32'))\n"))
	require.NoError(t, err)
	m, err := ir.Parse("vm.ll", []byte("declare void @g()\ndefine void @f(i32 %a) {\n  call void @g() [ \"deopt\"(i32 %a) ]\n  call void @g() [ \"deopt\"(i32 %a) ]\n  ret void\n}\n"))
	require.NoError(t, err)
	report, err := lint.Lint([]*ir.Module{m}, nil, layout)
	require.NoError(t, err)
	report.Findings = slices.DeleteFunc(report.Findings, func(f lint.Finding) bool { return f.Rule != lint.VMLayout })
	require.Equal(t, []lint.Finding{{Rule: lint.VMLayout, Severity: lint.LintWarning, File: "table.star", What: "it reads memory to make frames, so lint cannot check the sites that it is for",
		Do: "check a process: reframe maps --check --layout table.star PID"}}, report.Findings)
}

// TestLintReferences requires findings for a reference that the collector does not know, and for a pointer into an object instead of a reference.
func TestLintReferences(t *testing.T) {
	layout, err := vmlayout.Parse("refs.star", []byte("def frames(site):\n  f = frame('m', 1)\n  for n, v in enumerate(site.operands): f.local(n, v.as_type('ref'))\n  return f\n"))
	require.NoError(t, err)
	const start = `declare void @g()
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
define void @f(ptr addrspace(1) %p, ptr addrspace(1) %q, i64 %n) gc "statepoint-example" {
  %same = getelementptr i8, ptr addrspace(1) %p, i64 0
  %on = getelementptr i8, ptr addrspace(1) %p, i64 16
  %at = getelementptr i8, ptr addrspace(1) %p, i64 %n
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @g, i32 0, i32 0, i32 0, i32 0) [ `
	for bundles, says := range map[string][]string{
		`"deopt"(ptr addrspace(1) %p, ptr addrspace(1) %same), "gc-live"(ptr addrspace(1) %p, ptr addrspace(1) %same)`: nil,
		`"deopt"(ptr addrspace(1) %p, ptr addrspace(1) %q), "gc-live"(ptr addrspace(1) %p)`:                            {"refs.star: local[1] of frame 0, operand 1 (%q): a reference that the statepoint does not list for the collector"},
		`"deopt"(ptr addrspace(1) %on, ptr addrspace(1) %at), "gc-live"(ptr addrspace(1) %p, ptr addrspace(1) %on, ptr addrspace(1) %at)`: {
			"refs.star: local[0] of frame 0, operand 0 (%on): a pointer into an object; expected a reference to one", "refs.star: local[1] of frame 0, operand 1 (%at): a pointer into an object; expected a reference to one"},
	} {
		m, err := ir.Parse("vm.ll", []byte(start+bundles+" ]\n  ret void\n}\n"))
		require.NoError(t, err)
		report, err := lint.Lint([]*ir.Module{m}, nil, layout)
		require.NoError(t, err)
		var what []string
		for _, f := range report.Findings {
			if f.Rule == lint.VMLayout {
				what = append(what, f.What)
			}
		}
		require.Equal(t, says, what, bundles)
	}
}
