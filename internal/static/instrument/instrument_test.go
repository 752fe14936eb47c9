package instrument

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/test/livetest"
)

// everywhere selects all places.
var everywhere = Options{Blocks: true, Calls: true, Sites: true}

func written(t *testing.T, text string, o Options) *Result {
	t.Helper()
	m, err := ir.Parse("m.ll", []byte(text))
	require.NoError(t, err)
	r, err := Module(m, o)
	require.NoError(t, err)
	return r
}

var stackMapLine = regexp.MustCompile(`^ *call void \(i64, i32, \.\.\.\) @llvm\.experimental\.stackmap\(i64 (\d+), i32 [14](.*)\)$`)

// tellingLine matches an instruction that extends a value to a register's type, or extracts an element of it.
var tellingLine = regexp.MustCompile(`^ *%\S+\.(wide|\d+)\.*"? = (zext|extractvalue) .*$`)

// added returns the stackmaps of the output that the input does not have, and requires that the rest is the input, byte for byte.
func added(t *testing.T, text string, r *Result) (lines []string) {
	t.Helper()
	out := r.Text
	if !strings.Contains(text, "@llvm.experimental.stackmap(i64, i32, ...)") {
		out = strings.TrimSuffix(out, "\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
	}
	ids := map[string]bool{}
	for _, s := range r.Sites {
		ids[fmt.Sprint(s.ID)] = true
	}
	var rest strings.Builder
	for line := range strings.Lines(out) {
		if m := stackMapLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && ids[m[1]] {
			lines = append(lines, m[1]+m[2])
			continue
		}
		if tellingLine.MatchString(strings.TrimRight(line, "\n")) {
			continue
		}
		rest.WriteString(line)
	}
	require.Equal(t, text, rest.String())
	require.Len(t, lines, len(r.Sites))
	return lines
}

// TestTold requires that values which LLVM does not record are recorded in another form: extended, or by their elements. LLVM 14 records only
// integers of a register's size, and all releases record only the first element of an aggregate. The extension and the elements are computed once,
// after the value.
func TestTold(t *testing.T) {
	const body = `define i1 @f(i1 %p, i8 %q, i40 %0, i16 %p.wide) personality i8* null {
  %2 = alloca i32
  %a = icmp eq i8 %q, 0
  %r = invoke i1 @f(i1 %a, i8 %q, i40 %0, i16 %p.wide) to label %on unwind label %pad
on:
  call void @g()
  %s = select i1 %r, i1 %a, i1 %p
  ret i1 %s
pad:
  %l = landingpad { i8*, i32 } cleanup
  br label %loop
loop:
  %x = phi i1 [ %a, %pad ], [ %y, %loop ]
  %y = xor i1 %x, %p
  br i1 %y, label %loop, label %end
end:
  resume { i8*, i32 } %l
}
declare void @g()
define i64 @h(i64 %n, { i64, { i1, i8 } } %deep) {
  %m = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %n, i64 8)
  call void @g()
  %o = extractvalue { i64, i1 } %m, 0
  %d = extractvalue { i64, { i1, i8 } } %deep, 0
  %s = add i64 %o, %d
  ret i64 %s
}
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
`
	const want = `define i1 @f(i1 %p, i8 %q, i40 %0, i16 %p.wide) personality i8* null {
  %2 = alloca i32
  %p.wide. = zext i1 %p to i32
  %"0.wide" = zext i40 %0 to i64
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 1, i32 %p.wide., i8 %q, i64 %"0.wide", i16 %p.wide)
  %a = icmp eq i8 %q, 0
  %a.wide = zext i1 %a to i32
  %r = invoke i1 @f(i1 %a, i8 %q, i40 %0, i16 %p.wide) to label %on unwind label %pad
on:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 1, i32 %p.wide., i32 %a.wide)
  call void @g()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 1, i32 %p.wide., i32 %a.wide)
  %s = select i1 %r, i1 %a, i1 %p
  ret i1 %s
pad:
  %l = landingpad { i8*, i32 } cleanup
  %l.0 = extractvalue { i8*, i32 } %l, 0
  %l.1 = extractvalue { i8*, i32 } %l, 1
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 1, i32 %p.wide., i32 %a.wide, i8* %l.0, i32 %l.1)
  br label %loop
loop:
  %x = phi i1 [ %a, %pad ], [ %y, %loop ]
  %x.wide = zext i1 %x to i32
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 1, i32 %p.wide., i8* %l.0, i32 %l.1, i32 %x.wide)
  %y = xor i1 %x, %p
  br i1 %y, label %loop, label %end
end:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 1, i8* %l.0, i32 %l.1)
  resume { i8*, i32 } %l
}
declare void @g()
define i64 @h(i64 %n, { i64, { i1, i8 } } %deep) {
  %deep.0 = extractvalue { i64, { i1, i8 } } %deep, 0
  %deep.1 = extractvalue { i64, { i1, i8 } } %deep, 1
  %deep.1.0 = extractvalue { i1, i8 } %deep.1, 0
  %deep.1.0.wide = zext i1 %deep.1.0 to i32
  %deep.1.1 = extractvalue { i1, i8 } %deep.1, 1
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 1, i64 %n, i64 %deep.0, i32 %deep.1.0.wide, i8 %deep.1.1)
  %m = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %n, i64 8)
  %m.0 = extractvalue { i64, i1 } %m, 0
  %m.1 = extractvalue { i64, i1 } %m, 1
  %m.1.wide = zext i1 %m.1 to i32
  call void @g()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 8, i32 1, i64 %deep.0, i32 %deep.1.0.wide, i8 %deep.1.1, i64 %m.0, i32 %m.1.wide)
  %o = extractvalue { i64, i1 } %m, 0
  %d = extractvalue { i64, { i1, i8 } } %deep, 0
  %s = add i64 %o, %d
  ret i64 %s
}
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

declare void @llvm.experimental.stackmap(i64, i32, ...)
`
	r := written(t, body, Options{Blocks: true, Calls: true, Release: 14})
	require.Equal(t, want, r.Text)
	// Other blocks may also branch to the normal destination of an invoke, so there is no instruction at which %r is always computed.
	require.Equal(t, []Left{{"value", "i1 crashes the code generator of LLVM 14", 2, "%r of @f, m.ll:6"}}, r.Left)
	require.Equal(t, 2, r.Lacking())

	m, err := ir.Parse("wide.ll", []byte(r.Text))
	require.NoError(t, err)
	report, err := lint.Lint([]*ir.Module{m}, nil)
	require.NoError(t, err)
	var lacks []string
	for _, f := range report.Findings {
		if f.Rule == lint.Unrecorded {
			lacks = append(lacks, f.Names...)
		}
	}
	require.Equal(t, []string{"%r", "%r"}, lacks)
}

// TestPlaces requires the places of sites, their values, and the reported omissions.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		o    Options
		want []string
		left []string
	}{
		"phis": {`define i32 @f(i32 %n) {
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %j, %loop ]
  %s = phi i32 [ 0, %0 ], [ %u, %loop ]
  %u = add i32 %s, %n
  %j = add i32 %i, 1
  %c = icmp ult i32 %j, 9
  br i1 %c, label %loop, label %end
end:
  ret i32 %u
}`, Options{Blocks: true}, []string{"1, i32 %n", "2, i32 %n, i32 %i, i32 %s", "3, i32 %u"}, nil},
		"allocas": {`define i32 @f(i32 %0) {
  %a = alloca i32
  %b = alloca i64
  store i32 %0, ptr %a
  %v = load i32, ptr %a
  ret i32 %v
}`, Options{Blocks: true}, []string{"1, i32 %0, ptr %a"}, nil},
		"calls": {`declare i32 @g(i32)
declare void @h() noreturn
declare void @llvm.donothing()
define i32 @f(i32 %n, i32 %m, ptr %p) {
  %a = call i32 @g(i32 %n)
  %b = call i32 %p(i32 %m)
  call void asm sideeffect "nop", ""()
  call void @llvm.donothing()
  %c = add i32 %a, %b
  %d = icmp eq i32 %c, 0
  br i1 %d, label %no, label %yes
no:
  call void @h()
  unreachable
yes:
  %e = musttail call i32 @f(i32 %c, i32 %b, ptr %p)
  ret i32 %e
}`, Options{Calls: true}, []string{"1, i32 %m, ptr %p, i32 %a", "2, ptr %p, i32 %a, i32 %b"},
			[]string{"1 site: nothing may follow a musttail call, m.ll:16", "1 site: nothing runs there: the block ends in unreachable, m.ll:14"}},
		"invokes": {`declare i32 @g(i32)
declare i32 @p(...)
define i32 @f(i32 %n) personality ptr @p {
  %a = invoke i32 @g(i32 %n) to label %on unwind label %pad
on:
  ret i32 %a
pad:
  %l = landingpad { ptr, i32 } cleanup
  %x = extractvalue { ptr, i32 } %l, 1
  ret i32 %x
}`, everywhere, []string{"1, i32 %n", "2, i32 %a", "3, ptr %l.0, i32 %l.1"}, nil},
		"complete": {`declare void @g()
define i128 @f(i128 %n) {
  call void @g()
  ret i128 %n
}
define void @h() {
  ret void
}`, Options{Blocks: true, Complete: true}, []string{"1"},
			[]string{"1 value: i128 crashes the code generator, %n of @f, m.ll:3", "1 site: a value that is live there could not be recorded, m.ll:3"}},
		"crowd": {`define i32 @f(i32 %a, i32 %b, i32 %c) {
  %p = alloca i32
  store i32 %a, ptr %p
  %s = add i32 %b, %c
  br label %next
next:
  %v = load i32, ptr %p
  %t = add i32 %v, %s
  ret i32 %t
}`, Options{Blocks: true, Most: 2}, []string{"1, ptr %p, i32 %s"}, []string{"1 site: more than 2 values are live there, m.ll:3"}},
		"ids": {`declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i32 %n, i32 %m) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i32 %n)
  %a = add i32 %n, 1
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i32 %m)
  ret void
}
define void @g() {
  ret void
}`, Options{Blocks: true, Sites: true, First: 2}, []string{"2, i32 %n, i32 %m", "4, i32 %m", "6"}, nil},
		"behind a site": {`declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.lifetime.end.p0(i64, ptr)
define void @f(i32 %n) {
  %a = alloca i8
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i32 %n)
  call void @llvm.lifetime.end.p0(i64 1, ptr %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i32 %n)
  ret void
}`, Options{Calls: true, Sites: true}, []string{"1, i32 %n, ptr %a"},
			[]string{"2 sites: the call before it is itself a site, m.ll:5", "1 site: an existing site is right before it, and would have the same address, m.ll:7"}},
		"kept out": {`declare void @g()
define void @a() naked {
  call void asm sideeffect "ret", ""()
  unreachable
}
define available_externally void @b() {
  ret void
}
define void @c(i1 %x) {
  %a = and i1 %x, %x
  ret void
uselistorder i1 %x, { 1, 0 }
}
declare i32 @p(...)
define void @d() personality ptr @p {
  invoke void @g() to label %on unwind label %pad
on:
  ret void
pad:
  %q = cleanuppad within none []
  cleanupret from %q unwind to caller
}
attributes #0 = { naked noinline }
define void @e() #0 {
  call void asm sideeffect "ret", ""()
  unreachable
}
define void @f() {
  ret void
dead:
  ret void
}`, Options{Blocks: true}, []string{"1"}, []string{"2 functions: it is naked: its body is assembly, @a",
			"1 function: no code is generated for an available_externally function, @b",
			"1 function: its uselistorder directives depend on the number of uses, @c",
			"1 function: it has funclets, in which LLVM cuts off the code before a call without a funclet bundle, @d"}},
		"values": {`declare void @g()
define swiftcc void @f(ptr swifterror %e, <vscale x 4 x i32> %s, [1 x i64] %one, i128 %wide, x86_fp80 %x, target("spirv.Event") %t, <4 x i32> %v, i1 %b) {
  call void @g()
  call void @g()
  store i8 0, ptr null
  %l = load i8, ptr %e
  call void @u(<vscale x 4 x i32> %s, [1 x i64] %one, i128 %wide, x86_fp80 %x, target("spirv.Event") %t, <4 x i32> %v, i1 %b)
  ret void
}
declare void @u(<vscale x 4 x i32>, [1 x i64], i128, x86_fp80, target("spirv.Event"), <4 x i32>, i1)
`, Options{Blocks: true, Release: 14}, []string{"1, [1 x i64] %one, <4 x i32> %v, i32 %b.wide"}, []string{
			"1 value: a swifterror value can only be used by calls, loads and stores, %e of @f, m.ll:3",
			"1 value: the size of <vscale x 4 x i32> is not known at compile time, %s of @f, m.ll:3",
			"1 value: i128 crashes the code generator, %wide of @f, m.ll:3",
			"1 value: x86_fp80 has no location unless it is spilled, and then later locations move up, %x of @f, m.ll:3",
			`1 value: target("spirv.Event") has no location, %t of @f, m.ll:3`}},
		"statepoint": {`declare void @g()
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
define i32 @f(ptr addrspace(1) %p) gc "statepoint-example" {
  %s = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @g, i32 0, i32 0, i32 0, i32 0) [ "gc-live"(ptr addrspace(1) %p) ]
  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %s, i32 0, i32 0)
  %v = load i32, ptr addrspace(1) %q
  ret i32 %v
}`, everywhere, []string{"1, ptr addrspace(1) %p"}, []string{"1 site: the call before it is itself a site, m.ll:5"}},
		"a function": {"define void @f() {\n  ret void\n}\ndefine void @g() {\n  ret void\n}", Options{Blocks: true, Function: pattern("g$")}, []string{"1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.body + "\n"
			r := written(t, text, c.o)
			require.Equal(t, c.want, added(t, text, r))
			var left []string
			for _, l := range r.Left {
				s := ""
				if l.Count > 1 {
					s = "s"
				}
				left = append(left, fmt.Sprintf("%d %s%s: %s, %s", l.Count, l.What, s, l.Why, l.First))
			}
			require.Equal(t, c.left, left)
		})
	}
}

