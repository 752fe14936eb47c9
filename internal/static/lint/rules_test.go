package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/test/livetest"
)

// siteModule is a module whose functions each have a body; the bodies begin in line 2.
func siteModule(head, body string) string {
	return head + " {\n" + body + "\n}\n" + `
declare i64 @g(i64)
declare void @v()
declare void @printf(ptr, ...)
declare i32 @count(ptr, ...)
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare void @llvm.experimental.guard(i1, ...)
declare i64 @llvm.experimental.deoptimize.i64(...)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare i64 @llvm.experimental.gc.result.i64(token)
declare i32 @llvm.experimental.gc.result.i32(token)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
declare ptr @llvm.experimental.gc.relocate.p0(token, i32, i32)
declare i8 @llvm.experimental.gc.relocate.i8(token, i32, i32)
declare i32 @personality(...)
`
}

// TestLintRefusesWhatBreaksTheRulesOfSites requires an error with line and rule for sites that violate a rule of LLVM's verifier, and only for these.
func TestLintRefusesWhatBreaksTheRulesOfSites(t *testing.T) {
	const (
		collected  = `define i64 @f(ptr addrspace(1) %o, i64 %b, i1 %c) gc "statepoint-example"`
		invoking   = collected + " personality ptr @personality"
		plain      = "define i64 @f(i64 %b, i1 %c)"
		statepoint = "  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0("
		good       = statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i64 %b, i32 0, i32 0)"
		live       = good + ` [ "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %o) ]`
		ret        = "\n  ret i64 %b"
	)
	relocate := func(args string) string {
		return live + "\n  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(" + args + ")" + ret
	}
	for _, c := range []struct{ name, head, body, want string }{
		{"good", collected, live + "\n  %r = call i64 @llvm.experimental.gc.result.i64(token %t)\n  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 1)" + ret, ""},
		{"flag 1", collected, statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 1, i64 %b, i32 0, i32 0)" + ret, ""},
		{"flag 2", collected, statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 2, i64 %b, i32 0, i32 0)" + ret, ""},
		{"flag 4", collected, statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 4, i64 %b, i32 0, i32 0)" + ret, "2: unknown flag of gc.statepoint: 4 (1 and 2 are known)"},
		{"number of arguments", collected, statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 0, i32 0, i64 %b, i32 0, i32 0)" + ret, "2: gc.statepoint passes 0 arguments, and its callee, i64 (i64), takes 1"},
		{"type of an argument", collected, statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i32 5, i32 0, i32 0)" + ret, "2: argument 1 that gc.statepoint passes on must have type i64, as the parameter of its callee, not i32"},
		{"variadic", collected, statepoint + "i64 1, i32 0, ptr elementtype(void (ptr, ...)) @printf, i32 2, i32 0, ptr null, i64 %b, i32 0, i32 0)" + ret, ""},
		{"variadic with too few", collected, statepoint + "i64 1, i32 0, ptr elementtype(void (ptr, ...)) @printf, i32 0, i32 0, i32 0, i32 0)" + ret, "2: gc.statepoint passes 0 arguments, and its callee, void (ptr, ...), takes at least 1"},
		{"variadic with a result", collected, statepoint + "i64 1, i32 0, ptr elementtype(i32 (ptr, ...)) @count, i32 1, i32 0, ptr null, i32 0, i32 0)" + ret, "2: gc.statepoint cannot call a variadic function with a result: i32 (ptr, ...)"},
		{"too many", collected, statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i64 %b, i32 0, i32 0, i64 %b)" + ret, "2: gc.statepoint has 1 arguments too many"},
		{"inline deopt values", collected, statepoint + "i64 1, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i64 %b, i32 0, i32 1, i64 %b)" + ret, "2: i32 0, i32 0 must follow the arguments that gc.statepoint passes on, not 1: transition and deopt values belong into bundles"},
		{"no elementtype", collected, statepoint + "i64 1, i32 0, ptr @g, i32 1, i32 0, i64 %b, i32 0, i32 0)" + ret, "2: the callee of gc.statepoint must have the attribute elementtype"},
		{"negative bytes", collected, statepoint + "i64 1, i32 -1, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i64 %b, i32 0, i32 0)" + ret, "2: the number of bytes to patch of gc.statepoint must not be negative: -1"},
		{"variable id", collected, statepoint + "i64 %b, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i64 %b, i32 0, i32 0)" + ret, "2: argument 1 of gc.statepoint must be a constant, not %b"},
		{"no collector", plain, good + ret, `2: @llvm.experimental.gc.statepoint.p0 requires a function with a collector, and @f has no gc "…"`},
		{"readnone", collected, good + " readnone" + ret, "2: gc.statepoint must read and write all memory: no attribute may say otherwise (readnone, readonly, memory)"},
		{"readonly", collected, good + " memory(read)" + ret, "2: gc.statepoint must read and write all memory: no attribute may say otherwise (readnone, readonly, memory)"},
		{"arguments alone", collected, good + " memory(argmem: readwrite)" + ret, "2: gc.statepoint must read and write all memory: no attribute may say otherwise (readnone, readonly, memory)"},
		{"two bundles", collected, good + ` [ "gc-live"(), "gc-live"() ]` + ret, `2: a call has at most one bundle "gc-live"`},
		{"token of another use", collected, good + "\n  call void @v() [ \"foo\"(token %t) ]" + ret, "2: only gc.result and gc.relocate may use the token of gc.statepoint, and line 3 uses it"},
		{"type of the result", collected, good + "\n  %r = call i32 @llvm.experimental.gc.result.i32(token %t)" + ret, "3: gc.result must have the type that the callee of its gc.statepoint returns, i64, not i32"},
		{"result of void", collected, statepoint + "i64 1, i32 0, ptr elementtype(void ()) @v, i32 0, i32 0, i32 0, i32 0)\n  %r = call i64 @llvm.experimental.gc.result.i64(token %t)" + ret, "3: gc.result must have the type that the callee of its gc.statepoint returns, void, not i64"},
		{"result of nothing", collected, "  %r = call i64 @llvm.experimental.gc.result.i64(token none)" + ret, "2: the operand of gc.result must be a gc.statepoint, not none"},
		{"result without a collector", plain, "  %r = call i64 @llvm.experimental.gc.result.i64(token undef)" + ret, `2: @llvm.experimental.gc.result.i64 requires a function with a collector, and @f has no gc "…"`},
		{"relocated undef", collected, "  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token undef, i32 0, i32 0)" + ret, ""},
		{"base out of bounds", collected, relocate("token %t, i32 2, i32 0"), `3: the base of gc.relocate is out of bounds: number 2 of the 2 values in the bundle "gc-live"`},
		{"derived out of bounds", collected, relocate("token %t, i32 0, i32 2"), `3: the derived pointer of gc.relocate is out of bounds: number 2 of the 2 values in the bundle "gc-live"`},
		{"relocated of nothing", collected, relocate("token none, i32 0, i32 0"), "3: the token of gc.relocate must be a gc.statepoint or its landing pad, not none"},
		{"another address space", collected, live + "\n  %q = call ptr @llvm.experimental.gc.relocate.p0(token %t, i32 0, i32 0)" + ret, "3: gc.relocate must keep the address space of its pointer: ptr of ptr addrspace(1)"},
		{"relocated integer", collected, good + " [ \"gc-live\"(i64 %b) ]\n  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)" + ret, "3: the base of gc.relocate must be a pointer, and %b has type i64"},
		{"relocates no pointer", collected, live + "\n  %q = call i8 @llvm.experimental.gc.relocate.i8(token %t, i32 0, i32 0)" + ret, "3: gc.relocate must return a pointer or a vector of pointers, not i8"},
		{"landing pad", invoking, strings.Replace(live, "call", "invoke", 1) + " to label %ok unwind label %pad\nok:" + ret + "\npad:\n  %l = landingpad token cleanup\n  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %l, i32 0, i32 0)" + ret, ""},
		{"landing pad of an ordinary invoke", invoking, "  invoke void @v() to label %ok unwind label %pad\nok:" + ret + "\npad:\n  %l = landingpad token cleanup\n  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %l, i32 0, i32 0)" + ret, "7: the landing pad of a gc.relocate must belong to a gc.statepoint, and line 2 is not one"},
		{"guard", plain, `  call void (i1, ...) @llvm.experimental.guard(i1 %c) [ "deopt"(i64 %b) ]` + ret, ""},
		{"guard without a bundle", plain, "  call void (i1, ...) @llvm.experimental.guard(i1 %c)" + ret, `2: @llvm.experimental.guard must have exactly one bundle "deopt"`},
		{"invoked guard", plain + " personality ptr @personality", `  invoke void (i1, ...) @llvm.experimental.guard(i1 %c) [ "deopt"() ] to label %ok unwind label %pad` + "\nok:" + ret + "\npad:\n  %l = landingpad i64 cleanup" + ret, "2: @llvm.experimental.guard cannot be invoked"},
		{"deoptimize", plain, `  %r = call i64 (...) @llvm.experimental.deoptimize.i64() [ "deopt"() ]` + "\n  ret i64 %r", ""},
		{"deoptimize without a bundle", plain, "  %r = call i64 (...) @llvm.experimental.deoptimize.i64()\n  ret i64 %r", `2: @llvm.experimental.deoptimize.i64 must have exactly one bundle "deopt"`},
		{"deoptimize that goes on", plain, `  %r = call i64 (...) @llvm.experimental.deoptimize.i64() [ "deopt"() ]` + "\n  call void @v()\n  ret i64 %r", "2: @llvm.experimental.deoptimize.i64 must be followed by a return"},
		{"deoptimize of another result", plain, `  %r = call i64 (...) @llvm.experimental.deoptimize.i64() [ "deopt"() ]` + ret, "2: @llvm.experimental.deoptimize.i64 must be followed by a return of its result"},
		{"deoptimize of another type", "define i32 @f(i64 %b)", `  %r = call i64 (...) @llvm.experimental.deoptimize.i64() [ "deopt"() ]` + "\n  ret i32 0", "2: @llvm.experimental.deoptimize.i64 must return what its function returns, i32"},
		{"invoked stackmap", plain + " personality ptr @personality", "  invoke void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0) to label %ok unwind label %pad\nok:" + ret + "\npad:\n  %l = landingpad i64 cleanup" + ret, "2: @llvm.experimental.stackmap cannot be invoked"},
		{"variable shadow", plain, "  %n = trunc i64 %b to i32\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 %n)" + ret, "argument 2 of stackmap must be a constant, not %n"},
		{"two deopt bundles", plain, `  call void @v() [ "deopt"(i64 %b), "deopt"() ]` + ret, `2: a call has at most one bundle "deopt"`},
		{"an unknown bundle twice", plain, `  call void @v() [ "foo"(i64 %b), "foo"() ]` + ret, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := siteModule(c.head, c.body)
			m, err := ir.Parse("site.ll", []byte(text))
			require.NoError(t, err)
			require.NoError(t, m.Check())
			_, err = lint.Lint([]*ir.Module{m}, nil)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, strings.Replace(c.want, ": ", ": LLVM rejects this site: ", strings.Count(c.want[:2], ":")))
			}
			path := filepath.Join(t.TempDir(), "site.ll")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			for _, version := range livetest.ShareOf([]int{16, 19, 22}, c.name) {
				tool := "llvm-as"
				if c.name == "variable shadow" && version < 22 {
					tool = "llc" // llc crashes: the verifier of these releases does not check the shadow's operand
				}
				_, said, ok := livetest.Answer(t, fmt.Sprintf("%s-%d", tool, version), "-o", "/dev/null", path)
				require.Equal(t, c.want == "", ok, "%s %d: %s", tool, version, said)
			}
		})
	}
}
