package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestOperandFoundToBeUndef requires that LLVM's mark is never shown as a value. LLVM records it for an operand that the code generator finds to
// be undef, as for one that is undef in the module. Some releases record an arbitrary register instead, which is a possible value of undef.
func TestOperandFoundToBeUndef(t *testing.T) {
	text := prelude + again + `
define i64 @work(i64 %s) noinline {
  %u = add i64 undef, 1
  %v = add i64 %u, 2
  %w = freeze i64 undef
  %x = add i64 %s, 1
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, i64 %v, i64 %w, i64 %x, i64 4278124286)
  ret i64 %x
}`
	for _, version := range []int{14, 16, 19} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			session, v := stopAtRecord(t, livetest.Lli(t, version, program(t, text), "mcjit"))
			f := frametest.One(t, v, "work")
			for _, name := range []string{"%v", "%w"} {
				s := frametest.Slot(t, f, name)
				require.Equal(t, frame.Missing, s.Status, name)
				require.Contains(t, s.Reason, "0xfefefefe, which LLVM writes for undef")
				require.Empty(t, s.Hex)
			}
			require.Equal(t, "101", frametest.Slot(t, f, "%x").Value)
			require.Equal(t, "4278124286", f.Slots[3].Value, "the module says that it is this number")
			require.NoError(t, session.Detach())
		})
	}
}

// TestArgumentOnTheStack requires that a statepoint records the address of an i128 that is passed on the stack.
func TestArgumentOnTheStack(t *testing.T) {
	text := prelude + `
define i64 @work(i64 %s) noinline {
  %w0 = zext i64 %s to i128
  %w = shl i128 %w0, 70
  %r = call i64 @f(i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 %s, i128 %w)
  ret i64 %r
}
define i64 @f(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %g, i64 %h, i128 %w) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i128 %w, i64 %h) ]
  ret i64 %h
}` + start
	for _, version := range []int{16, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "f")
			w := frametest.Slot(t, f, "%w")
			require.Equal(t, frame.Missing, w.Status)
			require.Equal(t, "Direct", w.Location.Kind)
			require.Equal(t, "LLVM records its address in the frame, not its value", w.Reason)
			require.Equal(t, "100", frametest.Slot(t, f, "%h").Value)
		})
	}
}

// TestPairOfAnotherPointer requires that a pair of gc pointers gets no name if it may belong to a deopt value in two places: here %p has no pair,
// because it is not relocated.
func TestPairOfAnotherPointer(t *testing.T) {
	text := prelude + `
@heap = global [64 x i64] zeroinitializer
@heap2 = global [64 x i64] zeroinitializer
define i64 @v(<2 x ptr addrspace(1)> %o, ptr addrspace(1) %p, i64 %a) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %a, <2 x ptr addrspace(1)> %o), "gc-live"(<2 x ptr addrspace(1)> %o, ptr addrspace(1) %p) ]
  %n = call <2 x ptr addrspace(1)> @llvm.experimental.gc.relocate.v2p1(token %t, i32 0, i32 0)
  %e = extractelement <2 x ptr addrspace(1)> %n, i32 1
  %l = load i64, ptr addrspace(1) %e
  ret i64 %l
}
define i64 @work(i64 %s) noinline {
  %g = addrspacecast ptr @heap to ptr addrspace(1)
  %g2 = addrspacecast ptr @heap2 to ptr addrspace(1)
  %v = insertelement <2 x ptr addrspace(1)> undef, ptr addrspace(1) %g, i32 0
  %v2 = insertelement <2 x ptr addrspace(1)> %v, ptr addrspace(1) %g2, i32 1
  %r = call i64 @v(<2 x ptr addrspace(1)> %v2, ptr addrspace(1) %g2, i64 %s)
  ret i64 %r
}` + start
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit",
				"-use-registers-for-deopt-values", "-max-registers-for-gc-values=4", "-fixup-allow-gcptr-in-csr")
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "v")
			require.Equal(t, "100", frametest.Slot(t, f, "%a").Value)
			require.Len(t, f.Slots, 3)
			require.Equal(t, f.Slots[1].Hex, f.Slots[2].Hex, "the third one is %%o again")
			require.NotEqual(t, "%p", f.Slots[2].Name)
		})
	}
}

