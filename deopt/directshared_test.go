package deopt_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// lifetimes has two allocas with disjoint lifetimes, to which LLVM gives the same memory. Only RECORDED is recorded. Only the record of the second
// certainly belongs to the current content.
const lifetimes = prelude + `
declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)
define void @fill(ptr %p) noinline {
  store i64 77, ptr %p
  ret void
}
define i64 @work(i64 %s) noinline {
entry:
  %first = alloca i64
  %second = alloca i64
  %always = alloca i64
  store i64 5, ptr %always
  call void @llvm.lifetime.start.p0(i64 8, ptr %first)
  call void @fill(ptr %first)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, ptr %first, ptr %always)
  call void @llvm.lifetime.end.p0(i64 8, ptr %first)
  call void @llvm.lifetime.start.p0(i64 8, ptr %second)
  store i64 %s, ptr %second
  %w = call i64 @wait(i64 %s)
  call void @fill(ptr %second)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, i64 %s RECORDED)
  call void @llvm.lifetime.end.p0(i64 8, ptr %second)
  call void @fill(ptr %always)
  %r = load i64, ptr %always
  ret i64 %r
}
` + start

// TestDirectLocationsThatShareMemory requires that no variable is certain if two variables share its memory, even if only one of them is
// recorded.
func TestDirectLocationsThatShareMemory(t *testing.T) {
	for _, version := range []int{16, 19} {
		look := func(recorded string) map[string]frame.Direct {
			p := livetest.Lli(t, version, program(t, strings.ReplaceAll(lifetimes, "RECORDED", recorded)), "mcjit")
			o := frametest.Known(t, p)
			o.Direct = true
			f := frametest.One(t, frametest.Look(t, p, false, o), "work")
			require.Nil(t, f.Record)
			found := map[string]frame.Direct{}
			for _, d := range f.Direct {
				found[d.Name] = d
			}
			return found
		}
		both := look(", ptr %second")
		require.Len(t, both, 3)
		require.Equal(t, both["%first"].Address, both["%second"].Address)
		require.Equal(t, frame.Missing, both["%first"].Status)
		require.Equal(t, frame.DirectUnknown, both["%first"].Code)
		require.Equal(t, "%second overlaps it in memory, and which of them is live is unknown", both["%first"].Reason)
		require.Equal(t, frame.Missing, both["%second"].Status)
		require.Equal(t, "5", both["%always"].Value)
		require.Equal(t, frame.OK, both["%always"].Status)

		one := look("")
		require.Len(t, one, 2)
		require.Equal(t, "100", one["%first"].Value) // the value of %second
		require.Equal(t, frame.Guessed, one["%first"].Status)
		require.Equal(t, frame.MayBeDead, one["%first"].Code)
		require.Contains(t, one["%first"].Reason, "its memory may be another variable's")
	}
}

// TestDirectLocationsOfRecordsThatDisagree requires that a variable with different places in two records is unavailable.
func TestDirectLocationsOfRecordsThatDisagree(t *testing.T) {
	text := prelude + `
define i64 @work(i64 %s) noinline {
entry:
  %x = alloca i64
  %y = alloca i64
  store i64 %s, ptr %x
  store i64 7, ptr %y
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, ptr %x, ptr %y)
  %w = call i64 @wait(i64 %s)
  store i64 %w, ptr %x
  store i64 %w, ptr %y
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, ptr %x, ptr %y)
  ret i64 %s
}
` + start
	path := program(t, text)
	object := frametest.Remapped(t, livetest.PICObject(t, 19, path), func(b *stackmap.Blob) {
		b.Functions[0].Records[1].Locations[0].Offset -= 64
	})
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "disagree")
	livetest.Make(t, livetest.Tool(t, "gcc"), object, "-o", out)
	f := frametest.One(t, frametest.Look(t, quiet(t, 0, out), false, deopt.Options{Modules: []*ir.Module{m}, Direct: true, MapsInQuestion: true}), "work")
	require.Nil(t, f.Record)
	require.Len(t, f.Direct, 2)
	require.ElementsMatch(t, []string{"%x i64 unavailable", "%y i64 7 ok"}, direct(f), "%+v", f.Direct)
	for _, d := range f.Direct {
		require.Equal(t, 2, d.Records)
		if d.Name == "%x" {
			require.Empty(t, d.Address)
			require.Equal(t, frame.DirectUnknown, d.Code)
			require.Equal(t, "the records of the function have it in different places", d.Reason)
		}
	}
}

