package deopt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// pointerChain is a random program: a chain of calls whose functions relocate pointers. It knows the value of each pointer.
type pointerChain struct {
	random *rand.Rand
	text   strings.Builder
	value  map[string]map[string]uint64 // by function and name
}

// function writes @f<k>, which calls @f<k+1>. The last one calls @wait.
func (c *pointerChain) function(k, last int) (parameters, arguments string) {
	name := fmt.Sprintf("f%d", k)
	value := map[string]uint64{}
	c.value[name] = value
	const pointer = "ptr addrspace(1)"
	var bases, all, formal, actual []string
	for n := range 1 + c.random.IntN(4) {
		base := fmt.Sprintf("%%a%d", n)
		value[base] = 0x10000*uint64(k+1) + 0x1000*uint64(n+1)
		bases, all = append(bases, base), append(all, base)
		formal = append(formal, pointer+" "+base)
		actual = append(actual, fmt.Sprintf("%s inttoptr (i64 %d to %s)", pointer, value[base], pointer))
	}
	baseOf := map[string]string{}
	var before, after strings.Builder
	for n := range c.random.IntN(4) {
		base, derived := bases[c.random.IntN(len(bases))], fmt.Sprintf("%%d%d", n)
		offset := uint64(c.random.IntN(5)) * 8 // 0: the code generator may merge the two
		value[derived], baseOf[derived] = value[base]+offset, base
		all = append(all, derived)
		fmt.Fprintf(&before, "  %s = getelementptr i8, %s %s, i64 %d\n", derived, pointer, base, offset)
	}
	nulls := c.random.IntN(6) == 0
	live := []string{}
	index := map[string]int{}
	for _, v := range all {
		index[v] = len(live)
		live = append(live, pointer+" "+v)
	}
	if nulls {
		index["null"] = len(live)
		live = append(live, pointer+" null")
		all = append(all, "null")
	}
	c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	sum := "%s"
	for n, v := range all {
		if c.random.IntN(5) == 0 {
			continue // the pointer is not relocated
		}
		base := baseOf[v]
		if base == "" {
			base = v
		}
		fmt.Fprintf(&after, "  %%r%d = call %s @llvm.experimental.gc.relocate.p1(token %%t, i32 %d, i32 %d)\n", n, pointer, index[base], index[v])
		if c.random.IntN(8) > 0 { // otherwise the pointer is unused
			fmt.Fprintf(&after, "  %%i%d = ptrtoint %s %%r%d to i64\n  %%s%d = add i64 %s, %%i%d\n", n, pointer, n, n, sum, n)
			sum = fmt.Sprintf("%%s%d", n)
		}
	}
	deopt := []string{"i64 %s"}
	for _, v := range all {
		if v != "null" && c.random.IntN(4) == 0 {
			deopt = append(deopt, pointer+" "+v)
		}
	}
	callee, types, count, passed := "wait", "i64", 1, "i64 %s"
	if k < last {
		more, args := c.function(k+1, last)
		callee, types, count, passed = fmt.Sprintf("f%d", k+1), more+"i64", strings.Count(more, ",")+1, args+"i64 %s"
	}
	fmt.Fprintf(&c.text, "define i64 @%s(%s, i64 %%s) noinline gc \"statepoint-example\" {\n%s", name, strings.Join(formal, ", "), &before)
	fmt.Fprintf(&c.text, "  %%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 %d, i32 0, ptr elementtype(i64 (%s)) @%s, i32 %d, i32 0, %s, i32 0, i32 0) [ \"deopt\"(%s), \"gc-live\"(%s) ]\n",
		k, types, callee, count, passed, strings.Join(deopt, ", "), strings.Join(live, ", "))
	fmt.Fprintf(&c.text, "%s  ret i64 %s\n}\n", &after, sum)
	return strings.Repeat(pointer+", ", len(formal)), strings.Join(actual, ", ") + ", "
}

