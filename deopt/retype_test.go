package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestLayoutKeepsTypes requires an error for a layout that gives a live value the name of a value of another kind or width, such as an integer's
// name for a double.
func TestLayoutKeepsTypes(t *testing.T) {
	text := prelude + `
define i64 @plain(i64 %n, i32 %small, double %d, ptr %p, float %f) {
entry:
  ret i64 %n
}
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i64 %a, double 2.5, i64 undef, i32 -7, i32 -7) ]
  ret i64 %a
}` + start
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	o := frametest.Known(t, p)
	extends := map[int]string{3: `,"extend":"sign"`, 4: `,"extend":"zero"`}
	for _, c := range []struct {
		operand     int
		name, value string
		err         string
	}{
		{0, "%n", "100", ""},
		{0, "%p", "0x64", ""},
		{0, "%small", "", "l.json:1:114: exits[0].slots[0]: %small of @plain: it is i32 there, and live value 0 is i64"},
		{0, "%d", "", "l.json:1:114: exits[0].slots[0]: %d of @plain: it is double there, and live value 0 is i64"},
		{1, "%d", "2.5", ""},
		{1, "%n", "", "l.json:1:114: exits[0].slots[0]: %n of @plain: it is i64 there, and live value 1 is double"},
		{1, "%f", "", "l.json:1:114: exits[0].slots[0]: %f of @plain: it is float there, and live value 1 is double"},
		{2, "%n", "", ""}, // undef
		{3, "%n", "-7", ""},
		{4, "%n", "4294967289", ""},
	} {
		described, err := layout.Parse("l.json", fmt.Appendf(nil, `{"schema":"reframe.layout/v1","exits":[{"function":"work","resume":{"function":"plain","block":"entry"},"slots":[{"operand":%d,"name":%q%s}]}]}`, c.operand, c.name, extends[c.operand]))
		require.NoError(t, err)
		o.Layouts = []*layout.Layout{described}
		v, err := framesWith(t, p, o)
		if c.err != "" {
			require.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.value, frametest.Slot(t, frametest.One(t, v, "work"), c.name).Value)

		// Without the module nothing shows that the live values start at the record's fourth location.
		v, err = framesWith(t, p, deopt.Options{Layouts: o.Layouts})
		require.NoError(t, err)
		f := frametest.One(t, v, "work")
		require.Nil(t, f.Resume)
		require.Contains(t, strings.Join(f.Notes, "\n"), "l.json: not applied: only the module gives the locations of the live values")
	}
}

// TestLayoutExtends requires that a layout widens integers and never narrows them. With [deopt.Options].Mistake, frames must be shown despite a
// mistake in a layout.
func TestLayoutExtends(t *testing.T) {
	text := prelude + `
define i64 @plain(i64 %n, i16 %tiny, double %d) {
entry:
  ret i64 %n
}
define i64 @work(i64 %x) noinline gc "statepoint-example" {
  %low = trunc i64 %x to i32
  %a = sub i32 0, %low
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i32 %a) ]
  ret i64 0
}` + start
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	o := frametest.Known(t, p)
	for _, c := range []struct{ name, extend, value, mistake string }{
		{"%n", "sign", "-100", ""},
		{"%n", "zero", "4294967196", ""},
		{"%tiny", "zero", "-100", "%tiny of @plain: it is i16 there, and live value 0 is i32: a layout can widen values, but not narrow them"},
		{"%d", "sign", "-100", "%d of @plain: it is double there, and live value 0 is i32: only integers can be widened"},
	} {
		described, err := layout.Parse("l.json", fmt.Appendf(nil, `{"schema":"reframe.layout/v1","exits":[{"function":"work","resume":{"function":"plain","block":"entry"},"slots":[{"operand":0,"name":%q,"extend":%q}]}]}`, c.name, c.extend))
		require.NoError(t, err)
		o.Layouts = []*layout.Layout{described}
		var mistakes []string
		o.Mistake = func(err error) { mistakes = append(mistakes, err.Error()) }
		v, err := framesWith(t, p, o)
		require.NoError(t, err)
		f := frametest.One(t, v, "work")
		require.Equal(t, c.value, f.Slots[0].Value)
		if c.mistake == "" {
			require.Empty(t, mistakes)
			require.Equal(t, c.name, f.Slots[0].Name)
			continue
		}
		require.Len(t, mistakes, 1)
		require.Contains(t, mistakes[0], "exits[0].slots[0].extend: "+c.mistake)
		require.Equal(t, "%a", f.Slots[0].Name)
		require.Nil(t, f.Resume)
	}
	_, err := layout.Parse("l.json", []byte(`{"schema":"reframe.layout/v1","exits":[{"function":"f","resume":{"function":"g","block":"b"},"slots":[{"operand":0,"name":"%n","extend":"trunc"}]}]}`))
	require.ErrorContains(t, err, `exits[0].slots[0].extend: expected "sign" or "zero", got "trunc"`)
}

