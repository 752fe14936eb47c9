package ir

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func liveAt(t testing.TB, f *Func, block string, index int) string {
	t.Helper()
	b := f.Block(block)
	require.NotNil(t, b, block)
	values, err := LiveAt(b, index)
	require.NoError(t, err)
	refs := make([]string, len(values))
	for i, v := range values {
		refs[i] = v.Ref()
	}
	return strings.Join(refs, " ")
}

func TestLiveAt(t *testing.T) {
	m, err := ParseFile(program("deoptimize.ll"))
	require.NoError(t, err)
	relocate, err := ParseFile(filepath.Join("testdata", "relocate.ll"))
	require.NoError(t, err)
	other := parse(t, `
declare i64 @g(i64)
define i64 @f(i64 %a, i64 %b, i64 %unused, ptr %fp) {
entry:
  %x = add i64 %a, 1
  %c = icmp eq i64 %x, 0
  br i1 %c, label %left, label %right
left:
  %y = mul i64 %x, %b
  br label %join
right:
  %z = call i64 %fp(i64 %a) [ "deopt"(i64 %b) ]
  br label %join
join:
  %p = phi i64 [ %y, %left ], [ %a, %right ]
  %q = phi i64 [ %x, %left ], [ %z, %right ]
  %never = phi i64 [ 0, %left ], [ 1, %right ]
  %r = add i64 %p, %q
  ret i64 %r
loop:
  %i = phi i64 [ %next, %loop ]
  %j = phi i64 [ %i, %loop ]
  %next = add i64 %i, 1
  %d = icmp eq i64 %j, %b
  br i1 %d, label %loop, label %end
end:
  ret i64 %next
}
`)
	sumOpt, sum, f := m.Func("sum_opt"), m.Func("sum"), other.Func("f")
	for _, c := range []struct {
		f     *Func
		block string
		index int
		want  string
	}{
		{sum, "entry", 0, "%n"},
		{sum, "loop", 0, "%n %i %acc"}, // at the start of the block, its own phis are inputs
		{sum, "loop", 2, "%n %i %acc"},
		{sum, "loop", 3, "%n %i %acc %sq"},
		{sum, "loop", 4, "%n %i %acc1"},
		{sum, "loop", 6, "%n %acc1 %i1 %c"},
		{sum, "done", 0, "%acc1"},
		{sumOpt, "loop", 0, "%n %limit %i %acc"},
		{sumOpt, "exit", 0, "%n %i %acc"},
		{sumOpt, "exit", 1, "%d"},
		{f, "entry", 0, "%a %b %fp"},
		{f, "entry", 1, "%a %b %fp %x"},
		{f, "left", 0, "%b %x"},
		{f, "left", 1, "%x %y"}, // the phis of %join read both, only on the edge from %left
		{f, "right", 0, "%a %b %fp"},
		{f, "right", 1, "%a %z"},
		{f, "join", 0, "%p %q"}, // an unused phi is not needed
		{f, "join", 3, "%p %q"},
		{f, "join", 4, "%r"},
		{f, "loop", 0, "%b %i %j"},
		{f, "loop", 3, "%b %i %j %next"}, // %i becomes %j on the back edge
		{f, "end", 0, "%next"},
		{relocate.Func("f"), "0", 0, "%n %base %dead"},
		{relocate.Func("f"), "0", 2, "%base %derived"}, // not live after the statepoint: its token and %dead
		{relocate.Func("f"), "0", 3, "%base %derived %r"},
		{relocate.Func("unwinds"), "entry", 0, "%p %q"},
		{relocate.Func("unwinds"), "ok", 0, ""},
		{relocate.Func("unwinds"), "bad", 0, "%q"},
	} {
		require.Equal(t, c.want, liveAt(t, c.f, c.block, c.index), "%s %s %d", c.f.Name, c.block, c.index)
	}
	_, err = LiveAt(f.Block("end"), 2)
	require.EqualError(t, err, "block %end has no instruction 2")
}

