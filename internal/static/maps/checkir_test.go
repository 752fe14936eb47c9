package maps_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// ruled returns the result of one rule for the only image of a file.
func ruled(t *testing.T, path, rule string, given ...*ir.Module) maps.CheckRule {
	t.Helper()
	report, err := frametest.MapsOf(t, path, given...).Check()
	require.NoError(t, err)
	require.Len(t, report.Images, 1)
	for _, r := range report.Images[0].Rules {
		if r.Rule == rule {
			return r
		}
	}
	require.Fail(t, "no rule "+rule)
	return maps.CheckRule{}
}

const (
	everySite   = "every site has a record"
	everyRecord = "every record has a site"
	lost        = "no location is lost"
)

const stackmapHead = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
`

// linked links two compiled modules into one shared object.
func linked(t *testing.T, objects ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "linked.so")
	frametest.Command(t, "", "gcc", append([]string{"-nostdlib", "-shared", "-Wl,-z,notext", "-o", out}, objects...)...)
	return out
}

// TestCheckIROfOneMap requires that, in a file of several maps, a module is compared only with its own.
func TestCheckIROfOneMap(t *testing.T) {
	side := func(name, id string) (string, *ir.Module) {
		path, m := frametest.Written(t, name+".ll", stackmapHead+strings.NewReplacer("NAME", name, "ID", id).Replace(`
define internal i64 @helper(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 ID, i32 5, i64 %x)
  ret i64 %x
}
define weak i64 @both(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 ID9, i32 5, i64 %x)
  ret i64 %x
}
define i64 @NAME(i64 %x) {
  %r = call i64 @helper(i64 %x)
  %s = call i64 @both(i64 %r)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 ID1, i32 5, i64 %s)
  ret i64 %s
}`))
		return frametest.LLC(t, 19, path, "-relocation-model=pic"), m
	}
	one, first := side("one", "1")
	two, second := side("two", "2")
	path := linked(t, one, two)
	for _, rule := range []string{everySite, everyRecord, "operand counts agree", "constants agree", lost} {
		for number, m := range []*ir.Module{second, first} { // number is that of the map to which m does not belong
			r := ruled(t, path, rule, m)
			require.Zero(t, r.Broken, "%+v", r)
			require.Zero(t, r.Unknown, "%+v", r)
			require.Equal(t, 3, r.Checked, rule)
			require.Equal(t, []string{"map 0: no given module is what it was compiled from", "map 1: no given module is what it was compiled from"}[number], r.Skipped)
		}
		r := ruled(t, path, rule, first, second)
		require.Equal(t, maps.CheckRule{Rule: rule, Fact: r.Fact, Checked: 6}, r)
	}
	// The symbols do not show which of the two weak functions is in the file.
	_, third := frametest.Written(t, "third.ll", stackmapHead+`
define weak i64 @both(i64 %x) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 5, i64 %x)
  ret i64 %x
}`)
	r := ruled(t, path, everySite, third)
	require.Equal(t, 0, r.Broken)
	require.Equal(t, 1, r.Unknown)
	require.Contains(t, r.Skipped, "for functions that may belong to another module")
	require.Contains(t, r.Skipped, "2 maps, the first of them map 0: no given module is what they were compiled from")
}

// TestCheckIROfAnotherVersion requires that a module that its map was not compiled from violates the rules, even if it is one of several.
func TestCheckIROfAnotherVersion(t *testing.T) {
	side := func(name, operands string) (string, *ir.Module) {
		path, m := frametest.Written(t, name+".ll", stackmapHead+`
define i64 @`+name+`(i64 %x) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5`+operands+`)
  ret i64 %x
}`)
		return frametest.LLC(t, 19, path, "-relocation-model=pic"), m
	}
	one, _ := side("one", ", i64 %x")
	two, _ := side("two", ", i64 %x")
	_, other := side("one", ", i64 %x, i64 %x")
	r := ruled(t, linked(t, one, two), "operand counts agree", other)
	require.Equal(t, 1, r.Checked)
	require.Equal(t, 1, r.Broken)
	require.Contains(t, r.Violations[0].What, "record 1 of @one has 1 live values, but line ")
}

// TestCheckIRAvailableExternally covers a function that is only for inlining: it has no code, and so no records.
func TestCheckIRAvailableExternally(t *testing.T) {
	path, m := frametest.Written(t, "available.ll", stackmapHead+`