// TestLayoutOfAmbiguousSites requires that a layout can refer to the values by number if several sites fit. A value that is undef at some of the
// sites must be unavailable.
func TestLayoutOfAmbiguousSites(t *testing.T) {
	m := frametest.ReadModule(t, "m.ll", prelude+`
define i64 @plain(i64 %n) {
entry:
  ret i64 %n
}
define i64 @work(i64 %a) gc "statepoint-example" {
  %r = call i64 @wait(i64 1) [ "deopt"(i64 %a, i64 %a) ]
  ret i64 %a
}`)
	other := frametest.ReadModule(t, "other.ll", prelude+`
define i64 @work(i64 %a) gc "statepoint-example" {
  %q = call i64 @wait(i64 1) [ "deopt"(i64 %a, i64 undef) ]
  ret i64 %a
}`)
	text := prelude + `
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i64 %a, i64 %a) ]
  ret i64 %a
}` + start
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	for operand, reason := range []string{"", "it is undefined if the site is that of line "} {
		described, err := layout.Parse("l.json", fmt.Appendf(nil, `{"schema":"reframe.layout/v1","exits":[{"function":"work","resume":{"function":"plain","block":"entry"},"slots":[{"operand":%d,"name":"%%n"}]}]}`, operand))
		require.NoError(t, err)
		v, err := framesWith(t, p, deopt.Options{Modules: []*ir.Module{m, other}, Layouts: []*layout.Layout{described}})
		require.NoError(t, err)
		s := frametest.Slot(t, frametest.One(t, v, "work"), "%n")
		require.Equal(t, reason == "", s.Value == "100")
		require.Contains(t, s.Reason, reason)
	}
}

// TestLayoutOfAmbiguousVectors requires that the elements of a vector are unknown if several sites with different types fit: the compiled type
// determines them, and a layout does not.
func TestLayoutOfAmbiguousVectors(t *testing.T) {
	const compiled = `
define i64 @work(i64 %a) noinline {
  %one = bitcast i64 %a to <8 x i8>
  %v = shufflevector <8 x i8> %one, <8 x i8> %one, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %w = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, <16 x i8> %v)
  %r = call i64 @wait(i64 %w)
  ret i64 %r
}`
	const other = `
define <16 x i8> @bytes(<16 x i8> %v) {
entry:
  ret <16 x i8> %v
}
define <16 x i7> @narrow(<16 x i7> %v) {
entry:
  ret <16 x i7> %v
}
`
	// Two versions of @work with the same calls as the code.
	work := func(vector, element string) string {
		return fmt.Sprintf(`
define i64 @work(i64 %%a) {
  %%v = insertelement %[1]s undef, %[2]s 1, i64 0
  %%w = call i64 @wait(i64 %%a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, %[1]s %%v)
  %%r = call i64 @wait(i64 %%w)
  ret i64 %%r
}`, vector, element)
	}
	modules := []*ir.Module{frametest.ReadModule(t, "m.ll", prelude+other+work("<16 x i8>", "i8")), frametest.ReadModule(t, "n.ll", prelude+work("<16 x i7>", "i7"))}
	p := livetest.Lli(t, 19, livetest.Raw(t, prelude+compiled+start), "mcjit")
	for function, failure := range map[string]string{
		"bytes":  "",
		"narrow": "%v of @narrow: it is <16 x i7> there, and the type that live value 0 was compiled as is unknown: there may be gaps between its elements in the 16 bytes of the record",
	} {
		described, err := layout.Parse("l.json", fmt.Appendf(nil, `{"schema":"reframe.layout/v1","exits":[{"function":"work","resume":{"function":%q,"block":"entry"},"slots":[{"operand":0,"name":"%%v"}]}]}`, function))
		require.NoError(t, err)
		v, err := framesWith(t, p, deopt.Options{Modules: modules, Layouts: []*layout.Layout{described}})
		if failure != "" {
			require.ErrorContains(t, err, failure)
			continue
		}
		require.NoError(t, err)
		require.NotEmpty(t, frametest.Slot(t, frametest.One(t, v, "work"), "%v").Hex)
	}
}