// TestPairOfUndef requires that a gc pointer that the code generator found to be undef has no value. LLVM records a pair with its mark for it.
func TestPairOfUndef(t *testing.T) {
	text := prelude + `
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
define i64 @v(<2 x ptr addrspace(1)> %o, i64 %a, i64 %k) noinline gc "statepoint-example" {
  %p = extractelement <2 x ptr addrspace(1)> %o, i64 9
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(i64 %a), "gc-live"(ptr addrspace(1) %p) ]
  %n = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  %l = ptrtoint ptr addrspace(1) %n to i64
  ret i64 %l
}
define i64 @work(i64 %s) noinline {
  %r = call i64 @v(<2 x ptr addrspace(1)> zeroinitializer, i64 %s, i64 9)
  ret i64 %r
}` + start
	for _, version := range []int{16, 19} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "v")
		require.Equal(t, "100", frametest.Slot(t, f, "%a").Value)
		require.Equal(t, sites.UndefMark, frametest.Slot(t, f, "%p").Reason, "LLVM %d", version)
		require.Equal(t, frame.Missing, frametest.Slot(t, f, "%p").Status)
		require.Empty(t, frametest.Slot(t, f, "%p").Hex)
	}
}

// TestNumberOfAnAlloca requires that an alloca's address, converted to an integer, is recorded as that address in each kind of site, and equals the
// program's value.
func TestNumberOfAnAlloca(t *testing.T) {
	livetest.Slow(t)
	for _, site := range []string{
		"%r = call i64 @wait(i64 %s)\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0, i64 %x, i64 %y, ptr %p)",
		"%r = call i64 @wait(i64 %s) [ \"deopt\"(i64 %x, i64 %y, ptr %p) ]",
	} {
		text := prelude + `
@kept = global i64 0
define i64 @work(i64 %s) noinline {
  %p = alloca i64
  store volatile i64 %s, ptr %p
  %x = ptrtoint ptr %p to i64
  store volatile i64 %x, ptr @kept
  %y = load volatile i64, ptr @kept
  ` + site + `
  %z = add i64 %y, %r
  %w = load volatile i64, ptr %p
  %v = xor i64 %w, %x
  %u = add i64 %v, %z
  ret i64 %u
}` + start
		for _, version := range []int{16, 19, 22} {
			p := livetest.Lli(t, version, program(t, text), "mcjit")
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
			require.Equal(t, frame.OK, frametest.Slot(t, f, "%x").Status, "LLVM %d: %s", version, frametest.Slot(t, f, "%x").Reason)
			require.Equal(t, frametest.Slot(t, f, "%y").Value, frametest.Slot(t, f, "%x").Value, "LLVM %d", version)
			require.Equal(t, "Direct", frametest.Slot(t, f, "%x").Location.Kind, "LLVM %d", version)
		}
	}
}

// TestStackMapShapedLikeAStatepoint requires that, without the module, three constants at the start of a stackmap after a call do not make it a
// statepoint: all recorded values must be shown.
func TestStackMapShapedLikeAStatepoint(t *testing.T) {
	text := prelude + `
define i64 @work(i64 %s) noinline {
  %y = add i64 %s, 5
  %r = call i64 @wait(i64 1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0, i64 5, i64 0, i64 1, i64 %y)
  %z = add i64 %y, %r
  ret i64 %z
}` + start
	p := livetest.Lli(t, 19, program(t, text), "mcjit")
	f := frametest.One(t, frametest.Look(t, p, false, deopt.Options{}), "work")
	require.Equal(t, "unknown", f.Record.Site)
	var got []string
	for _, s := range f.Slots {
		got = append(got, s.Name+" "+string(s.Hex))
	}
	require.Equal(t, []string{"loc0 0x5", "loc1 0x0", "loc2 0x1", "loc3 0x69"}, got)
	f = frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
	require.Equal(t, "stackmap", f.Record.Site)
	require.Equal(t, "105", frametest.Slot(t, f, "%y").Value)
}