func pattern(text string) *names.Pattern {
	p, err := names.Loose(text)
	if err != nil {
		panic(err)
	}
	return p
}

// TestSpelling requires that sites are inserted correctly into text that is not laid out as LLVM prints it.
func TestSpelling(t *testing.T) {
	for text, want := range map[string]string{
		"define void @f() {\r\n\tret void\r\n}":                              "define void @f() {\r\n\tSITE\r\n\tret void\r\n}\r\n\r\nDECLARE\r\n",
		"define void @f() { ret void }":                                      "define void @f() { SITE\n  ret void }\n\nDECLARE\n",
		"define void @f() {\nentry: br label %a\na: ret void ; b\n}\n":       "define void @f() {\nentry: SITE\n  br label %a\na: SITE\n  ret void ; b\n}\n\nDECLARE\n",
		"define void @f() {\n  ; first\n  br label\n  %a\n\na:\nret void\n}": "define void @f() {\n  ; first\n  SITE\n  br label\n  %a\n\na:\nSITE\nret void\n}\n\nDECLARE\n",
	} {
		r := written(t, text, Options{Blocks: true})
		got := regexp.MustCompile(`call void \(i64, i32, \.\.\.\) @llvm\.experimental\.stackmap\(i64 \d, i32 1\)`).ReplaceAllString(r.Text, "SITE")
		require.Equal(t, want, strings.Replace(got, "declare void @llvm.experimental.stackmap(i64, i32, ...)", "DECLARE", 1))
	}
	arm := written(t, "target triple = \"aarch64-linux-gnu\"\ndefine void @f() {\n  ret void\n}\n", Options{Blocks: true})
	require.Contains(t, arm.Text, "(i64 1, i32 4)", "its shadow is a whole number of instructions")

	last, err := ir.Parse("m.ll", []byte("define void @f() {\n  br label %a\na:\n  ret void\n}\n"))
	require.NoError(t, err)
	_, err = Module(last, Options{Blocks: true, First: math.MaxUint64})
	require.ErrorContains(t, err, "no ids are left")
}