// TestNamesOfGCPointers reads random functions that relocate bases and derived pointers. A named slot must have the value that the program
// computes for that pointer. A slot with several possible names must have the value of one of these pointers.
func TestNamesOfGCPointers(t *testing.T) {
	livetest.NeedsTools(t)
	for _, version := range []int{16, 19, 22} {
		for _, flags := range [][]string{nil, {"-O0"}, {"-use-registers-for-deopt-values"}} {
			t.Run(fmt.Sprintf("lli-%d %v", version, flags), func(t *testing.T) {
				const functions = 60
				c := &pointerChain{random: rand.New(rand.NewPCG(40, uint64(version))), value: map[string]map[string]uint64{}}
				c.text.WriteString(prelude + "declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)\n")
				_, actual := c.function(0, functions-1)
				fmt.Fprintf(&c.text, "define i64 @work(i64 %%s) noinline {\n  %%r = call i64 @f0(%si64 %%s)\n  ret i64 %%r\n}\n%s", actual, start)
				p := livetest.Lli(t, version, livetest.Raw(t, c.text.String()), "mcjit", flags...)
				v := frametest.Look(t, p, false, frametest.Known(t, p))
				frames, named, possible, slots := 0, 0, 0, 0
				for name, value := range c.value {
					f := frametest.One(t, v, name)
					frames++
					for _, s := range f.Slots {
						if s.GC == nil || !s.GC.Pair {
							continue
						}
						slots++
						require.Equal(t, frame.OK, s.Status, s.Reason)
						hex := func(name string) string { return fmt.Sprintf("0x%x", value[name]) }
						var names []string
						for _, one := range s.GC.OneOf {
							names = append(names, hex(one))
						}
						switch {
						case len(names) > 0:
							possible++
							require.Contains(t, names, s.Value, "%s: %s", name, s.Name)
						case strings.HasPrefix(s.Name, "%"):
							named++
							require.Equal(t, hex(s.Name), s.Value, "%s: %s", name, s.Name)
						}
					}
				}
				require.Equal(t, functions, frames)
				t.Logf("%d slots with a pair: %d named, %d one of several", slots, named, possible)
				require.Greater(t, 4*named, slots)
				require.Positive(t, possible)
			})
		}
	}
}

// TestGCPointersByShape requires names for pointers that only the shape of their pairs distinguishes: no pointer is derived from %a, one from %b,
// and two from %c. The shape does not distinguish those two.
func TestGCPointersByShape(t *testing.T) {
	livetest.NeedsTools(t)
	const module = prelude + `
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
define i64 @v(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i64 %n) noinline gc "statepoint-example" {
  %b1 = getelementptr i8, ptr addrspace(1) %b, i64 %n
  %c1 = getelementptr i8, ptr addrspace(1) %c, i64 %n
  %m = mul i64 %n, 2
  %c2 = getelementptr i8, ptr addrspace(1) %c, i64 %m
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 %n, i32 0, i32 0) [ "gc-live"(ptr addrspace(1) %c2, ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %b1, ptr addrspace(1) %c, ptr addrspace(1) %c1) ]
  %ra = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 1, i32 1)
  %rb = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 2, i32 2)
  %rb1 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 2, i32 3)
  %rc = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 4, i32 4)
  %rc1 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 4, i32 5)
  %rc2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 4, i32 0)
  store volatile i8 1, ptr addrspace(1) %ra
  store volatile i8 1, ptr addrspace(1) %rb
  store volatile i8 1, ptr addrspace(1) %rb1
  store volatile i8 1, ptr addrspace(1) %rc
  store volatile i8 1, ptr addrspace(1) %rc1
  store volatile i8 1, ptr addrspace(1) %rc2
  ret i64 0
}
define i64 @work(i64 %s) noinline {
  %r = call i64 @v(ptr addrspace(1) inttoptr (i64 65536 to ptr addrspace(1)), ptr addrspace(1) inttoptr (i64 131072 to ptr addrspace(1)), ptr addrspace(1) inttoptr (i64 196608 to ptr addrspace(1)), i64 %s)
  ret i64 %r
}` + start
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, module), "mcjit")
		f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "v")
		got := map[string]string{}
		var exchanged []string
		for _, s := range f.Slots {
			if len(s.GC.OneOf) > 0 {
				require.ElementsMatch(t, []string{"%c1", "%c2"}, s.GC.OneOf, "LLVM %d", version)
				exchanged = append(exchanged, s.Value)
				continue
			}
			got[s.Name] = s.Value
		}
		require.Equal(t, map[string]string{"%a": "0x10000", "%b": "0x20000", "%b1": "0x20064", "%c": "0x30000"}, got, "LLVM %d", version)
		require.ElementsMatch(t, []string{"0x30064", "0x300c8"}, exchanged, "LLVM %d", version)

		// The GC strategy manages no pointers of address space 0, so LLVM adds no pair for the deopt value.
		other := strings.NewReplacer("ptr addrspace(1)", "ptr", "relocate.p1", "relocate.p0", `[ "gc-live"(`, `[ "deopt"(ptr %a), "gc-live"(`).Replace(module)
		other = strings.Replace(other, "  %ra = call ptr @llvm.experimental.gc.relocate.p0(token %t, i32 1, i32 1)\n", "", 1)
		other = strings.Replace(other, "  store volatile i8 1, ptr %ra\n", "", 1)
		p = livetest.Lli(t, version, livetest.Raw(t, other), "mcjit")
		f = frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "v")
		for _, s := range f.Slots[1:] {
			require.True(t, strings.HasPrefix(s.Name, "loc"), "LLVM %d: %s", version, s.Name)
			require.Empty(t, s.GC.OneOf)
		}
	}
}
