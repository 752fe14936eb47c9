package deopt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestRecordsAtOneAddress requires that both of two stackmaps without code between them are shown, with the same or different ids.
func TestRecordsAtOneAddress(t *testing.T) {
	const text = prelude + `
define i64 @work(i64 %a) noinline {
  %x = mul i64 %a, 3
  %y = mul i64 %a, 5
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 21, i32 0, i64 %x)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 SECOND, i32 0, i64 %y, i64 %a)
  %s = add i64 %x, %y
  %s2 = add i64 %s, %a
  ret i64 %s2
}
` + livetest.Start
	for _, version := range []int{14, 19, 22} {
		for _, second := range []uint64{21, 22} {
			p := livetest.Lli(t, version, program(t, strings.ReplaceAll(text, "SECOND", fmt.Sprint(second))), "mcjit")
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
			require.Equal(t, uint64(21), f.Record.ID)
			require.Equal(t, []string{"%x i64 300"}, brief(f))
			require.Len(t, f.Also, 1)
			require.Equal(t, second, f.Also[0].Record.ID)
			require.Equal(t, []string{"%y i64 500", "%a i64 100"}, briefSlots(f.Also[0].Slots))
		}
	}
}

// TestValueThatRecordsAtOneAddressContradict requires that a value with different contents in two records at one address is unavailable in both,
// because one of the records is wrong.
func TestValueThatRecordsAtOneAddressContradict(t *testing.T) {
	const text = prelude + `
@three = global i64 300
@five = global i64 500
define i64 @work(i64 %n) noinline {
  %x = load volatile i64, ptr @three
  %y = load volatile i64, ptr @five
  %a = load volatile i64, ptr @seed
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 21, i32 0, i64 %x, i64 %y)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 22, i32 0, i64 %y, i64 %x, i64 %a)
  %s = add i64 %x, %y
  %s2 = add i64 %s, %a
  ret i64 %s2
}
` + livetest.Start
	module := frametest.ReadModule(t, "two.ll", text)
	for _, version := range []int{14, 19, 22} {
		object := livetest.Object(t, version, program(t, text), "-relocation-model=pic", "-O2")
		look := func(change func([]stackmap.Record)) *deopt.Frame {
			changed := frametest.Remapped(t, object, func(b *stackmap.Blob) { change(b.Functions[0].Records) })
			p := quiet(t, 0, livetest.Link(t, "two", nil, changed))
			return frametest.One(t, frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{module}}), "work")
		}
		f := look(func([]stackmap.Record) {})
		require.Equal(t, []string{"%x i64 300", "%y i64 500"}, brief(f))
		require.Equal(t, []string{"%y i64 500", "%x i64 300", "%a i64 100"}, briefSlots(f.Also[0].Slots))

		f = look(func(r []stackmap.Record) { r[1].Locations[1] = r[1].Locations[2] }) // %x at the location of %a
		require.Equal(t, []string{"%x i64 unavailable", "%y i64 500"}, brief(f), "LLVM %d", version)
		require.Contains(t, f.Slots[0].Reason, "record 22 at the same address has another value of it: 0x64 in ")
		require.Equal(t, []string{"%y i64 500", "%x i64 unavailable", "%a i64 100"}, briefSlots(f.Also[0].Slots))
		require.Contains(t, f.Also[0].Slots[1].Reason, "record 21 at the same address has another value of it: 0x12c in ")
	}
}

// TestStackmapBehindComputations covers computations of recorded values between a call and its stackmap: unchanged values are shown, and values that
// are not computed yet are not.
func TestStackmapBehindComputations(t *testing.T) {
	const text = prelude + `
@g = global i64 5
define i64 @work(i64 %a) noinline {
  %x = mul i64 %a, 3
  %c = icmp eq i64 %a, 7
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 25, i32 0, i64 %x, i1 %c, double 1.5, ptr @g)
  %s = select i1 %c, i64 %x, i64 %a
  ret i64 %s
}
` + livetest.Start
	for _, version := range []int{16, 19, 22} {
		p := livetest.Linked(t, version, program(t, text), "-pie")
		f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
		require.NotNil(t, f.Record, "LLVM %d: %v", version, f.Notes)
		require.Equal(t, []string{"%x i64 300", "%c i1 unavailable"}, brief(f)[:2], "LLVM %d", version)
		require.Contains(t, f.Slots[1].Reason, "the instructions between the call and the stackmap compute it, and have not run yet")
		for _, s := range f.Slots[2:] {
			if s.Status != frame.OK {
				require.Equal(t, frame.Missing, s.Status)
			}
		}
	}
}

// foldedProgram has two functions with the same code and different records: main calls @g.
const foldedProgram = prelude + `
define i64 @f(i64 %a) noinline {
  %x = mul i64 %a, 3
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x, i64 111)
  ret i64 %x
}
define i64 @g(i64 %a) noinline {
  %y = mul i64 %a, 3
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %y, i64 222)
  ret i64 %y
}
@take = global ptr @f
define i64 @work(i64 %a) noinline {
  %r = call i64 @g(i64 %a)
  ret i64 %r
}
` + livetest.Start

// TestFoldedFunctions requires that no record is certain if a linker has folded two identical functions into one address. The records of both
// must be shown.
func TestFoldedFunctions(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink(livetest.Tool(t, "ld.lld-19"), filepath.Join(dir, "ld.lld")))
	for _, version := range []int{14, 19, 22} {
		object := livetest.Object(t, version, program(t, foldedProgram), "-relocation-model=pic", "-function-sections", "-O2")
		path := filepath.Join(dir, fmt.Sprintf("folded%d", version))
		livetest.Make(t, livetest.Tool(t, "gcc"), "-fuse-ld=lld", "-B", dir, "-Wl,-z,notext", "-Wl,--icf=all", object, "-o", path)
		p := quiet(t, 0, path)
		module := frametest.ReadModule(t, "folded.ll", foldedProgram)
		v := frametest.Look(t, p, false, deopt.Options{Modules: []*ir.Module{module}})
		var f *deopt.Frame
		for _, x := range v.Threads[0].Frames {
			if x.Record != nil {
				require.Nil(t, f)
				f = x
			}
		}
		require.Nil(t, f.Resume)
		require.Len(t, f.Also, 1)
		var constants []string
		for _, s := range append(f.Slots, f.Also[0].Slots...) {
			require.Equal(t, frame.Guessed, s.Status)
			require.Equal(t, frame.FoldedFunctions, s.Code)
			require.Contains(t, s.Reason, "f, g; which of them runs is unknown")
			if s.Name == "" {
				constants = append(constants, s.Value)
			}
		}
		require.ElementsMatch(t, []string{"111", "222"}, constants)
		_, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
		require.ErrorContains(t, err, "which of them runs is unknown")
	}
}