// TestBundles requires that bundles come before everything else that may follow a call, as LLVM expects.
func TestBundles(t *testing.T) {
	const text = `declare i32 @g(i32)
declare i32 @p(...)
define i32 @f(i32 %n, i32 %m) personality ptr @p {
  %a = call i32 @g(i32 %n) #0, !dbg !3
  %b = call i32 @g(i32 %n) ; why
  %c = call i32 @g(i32 %n)
  %d = invoke i32 @g(i32 %m) #0
    to label %on unwind label %pad
on:
  %e = musttail call i32 @f(i32 %m, i32 %d)
  ret i32 %e
pad:
  %l = landingpad { ptr, i32 } cleanup
  ret i32 %a
}
attributes #0 = { nounwind }
!3 = !{}
`
	r := written(t, text, Options{Bundles: func(name string) bool { return name != "" }, FirstBundle: 70})
	got := strings.NewReplacer(
		` "statepoint-id"="70" [ "deopt"(i32 %n, i32 %m) ]`, "",
		"\"statepoint-id\"=\"71\" [ \"deopt\"(i32 %n, i32 %m, i32 %a) ]\n  ", "",
		` "statepoint-id"="72" [ "deopt"(i32 %m, i32 %a) ]`, "",
		` "statepoint-id"="73" [ "deopt"(i32 %m, i32 %a) ]`, "").Replace(r.Text)
	require.Equal(t, text, got, r.Text)
	require.Len(t, r.Sites, 4)
	require.Equal(t, []Left{{"site", "a musttail call takes no deopt bundle", 1, "m.ll:10"}}, r.Left)
}