// gcModule returns a function of gc pointers over a random graph of blocks. Values of the entry block are used everywhere; others are used in their own
// block and in phis, so that definitions dominate uses.
func gcModule(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(`target triple = "x86_64-pc-linux-gnu"
declare void @safepoint()
declare ptr addrspace(1) @make() "gc-leaf-function"
declare void @use(ptr addrspace(1)) "gc-leaf-function"
declare i1 @flip() "gc-leaf-function"
define void @f(ptr addrspace(1) %p0, ptr addrspace(1) %p1) gc "statepoint-example" {
`)
	blocks := 3 + r.Intn(6)
	everywhere := []string{"%p0", "%p1"}
	for i := range blocks {
		var own []string
		if i == 0 {
			b.WriteString("entry:\n")
		} else {
			fmt.Fprintf(&b, "b%d:\n", i)
		}
		for k := range 1 + r.Intn(4) {
			switch r.Intn(4) {
			case 0:
				name := fmt.Sprintf("%%v%d_%d", i, k)
				fmt.Fprintf(&b, "  %s = call ptr addrspace(1) @make()\n", name)
				if i == 0 {
					everywhere = append(everywhere, name)
				} else {
					own = append(own, name)
				}
			case 1:
				fmt.Fprintf(&b, "  call void @safepoint() [ \"deopt\"() ]\n")
			default:
				pool := append(slices.Clone(own), everywhere...)
				fmt.Fprintf(&b, "  call void @use(ptr addrspace(1) %s)\n", pool[r.Intn(len(pool))])
			}
		}
		if r.Intn(5) == 0 {
			b.WriteString("  ret void\n")
			continue
		}
		fmt.Fprintf(&b, "  %%c%d = call i1 @flip()\n  br i1 %%c%d, label %%b%d, label %%b%d\n", i, i, 1+r.Intn(blocks-1), 1+r.Intn(blocks-1))
	}
	return b.String() + "}\n"
}

// TestLivenessIsThatOfRewriteStatepoints requires that the values live after a call are those that rewrite-statepoints-for-gc adds to the gc-live bundle of
// its statepoint.
func TestLivenessIsThatOfRewriteStatepoints(t *testing.T) {
	const version = 19
	compared := 0
	for seed := range int64(40) {
		src := gcModule(rand.New(rand.NewSource(seed)))
		before := parse(t, src).Func("f")
		after := parse(t, opt(t, version, write(t, "gc.ll", src), "-passes=rewrite-statepoints-for-gc")).Func("f")
		for _, b := range after.computed().body.blocks {
			old := before.Block(b.Name)
			if old == nil {
				continue
			}
			var calls []int
			for i, in := range old.Instrs {
				if in.Call != nil && in.Call.Callee.Ref() == "@safepoint" {
					calls = append(calls, i)
				}
			}
			for _, in := range b.Instrs {
				if !isIntrinsic(in, "experimental.gc.statepoint") {
					continue
				}
				var want []string
				for _, v := range bundle(in, "gc-live") {
					want = append(want, originalName(v, map[*Instr]bool{}))
				}
				var got []string
				values, err := LiveAt(old, calls[0]+1)
				require.NoError(t, err)
				for _, v := range values {
					if v.Type().Kind == PointerKind {
						got = append(got, v.Ref())
					}
				}
				require.ElementsMatch(t, want, got, "seed %d, block %s\n%s", seed, b.Name, src)
				calls = calls[1:]
				compared++
			}
			require.Empty(t, calls)
		}
	}
	require.Greater(t, compared, 60)
}

// originalName follows a relocated value back to the original, through phis that merge relocations of it.
func originalName(v Value, seen map[*Instr]bool) string {
	in, ok := v.(*Instr)
	switch {
	case ok && isIntrinsic(in, "experimental.gc.relocate"):
		k, _ := smallConst(in.Args[2])
		return originalName(bundle(in.Args[0].(*Instr), "gc-live")[k], seen)
	case ok && in.Op == OpPhi:
		if seen[in] {
			return ""
		}
		seen[in] = true
		for _, a := range in.Args {
			if name := originalName(a, seen); name != "" {
				return name
			}
		}
		return ""
	}
	return v.Ref()
}
