package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// derived waits in @inner, which was called by @outer: both have pointers into an object at 0x10000, 24 bytes after its start and 24 before. An
// offset that is not constant cannot be added again after the call, so LLVM records pairs of two pointers.
const derived = `
declare i32 @pause()
declare i32 @puts(ptr)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
@msg = private constant [6 x i8] c"ready\00"
@object = global i64 65536
@away = global i64 24
@sum = global i8 0

define void @wait() noinline {
  %m = getelementptr [6 x i8], ptr @msg, i64 0, i64 0
  %x = call i32 @puts(ptr %m)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}

define void @inner() noinline gc "statepoint-example" {
  %a = load volatile i64, ptr @object
  %n = load volatile i64, ptr @away
  %o = inttoptr i64 %a to ptr addrspace(1)
  %at = getelementptr i8, ptr addrspace(1) %o, i64 %n
  %m = sub i64 0, %n
  %below = getelementptr i8, ptr addrspace(1) %o, i64 %m
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @wait, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i32 1, ptr addrspace(1) %at, ptr addrspace(1) %below), "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %at, ptr addrspace(1) %below) ]
  %at2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 1)
  %below2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 2)
  store volatile i8 1, ptr addrspace(1) %at2
  store volatile i8 2, ptr addrspace(1) %below2
  ret void
}

define void @outer() noinline gc "statepoint-example" {
  %a = load volatile i64, ptr @object
  %n = load volatile i64, ptr @away
  %boxed = load volatile i64, ptr @object
  %p = inttoptr i64 %a to ptr addrspace(1)
  %f = mul i64 %a, 3
  %far = inttoptr i64 %f to ptr addrspace(2)
  %at = getelementptr i8, ptr addrspace(1) %p, i64 %n
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void ()) @inner, i32 0, i32 0, i32 0, i32 0) [ "deopt"(ptr addrspace(1) %p, ptr addrspace(1) %at, i64 %n, i64 %boxed, ptr addrspace(2) %far, ptr addrspace(1) null), "gc-live"(ptr addrspace(1) %p, ptr addrspace(1) %at) ]
  %p2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  %at2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 1)
  store volatile i8 1, ptr addrspace(1) %p2
  store volatile i8 2, ptr addrspace(1) %at2
  ret void
}

define i32 @main() {
  call void @outer()
  ret i32 0
}
`

// typed returns the module for an LLVM with typed pointers.
func typed(module string) string {
	return strings.NewReplacer("ptr addrspace(1)", "i8 addrspace(1)*", "ptr addrspace(2)", "i8 addrspace(2)*", "relocate.p1(", "relocate.p1i8(", "statepoint.p0(", "statepoint.p0f_isVoidf(",
		"ptr elementtype", "void ()* elementtype", "i32, ptr, i32", "i32, void ()*, i32", "puts(ptr", "puts(i8*", "ptr @msg", "[6 x i8]* @msg", "ptr @object", "i64* @object", "ptr @away", "i64* @away").Replace(module)
}

// For each pointer the output says what the record tells the collector: that it was derived from another pointer, and its offset; that it is its own
// base; or nothing. A reference of a virtual machine is one of these.
func TestGCPairs(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, llvm := range []int{14, 19, 22} {
		text, ref, far := derived, "ptr addrspace(1)", "ptr addrspace(2)"
		if llvm == 14 {
			text, ref, far = typed(derived), "i8 addrspace(1)*", "i8 addrspace(2)*"
		}
		module := livetest.Raw(t, text)
		p := livetest.Lli(t, llvm, module, "mcjit")
		about := fmt.Sprintf("LLVM %d", llvm)
		layout := write(t, "pairs.star", `
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
		r := reframe(t, "frames", "-p", pid(p), "--ir", module, "--layout", layout)
		require.Equal(t, 0, r.code, about+r.stderr)
		for _, line := range []string{
			`%at +` + ref + ` +0x10018 +\[\w+[+-]\d+\]  derived: 0x10000 \+ 24`, `%below +` + ref + ` +0xffe8 +\[\w+[+-]\d+\]  derived: 0x10000 - 24`,
			`%o +` + ref + ` +0x10000 +\[\w+[+-]\d+\]`, `%p +` + ref + ` +0x10000 +\[\w+[+-]\d+\]`, `%n +i64 +24 +\[\w+[+-]\d+\]`, `%boxed +i64 +65536 +\[\w+[+-]\d+\]`,
			`%far +` + far + ` +0x30000 +\[\w+[+-]\d+\]  no gc pair`,
			`local\[0\] +` + ref + ` +0x10018 +slot 1  derived: 0x10000 \+ 24`, `local\[1\] +` + ref + ` +0xffe8 +slot 2  derived: 0x10000 - 24`,
			`local\[0\] +` + ref + ` +0x10000 +slot 0`, `local\[1\] +` + ref + ` +0x10018 +slot 1  derived: 0x10000 \+ 24`, `local\[3\] +ref +0x10000 +slot 3  no gc pair`,
		} {
			require.Regexp(t, `(?m)^ +`+strings.NewReplacer("(1)*", `\(1\)\*`, "(2)*", `\(2\)\*`, "(1)", `\(1\)`, "(2)", `\(2\)`).Replace(line)+`$`, r.stdout, about)
		}
		r = reframe(t, "frames", "-p", pid(p), "--ir", module, "--layout", layout, "--json")
		valid(t, "frames.schema.json", r.stdout)
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
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &report))
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
		r = reframe(t, "explain", "-p", pid(p), "--ir", module, "--layout", layout, "-f", "3")
		require.Contains(t, r.stdout, "    gc pair: its base is value 0; derived: 0x10000 + 24\n", about)
		require.Contains(t, r.stdout, "    gc pair: it is its own base\n", about)
		require.Contains(t, r.stdout, "    no gc pair: the record does not tell the collector of it\n", about)
		valid(t, "explain.schema.json", reframe(t, "explain", "-p", pid(p), "--ir", module, "--layout", layout, "-f", "3", "--json").stdout)
		r = reframe(t, "frames", "-p", pid(p)) // without a module, of a record that by its id is a statepoint's
		require.Regexp(t, `(?m)^        loc2 +0x10018 +\[\w+[+-]\d+\]  derived: 0x10000 \+ 24$|^        loc1 +0x10018 +\[\w+[+-]\d+\]  derived: 0x10000 \+ 24$`, r.stdout, about)
	}
}