// TestModulesStayAndAreAccepted inserts sites into all files of LLVM's tests of its parser. It requires that all other lines stay unchanged. llvm-as
// of the newest release, with its verifier, must still accept the files that it accepts without sites.
func TestModulesStayAndAreAccepted(t *testing.T) {
	livetest.Slow(t)
	var files []string
	for _, glob := range []string{"../../llvm/ir/testdata/*.ll", "../../../testdata/programs/*.ll", "../../../testdata/lint/*.ll"} {
		list, err := filepath.Glob(glob)
		require.NoError(t, err)
		require.NotEmpty(t, list, glob)
		files = append(files, list...)
	}
	require.Greater(t, len(files), 30)
	accepted := map[int]int{}
	for n, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		m, err := ir.Parse(file, text)
		if err != nil || m.Check() != nil {
			continue // an invalid module
		}
		r, err := Module(m, everywhere)
		require.NoError(t, err, file)
		added(t, string(text), r)
		again, err := ir.Parse(file, []byte(r.Text))
		require.NoError(t, err, file)
		require.NoError(t, again.Check(), file)
		if len(r.Sites) == 0 {
			continue
		}
		out := filepath.Join(t.TempDir(), "m.ll")
		require.NoError(t, os.WriteFile(out, []byte(r.Text), 0o600))
		for _, version := range livetest.ShareOf([]int{14, 19, 22}, "accepted", n) {
			as := func(path string) (string, bool) {
				args := []string{"-o", os.DevNull, path}
				if version == 14 && !m.TypedPointers() {
					args = append([]string{"-opaque-pointers"}, args...)
				}
				_, errs, ok := livetest.Answer(t, livetest.LLVM(t, version, "llvm-as"), args...)
				return errs, ok
			}
			if _, ok := as(file); !ok {
				continue
			}
			errs, ok := as(out)
			require.True(t, ok, "%s, LLVM %d: %s", file, version, errs)
			accepted[version]++
		}
	}
	t.Logf("accepted by release: %v", accepted)
	for _, version := range []int{14, 19, 22} {
		require.Positive(t, accepted[version])
	}
}
