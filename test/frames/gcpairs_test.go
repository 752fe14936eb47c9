package frames_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// typed rewrites a module for a release of LLVM with typed pointers.
func typed(module string) string {
	return strings.NewReplacer("ptr addrspace(1)", "i8 addrspace(1)*", "ptr addrspace(2)", "i8 addrspace(2)*", "relocate.p1(", "relocate.p1i8(", "statepoint.p0(", "statepoint.p0f_isVoidf(",
		"ptr elementtype", "void ()* elementtype", "i32, ptr, i32", "i32, void ()*, i32", "puts(ptr", "puts(i8*", "ptr @msg", "[6 x i8]* @msg", "ptr @object", "i64* @object", "ptr @away", "i64* @away").Replace(module)
}

// TestGCPairs requires that the output shows for each pointer how the record lists it for the collector: derived from another pointer, with an
// offset; as its own base; or not at all. A reference in a virtual machine's frame must be one of these.
func TestGCPairs(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, llvm := range []int{14, 19, 22} {
		text, ref, far := clitest.DerivedPointersModule, "ptr addrspace(1)", "ptr addrspace(2)"
		if llvm == 14 {
			text, ref, far = typed(clitest.DerivedPointersModule), "i8 addrspace(1)*", "i8 addrspace(2)*"
		}
		module := livetest.Raw(t, text)
		p := livetest.Lli(t, llvm, module, "mcjit")
		about := fmt.Sprintf("LLVM %d", llvm)
		layout := clitest.TempFile(t, "pairs.star", `
def frames(site):
    ops = site.operands
    if site.function == "inner":
        f = frame("inner", 1, "in-call")
        site.operands.reader().skip(1)
        for n in range(2):
            f.local(n, ops[1 + n])
        return f
    f = frame("outer", 1, "in-call")
    for n in range(6):
        f.local(n, ops[n].as_type("ref") if n == 3 else ops[n])
    return f
`)
		r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", module, "--layout", layout)
		require.Equal(t, 0, r.Code, about+r.Stderr)
		for _, line := range []string{
			`%at +` + ref + ` +0x10018 +\[\w+[+-]\d+\]  derived: 0x10000 \+ 24`, `%below +` + ref + ` +0xffe8 +\[\w+[+-]\d+\]  derived: 0x10000 - 24`,
			`%o +` + ref + ` +0x10000 +\[\w+[+-]\d+\]`, `%p +` + ref + ` +0x10000 +\[\w+[+-]\d+\]`, `%n +i64 +24 +\[\w+[+-]\d+\]`, `%boxed +i64 +65536 +\[\w+[+-]\d+\]`,
			`%far +` + far + ` +0x30000 +\[\w+[+-]\d+\]  no gc pair`,
			`local\[0\] +` + ref + ` +0x10018 +slot 1  derived: 0x10000 \+ 24`, `local\[1\] +` + ref + ` +0xffe8 +slot 2  derived: 0x10000 - 24`,
			`local\[0\] +` + ref + ` +0x10000 +slot 0`, `local\[1\] +` + ref + ` +0x10018 +slot 1  derived: 0x10000 \+ 24`, `local\[3\] +ref +0x10000 +slot 3  no gc pair`,
		} {
			require.Regexp(t, `(?m)^ +`+strings.NewReplacer("(1)*", `\(1\)\*`, "(2)*", `\(2\)\*`, "(1)", `\(1\)`, "(2)", `\(2\)`).Replace(line)+`$`, r.Stdout, about)
		}
		r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", module, "--layout", layout, "--json")
		clitest.RequireValid(t, "frames.schema.json", r.Stdout)
		type gc struct {
			Pair   bool
			Base   *int
			Object string
			Offset string
		}
		var report struct {
			Threads []struct {
				Frames []struct {
					Function string
					Slots    []struct {
						Name string
						GC   *gc
					}
					VM *struct {
						Frames []struct{ Locals []struct{ GC *gc } }
					}
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), &report))
		own, none := &gc{Pair: true}, &gc{}
		from := func(base int, offset string) *gc { return &gc{true, &base, "0x10000", offset} }
		for _, f := range report.Threads[0].Frames {
			want := map[string][]*gc{"inner": {nil, from(3, "24"), from(3, "-24"), own}, "outer": {own, from(0, "24"), nil, nil, none, nil}}[f.Function]
			if want == nil {
				continue
			}
			require.Len(t, f.Slots, len(want), about)
			for k := range f.Slots {
				require.Equal(t, want[k], f.Slots[k].GC, "%s: %s of %s", about, f.Slots[k].Name, f.Function)
			}
			if f.Function == "outer" {
				locals := f.VM.Frames[0].Locals
				require.Len(t, locals, 6)
				for k, want := range []*gc{own, from(0, "24"), nil, none, none, nil} {
					require.Equal(t, want, locals[k].GC, "%s: local[%d]", about, k)
				}
			}
		}
		r = clitest.Run(t, "explain", "-p", clitest.PID(p), "--ir", module, "--layout", layout, "-f", "3")
		require.Contains(t, r.Stdout, "    gc pair: its base is value 0; derived: 0x10000 + 24\n", about)
		require.Contains(t, r.Stdout, "    gc pair: it is its own base\n", about)
		require.Contains(t, r.Stdout, "    no gc pair: the record does not list it for the collector\n", about)
		clitest.RequireValid(t, "explain.schema.json", clitest.Run(t, "explain", "-p", clitest.PID(p), "--ir", module, "--layout", layout, "-f", "3", "--json").Stdout)
		r = clitest.Run(t, "frames", "-p", clitest.PID(p)) // without a module the id of the record shows that it belongs to a statepoint
		require.Regexp(t, `(?m)^        loc2 +0x10018 +\[\w+[+-]\d+\]  derived: 0x10000 \+ 24$|^        loc1 +0x10018 +\[\w+[+-]\d+\]  derived: 0x10000 \+ 24$`, r.Stdout, about)
	}
}