// TestAnyRegister requires that the live values of an anyregcc patchpoint are found after its result and arguments, which LLVM records first. The
// convention may be written as a number.
func TestAnyRegister(t *testing.T) {
	for _, cc := range []string{"anyregcc", "cc 13"} {
		text := prelude + strings.ReplaceAll(`
define i64 @work(i64 %s) noinline {
  %y = add i64 %s, 5
  %z = mul i64 %s, 7
  %r = call CC i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 9, i32 32, ptr @wait, i32 1, i64 %s, i64 %y, i64 77)
  %a = add i64 %y, %r
  %b = add i64 %a, %z
  ret i64 %b
}`, "CC", cc) + start
		for _, version := range []int{14, 22} {
			t.Run(fmt.Sprintf("%s lli-%d", cc, version), func(t *testing.T) {
				p := livetest.Lli(t, version, program(t, text), "mcjit")
				f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
				require.Equal(t, "patchpoint", f.Record.Site)
				require.Len(t, f.Slots, 2)
				check(t, f, map[string]string{"%y": "105"}, []string{"77"})
			})
		}
	}
}

// TestRolesOfAnyRegister requires that the locations before the live values of an anyregcc patchpoint are those of its result, if any, and its
// arguments. In a process stopped at the record, each argument's register must hold the argument.
func TestRolesOfAnyRegister(t *testing.T) {
	livetest.Slow(t)
	const patchpoint = `
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
define i64 @work(i64 %s) noinline {
  %y = add i64 %s, 5
  %z = mul i64 %s, 7
  CALL
  %a = add i64 %y, %z
  ret i64 %a
}`
	for _, c := range []struct {
		call string
		want []string
	}{
		{"%r = call anyregcc i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 9, i32 32, ptr null, i32 2, i64 %y, i64 %z, i64 %s)",
			[]string{"result %r i64", "argument 0 %y i64", "argument 1 %z i64", "live 0 %s i64"}},
		{"call anyregcc void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 9, i32 32, ptr null, i32 2, i64 %y, i64 4, i64 %s)",
			[]string{"argument 0 %y i64", "argument 1  i64", "live 0 %s i64"}},
	} {
		for _, version := range []int{14, 19, 22} {
			t.Run(fmt.Sprintf("lli-%d %s", version, c.call[:4]), func(t *testing.T) {
				p := livetest.Lli(t, version, program(t, prelude+again+strings.Replace(patchpoint, "CALL", c.call, 1)), "mcjit")
				session, v := stopAtRecord(t, p)
				f := frametest.One(t, v, "work")
				found, err := maps.OfTarget(v.Target(), maps.Options{Modules: frametest.Known(t, p).Modules})
				require.NoError(t, err)
				var got []string
				for fn := range found.Images[0].Functions() {
					for rec := range fn.Records() {
						var r maps.Reading
						fn.Read(rec, &r)
						for n, l := range rec.Locations {
							role := r.Role(n)
							got = append(got, fmt.Sprintf("%v %s %s", role, role.Name, role.Type))
							if role.What == "argument" {
								held, err := f.Physical().Registers.Uint(l.Reg)
								require.NoError(t, err)
								require.EqualValues(t, map[string]uint64{"%y": 105, "%z": 700, "": 4}[role.Name], held)
							}
						}
					}
				}
				require.Equal(t, c.want, got)
				require.NoError(t, session.Detach())
			})
		}
	}
}
