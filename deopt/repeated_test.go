package deopt_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestValueThatIsRecordedTwice requires that an SSA value with different contents in two locations is unavailable in both, because at most one is
// right. If the locations agree in the value's own bits, both must be shown.
func TestValueThatIsRecordedTwice(t *testing.T) {
	const text = prelude + `
@three = global i64 300
define i64 @work(i64 %s) noinline {
  %x = load volatile i64, ptr @three
  %a = load volatile i64, ptr @seed
  %n = trunc i64 %x to i32
  %q = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x, i64 %a, i64 %x, i32 %n, i32 %n, i64 %a)
  %w = zext i32 %n to i64
  %r = add i64 %x, %w
  ret i64 %r
}
` + livetest.Start
	module := frametest.ReadModule(t, "twice.ll", text)
	for _, version := range []int{14, 19, 22} {
		object := livetest.Object(t, version, program(t, text), "-relocation-model=pic", "-O2")
		look := func(change func(l []stackmap.Location)) (*deopt.View, *deopt.Frame) {
			changed := frametest.Remapped(t, object, func(b *stackmap.Blob) { change(b.Functions[0].Records[0].Locations) })
			p := quiet(t, 0, livetest.Link(t, "twice", nil, changed))
			v := frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{module}})
			return v, frametest.One(t, v, "work")
		}
		whole := []string{"%x i64 300", "%a i64 100", "%x i64 300", "%n i32 300", "%n i32 300", "%a i64 100"}
		_, f := look(func([]stackmap.Location) {})
		require.Equal(t, whole, brief(f), "LLVM %d", version)

		_, f = look(func(l []stackmap.Location) { // the location of an i64 holds the i32 in its lower half
			l[3] = l[0]
			l[3].Size = 8
		})
		require.Equal(t, whole, brief(f), "LLVM %d", version)

		v, f := look(func(l []stackmap.Location) { l[2] = l[1] })
		want := []string{"%x i64 unavailable", "%a i64 100", "%x i64 unavailable", "%n i32 300", "%n i32 300", "%a i64 100"}
		require.Equal(t, want, brief(f), "LLVM %d", version)
		for _, k := range []int{0, 2} {
			require.Contains(t, f.Slots[k].Reason, "the record has %x in 2 locations, and they hold different values: 0x12c in ")
			require.NotNil(t, f.Slots[k].Location)
		}
		_, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
		require.ErrorContains(t, err, "%x: the record has %x in 2 locations")
	}
}

// TestValueThatIsUndefinedInOneLocation requires that a value is unavailable in all locations if one holds LLVM's mark for an undefined value,
// because the others may then hold anything.
func TestValueThatIsUndefinedInOneLocation(t *testing.T) {
	const text = prelude + `
define i64 @work(i64 %a) noinline {
  %x = mul i64 %a, 3
  %q = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x, i64 %x)
  ret i64 %x
}
` + livetest.Start
	object := livetest.Object(t, 19, program(t, text), "-relocation-model=pic", "-O2")
	mark := uint32(0xFEFEFEFE)
	changed := frametest.Remapped(t, object, func(b *stackmap.Blob) {
		b.Functions[0].Records[0].Locations[1] = stackmap.Location{Kind: stackmap.Constant, Size: 8, Offset: int32(mark)}
	})
	p := quiet(t, 0, livetest.Link(t, "undefined", nil, changed))
	f := frametest.One(t, frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{frametest.ReadModule(t, "undefined.ll", text)}}), "work")
	for _, s := range f.Slots {
		require.Equal(t, frame.Missing, s.Status)
		require.Contains(t, s.Reason, "which LLVM writes for undef")
	}
}
