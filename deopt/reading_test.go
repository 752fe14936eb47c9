package deopt_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// twin is a module with an internal function @helper, whose record has an operand %NAME and a constant, and an external function with the body
// OWN.
const twin = `
target triple = "x86_64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define internal i64 @helper(i64 %NAME) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 ID, i32 5, i64 %NAME, i32 CONSTANT)
  ret i64 %NAME
}
define i64 @SEEN(i64 %x) {
  OWN
  %r = call i64 @helper(i64 %x)
  ret i64 %r
}
`

// TestTwinFunctions requires that a function of an image is assigned to one module, and not to another one with the same function.
func TestTwinFunctions(t *testing.T) {
	livetest.Slow(t)
	const (
		several  = "no names: several functions are called @helper, and it is unknown which of them this is"
		notGiven = "no names: this map was compiled from none of the given modules"
		own      = "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 5, i64 %x)"
	)
	type changes struct{ id, constant, own string }
	same := changes{"1", "7", ""}
	for _, c := range []struct {
		name          string
		first, second changes
		given         [3][]string // results with the first module, the second, and both
	}{
		{"nothing tells them apart", same, same, [3][]string{
			{"0 helper: " + several, "1 helper: " + several},
			{"0 helper: " + several, "1 helper: " + several},
			{"0 helper: " + several, "1 helper: " + several}}},
		{"the ids do", same, changes{"2", "7", ""}, [3][]string{
			{"0 helper: %width", "1 helper: " + notGiven},
			{"0 helper: " + notGiven, "1 helper: %price"},
			{"0 helper: %width", "1 helper: %price"}}},
		{"a constant does", same, changes{"1", "8", ""}, [3][]string{
			{"0 helper: %width", "1 helper: " + notGiven},
			{"0 helper: " + notGiven, "1 helper: %price"},
			{"0 helper: %width", "1 helper: %price"}}},
		// Only the first module has the external function, so the other function belongs to it too. The second map lacks the external function, so it
		// cannot belong to the same module.
		{"another function of the map does", changes{"1", "7", own}, same, [3][]string{
			{"0 helper: %width", "0 one: %x", "1 helper: " + notGiven},
			{"0 helper: " + notGiven, "0 one: no names: no given module defines @one", "1 helper: %price"},
			{"0 helper: %width", "0 one: %x", "1 helper: %price"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spell := func(file, name, seen string, x changes) (string, *ir.Module) {
				path, m := frametest.Written(t, file, strings.NewReplacer("NAME", name, "SEEN", seen, "ID", x.id, "CONSTANT", x.constant, "OWN", x.own).Replace(twin))
				return frametest.LLC(t, 19, path, "-relocation-model=pic"), m
			}
			one, first := spell("one.ll", "width", "one", c.first)
			two, second := spell("two.ll", "price", "two", c.second)
			dir := t.TempDir()
			shared, relinked, archive := filepath.Join(dir, "h.so"), filepath.Join(dir, "h.o"), filepath.Join(dir, "h.a")
			frametest.Command(t, "", "gcc", "-nostdlib", "-shared", "-Wl,-z,notext", "-o", shared, one, two)
			frametest.Command(t, "", "ld", "-r", "-o", relinked, one, two)
			frametest.Command(t, "", "ar", "rc", archive, one, two)
			for k, given := range [][]*ir.Module{{first}, {second}, {first, second}, {second, first}} {
				want := c.given[min(k, 2)]
				require.Equal(t, want, frametest.Readings(t, frametest.MapsOf(t, shared, given...)), k)
				require.Equal(t, want, frametest.Readings(t, frametest.MapsOf(t, relinked, given...)), k)
				// Each member of an archive has a map with number 0.
				m := frametest.MapsOf(t, archive, given...)
				require.Equal(t, strings.ReplaceAll(strings.Join(want, "\n"), "1 helper", "0 helper"), strings.Join(frametest.Readings(t, m), "\n"), k)
			}
		})
	}
}

// TestReadingOfOneOfTwoSites requires that the two candidate sites of a record are reported.
func TestReadingOfOneOfTwoSites(t *testing.T) {
	path, m := frametest.Written(t, "two.ll", `
target triple = "x86_64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i64 %a, i64 %b, i1 %c) {
  br i1 %c, label %one, label %two
one:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a)
  br label %done
two:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %b)
  br label %done
done:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 7)
  ret void
}
define void @g(i64 %a, i64 %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %b)
  ret void
}`)
	const note = "0 f: no names: 2 sites of the module match this record, and they agree on 1 type of 1 value; give each its own id; " +
		"the order of its records does not determine the site: several sites are possible in this position"
	require.Equal(t, []string{note, note, "0 f: ", "0 g: %a", "0 g: %b"}, frametest.Readings(t, frametest.MapsOf(t, frametest.LLC(t, 19, path), m)))
}

// TestReadingOfUndef requires that values that the module leaves undefined are shown as such, and not as the mark that LLVM writes for them.
func TestReadingOfUndef(t *testing.T) {
	path, m := frametest.Written(t, "undef.ll", `
target triple = "x86_64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 undef, i64 %a, i64 poison, i64 5)
  ret void
}`)
	require.Equal(t, []string{"0 f: undef %a poison"}, frametest.Readings(t, frametest.MapsOf(t, frametest.LLC(t, 19, path), m)))
}

// TestReadingByAlias requires that an alias is a name of its function.
func TestReadingByAlias(t *testing.T) {
	path, m := frametest.Written(t, "alias.ll", `
target triple = "x86_64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@aaa = alias void (i64), ptr @f
@zzz = weak alias void (i64), ptr @f
define internal void @f(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a)
  ret void
}`)
	shared := filepath.Join(t.TempDir(), "alias.so")
	frametest.Command(t, "", "gcc", "-nostdlib", "-shared", "-Wl,-z,notext", "-o", shared, frametest.LLC(t, 19, path, "-relocation-model=pic"))
	frametest.Command(t, "", "strip", "-x", shared) // this leaves only the aliases in the symbol table
	got := frametest.Readings(t, frametest.MapsOf(t, shared, m))
	require.Len(t, got, 1)
	require.Contains(t, got[0], ": %a")
}

// unrewritten is a call with a deopt bundle, followed by EXIT, in a function whose collector rewrite-statepoints-for-gc handles.
const unrewritten = prelude + `
declare i64 @llvm.experimental.deoptimize.i64(...)
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %x = add i64 %a, 1
  %r = call i64 @wait(i64 %a) [ "deopt"(i64 %x, i32 17) ]
  %c = icmp eq i64 %r, 3
  br i1 %c, label %exit, label %done
exit:
  %y = add i64 %x, %r
  EXIT
done:
  %s = add i64 %x, %r
  ret i64 %s
}` + start

// TestUnrewrittenBundle requires that the record of a call with a deopt bundle has names and satisfies the rules if rewrite-statepoints-for-gc
// has not run on the given module. LLVM chooses the id of its statepoint.
func TestUnrewrittenBundle(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		path, m := frametest.Written(t, "unrewritten.ll", strings.Replace(unrewritten, "EXIT", `%d = call i64 (...) @llvm.experimental.deoptimize.i64() [ "deopt"(i32 4, i64 %y, i64 %x) ]
  ret i64 %d`, 1))
		object := frametest.LLC(t, version, path, "-relocation-model=pic")
		for _, r := range frametest.Readings(t, frametest.MapsOf(t, object, m)) {
			require.Contains(t, []string{"0 work: %x", "0 work: %y %x"}, r)
		}
		report, err := frametest.MapsOf(t, object, m).Check()
		require.NoError(t, err)
		require.Zero(t, report.Broken(), "%+v", report)
	}
	// Repeat the check in a process.
	p := livetest.Lli(t, 19, livetest.Raw(t, strings.Replace(unrewritten, "EXIT", "ret i64 %y", 1)), "mcjit")
	m, err := ir.ParseFile(p.IR)
	require.NoError(t, err)
	f := frametest.One(t, frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{m}}), "work")
	require.NotNil(t, f.Record)
	require.EqualValues(t, uint64(0xABCDEF0F), f.Record.ID)
	require.Equal(t, "statepoint", f.Record.Site)
	require.Equal(t, "101", frametest.Slot(t, f, "%x").Value)
}

