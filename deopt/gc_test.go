package deopt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestPairOfAConstant requires that a pair of gc pointers gets no name if it may belong to a constant of the gc-live bundle: here %p is not
// relocated. If a null is not relocated, the pair belongs to %p.
func TestPairOfAConstant(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{16, 19, 22} {
		for _, c := range []struct {
			constant  string
			relocated int
			names     bool
		}{
			{"null", 0, false}, {"@g", 0, false}, {"addrspacecast (ptr @h to ptr addrspace(1))", 0, false},
			{"inttoptr (i64 4096 to ptr addrspace(1))", 0, false}, {"undef", 0, false}, {"null", 1, true},
		} {
			t.Run(fmt.Sprintf("lli-%d %s %d", version, c.constant, c.relocated), func(t *testing.T) {
				text := prelude + fmt.Sprintf(`
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
@g = addrspace(1) global i64 5
@h = global i64 5
define i64 @v(ptr addrspace(1) %%p, i64 %%a) noinline gc "statepoint-example" {
  %%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 %%a, i32 0, i32 0) [ "gc-live"(ptr addrspace(1) %s, ptr addrspace(1) %%p) ]
  %%n = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %%t, i32 %d, i32 %[2]d)
  %%r = ptrtoint ptr addrspace(1) %%n to i64
  ret i64 %%r
}
define i64 @work(i64 %%s) noinline {
  %%p = inttoptr i64 12345680 to ptr addrspace(1)
  %%r = call i64 @v(ptr addrspace(1) %%p, i64 %%s)
  ret i64 %%r
}`, c.constant, c.relocated) + start
				p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
				f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "v")
				require.Len(t, f.Slots, 1)
				if c.names {
					require.Equal(t, "%p", f.Slots[0].Name)
					require.Equal(t, "0xbc6150", string(f.Slots[0].Hex))
				} else {
					require.Equal(t, "loc0", f.Slots[0].Name)
				}
			})
		}
	}
}

// TestResumeReadsAllocasOfStatepoints requires that the interpreter reads the contents of an alloca in gc-live, such as pointers, from the stack
// as the collector left them. The record locates the alloca by address, without a base, and does not contain its contents.
func TestResumeReadsAllocasOfStatepoints(t *testing.T) {
	text := prelude + `
@g = global i64 7
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %region = alloca [2 x i64]
  %second = getelementptr i64, ptr %region, i64 1
  %p = ptrtoint ptr @g to i64
  store i64 %a, ptr %region
  store i64 %p, ptr %second
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 %a, i32 0, i32 0) [ "deopt"(ptr %region), "gc-live"(ptr %region) ]
  %x = load i64, ptr %region
  %at = getelementptr i64, ptr %region, i64 1
  %q = load ptr, ptr %at
  %y = load i64, ptr %q
  %r = add i64 %x, %y
  ret i64 %r
}
` + start
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		v := frametest.Look(t, p, true, frametest.Known(t, p))
		f := frametest.One(t, v, "work")
		require.Equal(t, "Direct", f.Slots[0].Location.Kind, "LLVM %d", version)
		for k, s := range f.Slots {
			require.Equal(t, f.Slots[0].Value, s.Value, "LLVM %d: slot %d is the address again", version, k)
			require.False(t, s.Type.Composite())
			require.True(t, s.GC == nil || s.GC.Base == nil, "LLVM %d", version)
		}
		out, err := v.Run(t.Context(), frametest.StackOf(v, f), deopt.Limits{})
		require.NoError(t, err, "LLVM %d", version)
		require.Equal(t, "107", out.Result.Value, "LLVM %d", version)
	}
}
