package verify

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestObjectPairsTranslate requires that native addresses in a passed object, and right after its end, become the interpreter's, and that a later
// pair replaces an earlier one with the same memory.
func TestObjectPairsTranslate(t *testing.T) {
	var o objectPairs
	require.True(t, o.add(0x100, 0x7000, 16))
	require.True(t, o.add(0x108, 0x7008, 4)) // a part of an existing pair
	require.Len(t, o.list, 1)
	for native, want := range map[machine.Addr]machine.Addr{0x7000: 0x100, 0x700f: 0x10f, 0x7010: 0x110} {
		own, ok := o.toOwn(native)
		require.True(t, ok)
		require.Equal(t, want, own)
	}
	_, ok := o.toOwn(0x6fff)
	require.False(t, ok)
	require.Equal(t, interp.FromUint(ir.Ptr, 0x104), o.ownResult(interp.FromUint(ir.Ptr, 0x7004)))
	require.Equal(t, interp.FromUint(ir.I64, 0x7004), o.ownResult(interp.FromUint(ir.I64, 0x7004))) // an i64 is not a pointer

	require.True(t, o.add(0x100, 0x8000, 16)) // another object of native code
	require.Equal(t, []objectPair{{machine.Range{Start: 0x100, End: 0x110}, machine.Range{Start: 0x8000, End: 0x8010}}}, o.list)
	for n := range machine.Addr(maxObjectPairs - 1) {
		require.True(t, o.add(0x1000+16*n, 0x9000+16*n, 16))
	}
	require.False(t, o.add(0x90000, 0x90000, 16))
}

const linkedNodes = `
%node = type { ptr, ptr, i64 }
@kept = global %node zeroinitializer
declare void @insque(ptr, ptr)
declare void @remque(ptr)
declare ptr @memfrob(ptr, i64)
define i64 @nodes(i64 %n) noinline {
  %head = alloca %node
  %one = alloca %node
  %two = alloca %node
  %hp = getelementptr %node, ptr %head, i64 0, i32 1
  store ptr %head, ptr %head ; a ring of one
  store ptr %head, ptr %hp
  %hv = getelementptr %node, ptr %head, i64 0, i32 2
  store i64 %n, ptr %hv
  %ov = getelementptr %node, ptr %one, i64 0, i32 2
  store i64 7, ptr %ov
  %tv = getelementptr %node, ptr %two, i64 0, i32 2
  store i64 8, ptr %tv
  call void @insque(ptr %one, ptr %head)
  call void @insque(ptr %two, ptr %one)
  %first = load ptr, ptr %head
  %is = icmp eq ptr %first, %one
  %second = load ptr, ptr %first
  %sv = getelementptr %node, ptr %second, i64 0, i32 2
  %r = call ptr @memfrob(ptr %sv, i64 1)
  %x = load i64, ptr %tv
  call void @remque(ptr %one)
  %now = load ptr, ptr %head
  %also = icmp eq ptr %now, %two
  %a = select i1 %is, i64 %x, i64 0
  %b = select i1 %also, i64 100, i64 0
  %c = add i64 %a, %b
  %back = load i64, ptr %r
  %end = getelementptr %node, ptr %two, i64 1
  %none = call ptr @memfrob(ptr %end, i64 0) ; right behind it
  %m = getelementptr i8, ptr %none, i64 -8
  store i64 3, ptr %m
  %d = add i64 %c, %back
  KEEP
  %tail = load i64, ptr %tv
  %more = mul i64 %tail, 1000
  %h = load i64, ptr %hv
  %e = add i64 %h, %more
  %f = add i64 %d, %e
  ret i64 %f
}
define i32 @main() {
  %a = call i64 @nodes(i64 1)
  %b = call i64 @nodes(i64 %a)
  ret i32 0
}
`

// TestVerifyPointersToOwnMemory requires that pointers within the interpreter's own memory equal native code's pointers in the same places, including
// pointers that a callee stores and returns.
func TestVerifyPointersToOwnMemory(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{19, 22} {
		for _, c := range []struct{ keep, wrong, status, why string }{
			{"", "", Same, ""},
			// A callee keeps a pointer to the object in other memory. The object to which it points is then unknown.
			{"call void @insque(ptr @kept, ptr %head)\n %kp = load ptr, ptr getelementptr (%node, ptr @kept, i64 0, i32 1)\n %kv = getelementptr %node, ptr %kp, i64 0, i32 2\n store i64 5, ptr %kv",
				"", NotComparable, "native code has stored a pointer"},
			{"", "store ptr %one, ptr %hp", Different, ""},
		} {
			text := strings.Replace(linkedNodes, "KEEP", c.keep, 1)
			a, m := frametest.Written(t, "nodes.ll", text)
			if c.wrong != "" {
				_, m = frametest.Written(t, "wrong.ll", strings.Replace(text, "store ptr %head, ptr %hp", c.wrong, 1))
			}
			t.Setenv("JITDUMPDIR", t.TempDir())
			o := Options{EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, "nodes")}}
			o.Modules = append(o.Modules, m)
			_, all := verified(t, []string{livetest.LLVM(t, version, "lli"), "-jit-kind=mcjit", a}, o)
			require.Len(t, all, 2)
			for _, v := range all {
				require.Equal(t, c.status, v.Status, "%s: %s %+v", c.keep, v.Why, v.Call)
				require.Contains(t, v.Why, c.why)
			}
		}
	}
}

const partlyPassed = `
@slot = global [2 x ptr] zeroinitializer
declare ptr @memfrob(ptr, i64)
define i64 @work(i64 %n) noinline {
  %own = alloca i64
  %other = alloca i64
  store i64 %n, ptr %own
  store i64 99, ptr %other
  %second = getelementptr ptr, ptr @slot, i64 1
  store ptr %own, ptr @slot
  store ptr STORED, ptr %second
  %r = call ptr @memfrob(ptr dereferenceable(BYTES) @slot, i64 0)
  store [2 x ptr] zeroinitializer, ptr @slot
  %v = load i64, ptr %own
  ret i64 %v
}
define i32 @main() {
  %a = call i64 @work(i64 1)
  ret i32 0
}
`

// TestVerifyPartsOfPointersToOwnMemory covers calls to which only some bytes of such a pointer are passed.
func TestVerifyPartsOfPointersToOwnMemory(t *testing.T) {
	livetest.Slow(t)
	for _, bytes := range []string{"1", "11"} {
		text := strings.NewReplacer("STORED", "%own", "BYTES", bytes).Replace(partlyPassed)
		native, right := frametest.Written(t, "right.ll", text)
		_, wrong := frametest.Written(t, "wrong.ll", strings.NewReplacer("STORED", "%other", "BYTES", "11").Replace(partlyPassed))
		for _, c := range []struct {
			module *ir.Module
			status string
		}{{right, Same}, {wrong, Different}} {
			t.Setenv("JITDUMPDIR", t.TempDir())
			o := Options{EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, "work")}}
			o.Modules = append(o.Modules, c.module)
			_, all := verified(t, []string{livetest.LLVM(t, 19, "lli"), "-jit-kind=mcjit", native}, o)
			require.Len(t, all, 1)
			require.Equal(t, c.status, all[0].Status, "%s bytes: %s %+v", bytes, all[0].Why, all[0].Call)
		}
	}
}