// TestTwinFunctionsInAProcess requires that two functions of one name are distinguished in a process as well as in a file.
func TestTwinFunctionsInAProcess(t *testing.T) {
	const text = `
define internal i64 @helper(i64 %NAME) noinline {
  %r = call i64 @NEXT(i64 7)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 5, i64 %NAME)
  %s = add i64 %r, %NAME
  ret i64 %s
}
`
	first := prelude + strings.NewReplacer("NAME", "width", "NEXT", "other").Replace(text) + `
declare i64 @other(i64)
define i64 @work(i64 %a) noinline {
  %r = call i64 @helper(i64 %a)
  ret i64 %r
}` + start
	second := strings.NewReplacer("NAME", "price", "NEXT", "wait").Replace(`
target triple = "x86_64-pc-linux-gnu"
declare i64 @wait(i64)
declare void @llvm.experimental.stackmap(i64, i32, ...)`+text) + `
define i64 @other(i64 %a) noinline {
  %r = call i64 @helper(i64 %a)
  ret i64 %r
}`
	main, m := frametest.Written(t, "first.ll", first)
	more, _ := frametest.Written(t, "second.ll", second)
	object := frametest.LLC(t, 19, more, "-relocation-model=pic")
	p := livetest.Linked(t, 19, main, "-pie", "-Wl,-z,notext", object)
	v := frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{m}})
	frames := 0
	for _, thread := range v.Threads {
		for _, f := range thread.Frames {
			if f.Function == "helper" {
				frames++
				require.Contains(t, f.Notes, "no names: several functions are called @helper, and it is unknown which of them this is")
				require.Equal(t, "loc0", f.Slots[0].Name)
			}
		}
	}
	require.Equal(t, 2, frames)
}

// TestModulesOfNothing requires a note for modules that define none of a file's functions.
func TestModulesOfNothing(t *testing.T) {
	const note = "no given module defines a function with records here"
	object := livetest.Object(t, 19, "sm_spill.ll")
	own, err := ir.ParseFile(livetest.IR(t, 19, "sm_spill.ll"))
	require.NoError(t, err)
	other := frametest.ReadModule(t, "other.ll", "define void @nothing() {\n  ret void\n}\n")
	for _, c := range []struct {
		given []*ir.Module
		noted bool
	}{{nil, false}, {[]*ir.Module{own}, false}, {[]*ir.Module{other, own}, false}, {[]*ir.Module{other}, true}} {
		m := frametest.MapsOf(t, object, c.given...)
		if c.noted {
			require.Contains(t, m.Notes, note)
		} else {
			require.NotContains(t, m.Notes, note)
		}
	}
}