// onARM64 writes the addresses of its allocas into a global, and stops in a call without a record.
const onARM64 = `
target triple = "aarch64-unknown-linux-gnu"
target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare void @stop()
@where = global [2 x ptr] zeroinitializer
define i64 @nothing(i64 %a) noinline {
  ret i64 %a
}
define i64 @work(i64 %s) noinline gc  "statepoint-example" {
entry:
  %number = alloca i64
  %half = alloca i16 ALIGN
  store i64 4711, ptr %number
  store i16 -3, ptr %half
  store ptr %number, ptr @where
  store ptr %half, ptr getelementptr ([2 x ptr], ptr @where, i64 0, i64 1)
  call void @stop()
  store i64 %s, ptr %number
  %n = call i64 @nothing(i64 %s)
  SITE
  %r = load i64, ptr %number
  ret i64 %r
}
define i64 @entry() {
  %r = call i64 @work(i64 5)
  %r1 = add i64 %r, 1
  ret i64 %r1
}
`

// TestDirectLocationsOnARM64 requires that allocas have the addresses that the program logged, in an arm64 core. In a function that realigns its
// stack pointer, they must be unavailable.
func TestDirectLocationsOnARM64(t *testing.T) {
	at := slices.IndexFunc(livetest.Crosses, func(c livetest.Cross) bool { return c.Arch == "arm64" })
	var turns livetest.Turns
	for _, version := range []int{16, 19, 22} {
		for kind, call := range map[string]string{
			"stackmap":   "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 8, ptr %number, ptr %half)",
			"statepoint": "%t = call " + livetest.Statepoint(5, "@nothing", "1", "ptr %number, ptr %half"),
		} {
			for _, align := range []string{"", ", align 64"} {
				if turns.Out(3) {
					continue
				}
				name := fmt.Sprint(version, " ", kind, align)
				path := program(t, strings.NewReplacer("ALIGN", align, "SITE", call).Replace(onARM64))
				object := livetest.Object(t, version, path, "-O2", "-relocation-model=pic")
				exe := livetest.Crosses[at].Build(t, []string{"-O1", "-static", object}, mustAbs(t, "testdata/svevg/host.c"))
				m, err := ir.ParseFile(path)
				require.NoError(t, err)
				core, err := ptrace.OpenCore(livetest.Crosses[at].Core(t, exe), ptrace.CoreOptions{Exe: exe})
				require.NoError(t, err)
				v, err := deopt.Frames(core, deopt.Options{Modules: []*ir.Module{m}, Direct: true})
				require.NoError(t, err)
				f := frametest.One(t, v, "work")
				require.Nil(t, f.Record, name)
				require.Len(t, f.Direct, 2, name)
				if align == "" {
					require.ElementsMatch(t, []string{"%number i64 4711 ok", "%half i16 -3 ok"}, direct(f), "%s: %+v", name, f.Direct)
				} else {
					require.Contains(t, direct(f), "%half i16 unavailable", name)
				}
				where, ok := f.Code().Image.Lookup("where")
				require.True(t, ok)
				for n, name := range []string{"%number", "%half"} {
					var b [8]byte
					require.NoError(t, core.ReadMemory(b[:], where.Addr+machine.Addr(8*n)))
					for _, d := range f.Direct {
						if d.Name == name && d.Status == frame.OK {
							require.Equal(t, []string{"4711", "-3"}[n], d.Value)
							require.Equal(t, frame.HexOf(machine.Addr(binary.LittleEndian.Uint64(b[:]))), d.Address)
						}
					}
				}
				core.Close()
			}
		}
	}
}
