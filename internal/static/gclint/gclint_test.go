package gclint_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/gclint"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

const declarations = `declare void @collect()
declare i1 @test()
declare void @leaf(ptr addrspace(1)) "gc-leaf-function"
declare ptr addrspace(1) @element(ptr addrspace(1)) "gc-leaf-function"
declare ptr addrspace(1) @new() "gc-leaf-function"
declare double @cos(double)
declare void @log(ptr addrspace(1))
declare i64 @number(i64) "gc-leaf-function"
declare void @give(ptr) "gc-leaf-function"
declare i32 @personality(...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
`

const (
	head = "define i64 @f(ptr addrspace(1) %o, ptr addrspace(1) %p, i64 %n, i1 %c) gc \"statepoint-example\" personality ptr @personality {\nentry:\n"
	tail = "  ret i64 0\n}\n"
)

// statepoint returns a statepoint that yields the token %name.
func statepoint(name string, live ...string) string {
	return fmt.Sprintf("  %%%s = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @collect, i32 0, i32 0, i32 0, i32 0) [ \"gc-live\"(%s) ]\n",
		name, pointers(live))
}

func pointers(live []string) string {
	var list []string
	for _, v := range live {
		kind := "ptr addrspace(1) %"
		if strings.HasPrefix(v, "slot") {
			kind = "ptr %"
		}
		list = append(list, kind+v)
	}
	return strings.Join(list, ", ")
}

// relocate returns a gc.relocate.
func relocate(name, token string, base, derived int) string {
	return fmt.Sprintf("  %%%s = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %%%s, i32 %d, i32 %d)\n", name, token, base, derived)
}

func load(name, from string) string {
	return "  %" + name + " = load i64, ptr addrspace(1) %" + from + "\n"
}

func check(t *testing.T, text string, pointers ...string) *gclint.Report {
	t.Helper()
	var c gclint.Collectors
	for _, p := range pointers {
		require.NoError(t, c.Set(p))
	}
	r, err := gclint.Check([]*ir.Module{frametest.ReadModule(t, "gc.ll", text)}, &c)
	require.NoError(t, err)
	return r
}

// brief returns the findings of a module as "certainty rule value origin".
func brief(r *gclint.Report) []string {
	list := []string{}
	for _, f := range r.Findings {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Certainty, f.Rule, f.Value, f.Origin)))
	}
	return list
}

