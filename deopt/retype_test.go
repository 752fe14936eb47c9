package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt"
	"reframe/deopt/frametest"
	"reframe/deopt/ir"
	"reframe/deopt/layout"
	"reframe/internal/livetest"
)

// A layout gives a live value the name of a value of its own kind and width, or is refused:
// the bits of a double are no integer.
func TestLayoutKeepsTypes(t *testing.T) {
	text := prelude + `
define i64 @plain(i64 %n, i32 %small, double %d, ptr %p, float %f) {
entry:
  ret i64 %n
}
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i64 %a, double 2.5, i64 undef) ]
  ret i64 %a
}` + start
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	o := frametest.Known(t, p)
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
	} {
		described, err := layout.Parse("l.json", fmt.Appendf(nil, `{"schema":"reframe.layout/v1","exits":[{"function":"work","resume":{"function":"plain","block":"entry"},"slots":[{"operand":%d,"name":%q}]}]}`, c.operand, c.name))
		require.NoError(t, err)
		o.Layouts = []*layout.Layout{described}
		v, err := framesWith(t, p, o)
		if c.err != "" {
			require.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.value, frametest.Slot(t, frametest.One(t, v, "work"), c.name).Value)

		// Without the module nothing says that the record counts its values from its fourth location on.
		v, err = framesWith(t, p, deopt.Options{Layouts: o.Layouts})
		require.NoError(t, err)
		f := frametest.One(t, v, "work")
		require.Nil(t, f.Resume)
		require.Contains(t, strings.Join(f.Notes, "\n"), "l.json: not applied: which location is which live value, only the module can say")
	}
}

// Where several sites fit, a layout may still count the values; one that is undef at some
// of the sites is not shown as if it had been had.
func TestLayoutOfAmbiguousSites(t *testing.T) {
	m := frametest.ReadModule(t, "m.ll", prelude+`
define i64 @plain(i64 %n) {
entry:
  ret i64 %n
}
define i64 @work(i64 %a) gc "statepoint-example" {
  %r = call i64 @wait(i64 1) [ "deopt"(i64 %a, i64 %a) ]
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
		v, err := framesWith(t, p, deopt.Options{Modules: []*ir.Module{m}, Layouts: []*layout.Layout{described}})
		require.NoError(t, err)
		s := frametest.Slot(t, frametest.One(t, v, "work"), "%n")
		require.Equal(t, reason == "", s.Value == "100")
		require.Contains(t, s.Reason, reason)
	}
}

// Where several sites fit that have other types, which of them was compiled says how a vector's elements lie: a layout does not.
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
define i64 @work(i64 %a) {
  %v = insertelement <16 x i8> undef, i8 1, i64 0
  %n = insertelement <16 x i7> undef, i7 1, i64 0
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, <16 x i8> %v)
  %w = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, <16 x i7> %n)
  ret i64 %w
}`
	p := livetest.Lli(t, 19, livetest.Raw(t, prelude+compiled+start), "mcjit")
	for function, failure := range map[string]string{
		"bytes":  "",
		"narrow": "%v of @narrow: it is <16 x i7> there, and which type live value 0 was compiled as is not known: its elements may lie apart in the 16 bytes of the record",
	} {
		described, err := layout.Parse("l.json", fmt.Appendf(nil, `{"schema":"reframe.layout/v1","exits":[{"function":"work","resume":{"function":%q,"block":"entry"},"slots":[{"operand":0,"name":"%%v"}]}]}`, function))
		require.NoError(t, err)
		v, err := framesWith(t, p, deopt.Options{Modules: []*ir.Module{frametest.ReadModule(t, "m.ll", prelude+other)}, Layouts: []*layout.Layout{described}})
		if failure != "" {
			require.ErrorContains(t, err, failure)
			continue
		}
		require.NoError(t, err)
		require.NotEmpty(t, frametest.Slot(t, frametest.One(t, v, "work"), "%v").Hex)
	}
}