define available_externally i64 @elsewhere(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5, i64 %x)
  ret i64 %x
}
define i64 @here(i64 %x) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 5, i64 %x)
  %r = call i64 @elsewhere(i64 %x)
  ret i64 %r
}`)
	// Another module defines @elsewhere for the linker, without a site.
	more, _ := frametest.Written(t, "more.ll", stackmapHead+"define i64 @elsewhere(i64 %x) {\n  ret i64 %x\n}")
	path = linked(t, frametest.LLC(t, 19, path, "-relocation-model=pic"), frametest.LLC(t, 19, more, "-relocation-model=pic"))
	r := ruled(t, path, everySite, m)
	require.Equal(t, maps.CheckRule{Rule: everySite, Fact: r.Fact, Checked: 1}, r)
}

// TestCheckIRCountsOperands requires that lost values are counted by operand, and are never more than the checked ones.
func TestCheckIRCountsOperands(t *testing.T) {
	path, m := frametest.Written(t, "lossy.ll", stackmapHead+`
define void @f(i64 %a, x86_fp80 %b, x86_fp80 %c, x86_fp80 %d) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5, i64 %a, x86_fp80 %b, x86_fp80 %c, x86_fp80 %d)
  ret void
}`)
	r := ruled(t, frametest.LLC(t, 19, path), lost, m)
	require.Equal(t, 4, r.Checked)
	require.Equal(t, 3, r.Broken)
}

// TestCheckIRMissingRecord requires that a missing record is reported without a map and an offset.
func TestCheckIRMissingRecord(t *testing.T) {
	const site = "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5, i64 %a)\n"
	text := stackmapHead + "define void @f(i64 %a) {\n" + site + "  ret void\n}"
	path, _ := frametest.Written(t, "one.ll", text)
	_, more := frametest.Written(t, "more.ll", strings.Replace(text, site, site+strings.Replace(site, "i64 1,", "i64 2,", 1), 1))
	r := ruled(t, frametest.LLC(t, 19, path), everySite, more)
	require.Equal(t, 1, r.Broken)
	require.Len(t, r.Violations, 1)
	require.Nil(t, r.Violations[0].Map)
	require.Nil(t, r.Violations[0].Offset)
	require.Equal(t, "the stackmap of @f at line 7, of id 2, has no record", r.Violations[0].What)
}

// TestCheckStrippedObject covers an object without relocations, in which the addresses of functions are unknown.
func TestCheckStrippedObject(t *testing.T) {
	path, _ := frametest.Written(t, "f.ll", stackmapHead+`
define void @f(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5, i64 %a)
  ret void
}`)
	object := frametest.LLC(t, 19, path)
	for _, rule := range []string{"functions are in executable memory", "offsets are inside their function", "offsets are on instruction boundaries"} {
		r := ruled(t, object, rule)
		require.Equal(t, maps.CheckRule{Rule: rule, Fact: r.Fact, Checked: 1}, r)
	}
	frametest.Command(t, "", livetest.LLVM(t, 19, "llvm-objcopy"), "--strip-all", object)
	for _, rule := range []string{"functions are in executable memory", "offsets are inside their function", "offsets are on instruction boundaries"} {
		r := ruled(t, object, rule)
		require.Equal(t, maps.CheckRule{Rule: rule, Fact: r.Fact, Checked: 1, Unknown: 1, Skipped: "the address of a function is unknown"}, r)
	}
}

// TestCheckNarrowAddress covers x32, which has addresses of 4 bytes on x86-64.
func TestCheckNarrowAddress(t *testing.T) {
	path, _ := frametest.Written(t, "x32.ll", strings.Replace(strings.Replace(stackmapHead, "unknown-linux-gnu", "unknown-linux-gnux32", 1),
		"e-m:e-p270", "e-m:e-p:32:32-p270", 1)+`
define void @f() {
  %a = alloca i64
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5, ptr %a)
  ret void
}`)
	object := frametest.LLC(t, 19, path)
	m := frametest.MapsOf(t, object)
	for f := range m.Images[0].Functions() {
		for rec := range f.Records() {
			require.Equal(t, "Direct", rec.Locations[0].Kind.String())
			require.EqualValues(t, 4, rec.Locations[0].Size)
		}
	}
	const rule = "memory and constants have valid sizes"
	r := ruled(t, object, rule)
	require.Equal(t, maps.CheckRule{Rule: rule, Fact: r.Fact, Checked: 1}, r)
}