func TestCheck(t *testing.T) {
	t.Parallel()
	derived := "  %d = getelementptr i8, ptr addrspace(1) %p, i64 8\n"
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"relocated", derived + statepoint("t", "p", "d") + relocate("q", "t", 0, 0) + relocate("e", "t", 0, 1) + load("x", "q") + load("y", "e"), nil},
		{"not relocated", statepoint("t", "o") + relocate("q", "t", 0, 0) + load("x", "q") + load("y", "p"), []string{"certain stale-use %p %p"}},
		{"derived before", derived + statepoint("t", "p") + load("y", "d"), []string{"certain stale-use %d %d"}},
		{"derived after", statepoint("t", "p") + derived + load("y", "d"), []string{"certain stale-use %d %p"}},
		{"second safepoint", statepoint("t", "p") + relocate("q", "t", 0, 0) + statepoint("u") + load("x", "q"), []string{"certain stale-use %q %q"}},
		{"relocated too late", statepoint("t", "p") + statepoint("u") + relocate("q", "t", 0, 0) + load("x", "q"), []string{"certain stale-use %q %t"}},
		{"on one path", "  br i1 %c, label %a, label %b\na:\n" + statepoint("t", "o") + "  br label %b\nb:\n" + load("x", "p"), []string{"likely stale-use %p %p"}},
		{"stale by one edge", "  br i1 %c, label %a, label %b\na:\n" + statepoint("t", "o") + "  br label %b\nb:\n  %v = phi ptr addrspace(1) [ %p, %a ], [ %o, %entry ]\n" + load("x", "v"),
			[]string{"likely stale-use %v %p"}},
		{"phi of relocated", "  br i1 %c, label %a, label %b\na:\n" + statepoint("t", "p") + relocate("q", "t", 0, 0) + "  br label %b\nb:\n  %v = phi ptr addrspace(1) [ %q, %a ], [ %p, %entry ]\n" + load("x", "v"), nil},
		{"loop", "  br label %l\nl:\n  %v = phi ptr addrspace(1) [ %p, %entry ], [ %w, %l ]\n" + statepoint("t", "v") + relocate("w", "t", 0, 0) + load("x", "w") + "  br i1 %c, label %l, label %b\nb:\n", nil},
		{"loop that keeps", "  br label %l\nl:\n" + load("x", "p") + statepoint("t") + "  br i1 %c, label %l, label %b\nb:\n", []string{"likely stale-use %p %p"}},
		{"stale phi without a use", "  br i1 %c, label %a, label %b\na:\n" + statepoint("t", "o") + "  br label %b\nb:\n  %v = phi ptr addrspace(1) [ %p, %a ], [ %o, %entry ]\n", nil},
		{"null on the path", "  %z = icmp eq ptr addrspace(1) %p, null\n" + statepoint("t", "o") + "  br i1 %z, label %a, label %b\na:\n  call void @leaf(ptr addrspace(1) %p)\n  br label %b\nb:\n", nil},
		{"null on the path, null first", "  %z = icmp eq ptr addrspace(1) null, %p\n" + statepoint("t", "o") + "  br i1 %z, label %a, label %b\na:\n  call void @leaf(ptr addrspace(1) %p)\n  br label %b\nb:\n", nil},
		{"one of two origins is null", statepoint("t") + "  %v = select i1 %c, ptr addrspace(1) %o, ptr addrspace(1) %p\n  %z = icmp eq ptr addrspace(1) %p, null\n  br i1 %z, label %a, label %b\na:\n" + load("x", "v") + "  br label %b\nb:\n",
			[]string{"likely stale-use %v %o"}},
		{"compared with null", statepoint("t", "o") + "  %z = icmp eq ptr addrspace(1) %p, null\n", nil},
		{"old and old", statepoint("t", "o") + "  %z = icmp eq ptr addrspace(1) %p, %o\n", nil},
		{"old and new", statepoint("t", "o") + relocate("q", "t", 0, 0) + "  %z = icmp eq ptr addrspace(1) %p, %q\n", []string{"certain stale-use %p %p"}},
		{"invoke", "  %t = invoke token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @collect, i32 0, i32 0, i32 0, i32 0) [ \"gc-live\"(ptr addrspace(1) %p) ] to label %a unwind label %b\n" +
			"a:\n" + relocate("q", "t", 0, 0) + load("x", "q") + "  ret i64 %x\nb:\n  %l = landingpad token cleanup\n" + relocate("r", "l", 0, 0) + load("y", "r") + load("z", "o"), []string{"certain stale-use %o %o"}},

		{"copy", "  %i = ptrtoint ptr addrspace(1) %p to i64\n" + statepoint("t", "p") + "  %q = inttoptr i64 %i to ptr addrspace(1)\n" + load("x", "q"), []string{"certain stale-copy %q %i"}},
		{"NaN box", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  %b = or i64 %i, -1970324836974592\n  %g = bitcast i64 %b to double\n" + statepoint("t", "p") +
			"  %h = bitcast double %g to i64\n  %j = and i64 %h, 281474976710655\n  %q = inttoptr i64 %j to ptr addrspace(1)\n" + load("x", "q"), []string{"certain stale-copy %q %g"}},
		{"unmanaged pointer", "  %i = addrspacecast ptr addrspace(1) %p to ptr\n" + statepoint("t", "p") + "  %x = load i64, ptr %i\n", []string{"certain stale-copy %i %i"}},
		{"copy as a number", "  %i = ptrtoint ptr addrspace(1) %p to i64\n" + statepoint("t", "p") + "  %h = call i64 @number(i64 %i)\n", []string{"possible stale-copy %i %i"}},
		{"tag", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  %g = and i64 %i, 7\n" + statepoint("t", "p") + "  %h = call i64 @number(i64 %g)\n", nil},
		{"half of a word", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  %g = and i64 %i, 65535\n" + statepoint("t", "p") + "  %h = call i64 @number(i64 %g)\n", nil},
		{"compressed", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  %g = and i64 %i, 4294967295\n" + statepoint("t", "p") + "  %h = call i64 @number(i64 %g)\n", []string{"possible stale-copy %g %g"}},
		{"difference", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  %j = ptrtoint ptr addrspace(1) %o to i64\n  %g = sub i64 %i, %j\n" + statepoint("t", "p") + "  %h = call i64 @number(i64 %g)\n", nil},

		{"slot", "  %slot = alloca ptr addrspace(1)\n  store ptr addrspace(1) %p, ptr %slot\n" + statepoint("t", "o") + "  %q = load ptr addrspace(1), ptr %slot\n" + load("x", "q"), []string{"certain stale-slot %q %slot"}},
		{"slot in the bundle", "  %slot = alloca ptr addrspace(1)\n  store ptr addrspace(1) %p, ptr %slot\n" + statepoint("t", "o", "slot") + "  %q = load ptr addrspace(1), ptr %slot\n" + load("x", "q"), nil},
		{"slot stored again", "  %slot = alloca ptr addrspace(1)\n  store ptr addrspace(1) %p, ptr %slot\n" + statepoint("t", "p") + relocate("r", "t", 0, 0) + "  store ptr addrspace(1) %r, ptr %slot\n  %q = load ptr addrspace(1), ptr %slot\n" + load("x", "q"), nil},
		{"slot that escapes", "  %slot = alloca ptr addrspace(1)\n  store ptr addrspace(1) %p, ptr %slot\n  call void @give(ptr %slot)\n" + statepoint("t", "o") + "  %q = load ptr addrspace(1), ptr %slot\n" + load("x", "q"), nil},
		{"part of a slot", "  %slot = alloca [2 x ptr addrspace(1)]\n  %s = getelementptr ptr addrspace(1), ptr %slot, i64 %n\n  store ptr addrspace(1) %p, ptr %s\n" + statepoint("t", "o") + "  %q = load ptr addrspace(1), ptr %s\n" + load("x", "q"),
			[]string{"possible stale-slot %q %slot"}},

		{"own base", derived + statepoint("t", "d") + relocate("e", "t", 0, 0), []string{"certain own-base %d %d"}},
		{"own base, offset unknown", "  %d = getelementptr i8, ptr addrspace(1) %p, i64 %n\n" + statepoint("t", "d") + relocate("e", "t", 0, 0), []string{"likely own-base %d %d"}},
		{"offset zero", "  %d = getelementptr i8, ptr addrspace(1) %p, i64 0\n" + statepoint("t", "d") + relocate("e", "t", 0, 0), nil},
		{"other base", derived + statepoint("t", "o", "d") + relocate("e", "t", 0, 1), []string{"likely wrong-base %d %o"}},
		{"base is derived", derived + "  %e = getelementptr i8, ptr addrspace(1) %d, i64 8\n" + statepoint("t", "d", "e") + relocate("q", "t", 0, 1), []string{"certain wrong-base %e %d"}},
		{"own base of no bytes", "  %d = getelementptr {}, ptr addrspace(1) %p, i64 5\n  %e = getelementptr [0 x i64], ptr addrspace(1) %d, i64 %n\n" + statepoint("t", "d", "e") + relocate("q", "t", 0, 0) + relocate("r", "t", 1, 1), nil},
		{"own base, offset from null", "  %d = getelementptr i8, ptr addrspace(1) null, i64 8\n  %e = getelementptr i8, ptr addrspace(1) %d, i64 8\n" + statepoint("t", "e") + relocate("q", "t", 0, 0), nil},
		{"own base, offsets cancel out", "  %d = getelementptr {i8, i64}, ptr addrspace(1) %p, i64 0, i32 1\n  %e = getelementptr i64, ptr addrspace(1) %d, i32 -1\n" + statepoint("t", "e") + relocate("q", "t", 0, 0), nil},
		{"own base, two offsets", derived + "  %e = getelementptr i32, ptr addrspace(1) %d, i32 -1\n" + statepoint("t", "e") + relocate("q", "t", 0, 0), []string{"certain own-base %e %e"}},
		{"own base, offset from a phi", "  br i1 %c, label %a, label %b\na:\n  br label %b\nb:\n  %v = phi ptr addrspace(1) [ %p, %entry ], [ null, %a ]\n  %d = getelementptr i8, ptr addrspace(1) %v, i64 8\n" + statepoint("t", "d") + relocate("q", "t", 0, 0),
			[]string{"likely own-base %d %d"}},
		{"leaf that returns a derived pointer", "  %d = call ptr addrspace(1) @element(ptr addrspace(1) %p)\n" + statepoint("t", "p", "d") + relocate("q", "t", 0, 1), []string{"possible wrong-base %d %p"}},
		{"leaf that returns a base", derived + "  %e = call ptr addrspace(1) @element(ptr addrspace(1) %d)\n" + statepoint("t", "e", "d") + relocate("q", "t", 0, 1), []string{"possible wrong-base %d %e"}},
		{"loaded derived pointer", "  %d = load ptr addrspace(1), ptr addrspace(1) %p\n" + statepoint("t", "p", "d") + relocate("q", "t", 0, 1), []string{"possible wrong-base %d %p"}},
		{"allocated object with another base", "  %d = call ptr addrspace(1) @new()\n" + statepoint("t", "p", "d") + relocate("q", "t", 0, 1), []string{"likely wrong-base %d %p"}},
		{"pair of parameters", statepoint("t", "p", "o") + relocate("e", "t", 0, 1), []string{"possible wrong-base %o %p"}},
		{"phis of base and derived", "  %e = getelementptr i8, ptr addrspace(1) %o, i64 8\n" + derived + "  br i1 %c, label %a, label %b\na:\n  br label %b\nb:\n  %x = phi ptr addrspace(1) [ %d, %entry ], [ %e, %a ]\n  %y = phi ptr addrspace(1) [ %p, %entry ], [ %o, %a ]\n" +
			statepoint("t", "y", "x") + relocate("q", "t", 0, 1), nil},
		{"phi of the wrong base", "  %e = getelementptr i8, ptr addrspace(1) %o, i64 8\n" + derived + "  br i1 %c, label %a, label %b\na:\n  br label %b\nb:\n  %x = phi ptr addrspace(1) [ %d, %entry ], [ %e, %a ]\n  %y = phi ptr addrspace(1) [ %p, %entry ], [ %p, %a ]\n" +
			statepoint("t", "y", "x") + relocate("q", "t", 0, 1), []string{"likely wrong-base %x %y"}},
		{"select of the wrong base", derived + "  %e = getelementptr i8, ptr addrspace(1) %o, i64 8\n  %x = select i1 %c, ptr addrspace(1) %d, ptr addrspace(1) %e\n  %y = select i1 %c, ptr addrspace(1) %o, ptr addrspace(1) %p\n" +
			statepoint("t", "y", "x") + relocate("q", "t", 0, 1), []string{"likely wrong-base %x %y"}},

		{"not a safepoint", statepoint("t", "p") + relocate("q", "t", 0, 0) + "  call void @collect()\n" + load("x", "q"), []string{"possible no-safepoint @collect"}},
		{"not a safepoint, nothing live", statepoint("t", "p") + "  call void @collect()\n", nil},
		{"leaf", statepoint("t", "p") + relocate("q", "t", 0, 0) + "  call void @leaf(ptr addrspace(1) %q)\n" + load("x", "q"), nil},

		{"before the rewriting", derived + "  call void @collect()\n" + load("x", "p") + load("y", "d"), nil},
		{"before: copy", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  call void @collect()\n  %q = inttoptr i64 %i to ptr addrspace(1)\n" + load("x", "q"), []string{"certain stale-copy %q %i"}},
		{"before: copy across a leaf", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  call void @leaf(ptr addrspace(1) %p)\n  %q = inttoptr i64 %i to ptr addrspace(1)\n" + load("x", "q"), nil},
		{"before: slot for mem2reg", "  %slot = alloca ptr addrspace(1)\n  store ptr addrspace(1) %p, ptr %slot\n  call void @collect()\n  %q = load ptr addrspace(1), ptr %slot\n" + load("x", "q"), nil},
		{"before: copy across a function of the C library", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  %y = call double @cos(double 0.0)\n  %q = inttoptr i64 %i to ptr addrspace(1)\n" + load("x", "q"), nil},
		{"before: copy across another function with the name", "  %i = ptrtoint ptr addrspace(1) %p to i64\n  call void @log(ptr addrspace(1) %p)\n  %q = inttoptr i64 %i to ptr addrspace(1)\n" + load("x", "q"), []string{"certain stale-copy %q %i"}},
		{"before: volatile slot", "  %slot = alloca ptr addrspace(1)\n  store volatile ptr addrspace(1) %p, ptr %slot\n  call void @collect()\n  %q = load volatile ptr addrspace(1), ptr %slot\n" + load("x", "q"), []string{"certain stale-slot %q %slot"}},
		{"before: copy in a slot", "  %slot = alloca i64\n  %i = ptrtoint ptr addrspace(1) %p to i64\n  store i64 %i, ptr %slot\n  call void @collect()\n  %j = load i64, ptr %slot\n  %q = inttoptr i64 %j to ptr addrspace(1)\n" + load("x", "q"), []string{"certain stale-slot %q %slot"}},
	} {
		want := c.want
		if want == nil {
			want = []string{}
		}
		require.Equal(t, want, brief(check(t, declarations+head+c.body+tail)), c.name)
	}
}

func TestCheckStatesTheSafepoint(t *testing.T) {
	t.Parallel()
	r := check(t, declarations+head+statepoint("t", "o")+load("x", "p")+load("y", "p")+tail)
	require.Equal(t, []gclint.Finding{{Rule: gclint.StaleUse, Certainty: gclint.Certain, File: "gc.ll", Line: 16, Function: "f", Block: "entry", Value: "%p", Origin: "%p",
		Safepoint: &gclint.Safepoint{Line: 15, Block: "entry", Callee: "@collect"}, More: 1,
		What: "%p is dereferenced after the safepoint at line 15 (call of @collect), at which %p was not relocated",
		Do:   "list %p in the gc-live bundle at line 15, and use its gc.relocate after it"}}, r.Findings)
	require.Equal(t, 1, r.Functions)
	require.Equal(t, 1, r.Safepoints)
}

func TestCheckLeaves(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`define void @f() "gc-leaf-function" { call void @collect() ret void }`:                                                "possible leaf",
		`define void @f() "gc-leaf-function" gc "statepoint-example" { ` + strings.TrimSpace(statepoint("t")) + "\nret void }": "likely leaf",
		`define void @f() "gc-leaf-function" { call void @g() ret void }
define void @g() gc "statepoint-example" { ` + strings.TrimSpace(statepoint("t")) + "\nret void }": "likely leaf",
		`define void @f() "gc-leaf-function" { call void @leaf(ptr addrspace(1) null) ret void }`: "",
		`define void @f() "gc-leaf-function" { call void @f() ret void }`:                         "",
		`define void @f() { call void @g() "gc-leaf-function" ret void }
define void @g() { call void @h() ret void }
define void @h() { call void @g() call void @collect() ret void }`: "possible leaf @g",
	} {
		require.Equal(t, want, strings.Join(brief(check(t, declarations+body+"\n")), "; "), body)
	}
}

func TestCheckCollectors(t *testing.T) {
	t.Parallel()
	text := strings.Replace(declarations+head+statepoint("t", "o")+load("x", "p")+tail, "statepoint-example", "mine", 1)
	r := check(t, text)
	require.Equal(t, []gclint.Collector{{Name: "mine", Functions: 1}}, r.Unknown)
	require.Empty(t, r.Findings)
	for _, pointers := range []string{"mine:addrspace=1", "addrspace=0,1"} {
		require.Equal(t, []string{"certain stale-use %p %p"}, brief(check(t, text, pointers)), pointers)
	}
	require.Empty(t, brief(check(t, text, "mine:addrspace=2", "addrspace=1")))
	for _, bad := range []string{"", "1", "addrspace=", "addrspace=x", "addrspace=99999999999", "mine:1", ":addrspace=1", "addrspace(1)"} {
		require.Error(t, new(gclint.Collectors).Set(bad), bad)
	}
}

// TestCheckPrograms requires no finding in the modules of testdata.
func TestCheckPrograms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(livetest.Testdata(t, "programs") + "/*.ll")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		m, err := ir.ParseFile(path)
		require.NoError(t, err)
		r, err := gclint.Check([]*ir.Module{m}, new(gclint.Collectors))
		require.NoError(t, err)
		require.Empty(t, brief(r), path)
	}
}
