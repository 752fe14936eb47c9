package arm64_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// committedOnARM64 lists functions that wait, and then return a value computed from %a, which is 100. print, format and args tell main how to print
// the result %r; where names the registers in which AAPCS64 returns it.
var committedOnARM64 = []struct{ typ, attribute, body, print, format, args, want, where string }{
	{"i64", "", "%x = mul i64 %a, -7\nstore i64 %x, ptr @seen\nret i64 %x", "%w = load i64, ptr @seen", "%ld %ld", "i64 %r, i64 %w", "-700 -700", "x0"},
	{"i8", "signext", "%x = trunc i64 %a to i8\n%y = sub i8 5, %x\nret i8 %y", "%w = sext i8 %r to i32", "%d", "i32 %w", "-95", "x0"},
	{"i16", "zeroext", "%x = trunc i64 %a to i16\n%y = sub i16 5, %x\nret i16 %y", "%w = zext i16 %r to i32", "%d", "i32 %w", "65441", "x0"},
	{"i128", "", "%x = zext i64 %a to i128\n%y = mul i128 %x, 129127208515966861317\nret i128 %y", // 7 * 2^64 + 5
		"%l = trunc i128 %r to i64\n%u = lshr i128 %r, 64\n%h = trunc i128 %u to i64", "%ld %ld", "i64 %l, i64 %h", "500 700", "x0:x1"},
	{"double", "", "%x = sitofp i64 %a to double\n%y = fdiv double %x, 8.0\nret double %y", "", "%.3f", "double %r", "12.500", "q0"},
	{"float", "", "%x = sitofp i64 %a to float\n%y = fdiv float %x, -8.0\nret float %y", "%w = fpext float %r to double", "%.3f", "double %w", "-12.500", "q0"},
	{"{ i64, double, i32 }", "", "%x = sitofp i64 %a to double\n%u = insertvalue { i64, double, i32 } { i64 0, double 0.0, i32 -2 }, i64 %a, 0\n" +
		"%v = insertvalue { i64, double, i32 } %u, double %x, 1\nret { i64, double, i32 } %v",
		"%w = extractvalue { i64, double, i32 } %r, 0\n%x = extractvalue { i64, double, i32 } %r, 1\n%y = extractvalue { i64, double, i32 } %r, 2",
		"%ld %.1f %d", "i64 %w, double %x, i32 %y", "100 100.0 -2", "x0 q0 x1"},
	{"<4 x float>", "", "%x = sitofp i64 %a to float\n%u = insertelement <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, float %x, i32 2\nret <4 x float> %u",
		"%w = fpext <4 x float> %r to <4 x double>\n%w2 = extractelement <4 x double> %w, i32 2\n%w3 = extractelement <4 x double> %w, i32 3",
		"%.0f %.0f", "double %w2, double %w3", "100 4", "q0 q0+4 q0+8 q0+12"},
}

// committing returns a module with these functions, with @work_held for held.c, and with a fastcc function. Its statepoints are written by hand:
// livetest runs opt's rewriting pass on modules with one blank before gc, so this module has two.
func committing() string {
	var b, calls strings.Builder
	b.WriteString(`
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare i32 @pause()
declare i32 @printf(ptr, ...)
declare i64 @held()
@seed = dso_local global i64 100
@seen = dso_local global i64 0
define fastcc i64 @work_fast(i64 %a, double %d) noinline gc  "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 100, i32 0, ptr elementtype(i32 ()) @pause, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %a, double %d) ]
  %x = fptosi double %d to i64
  %y = add i64 %a, %x
  ret i64 %y
}
define dso_local i64 @work_held(i64 %a) noinline gc  "statepoint-example" {
  call void asm sideeffect "mov x19, #0\0Amov x28, #0\0Afmov d8, x19\0Afmov d15, x19",
    "~{x19},~{x20},~{x21},~{x22},~{x23},~{x24},~{x25},~{x26},~{x27},~{x28},~{d8},~{d9},~{d10},~{d11},~{d12},~{d13},~{d14},~{d15}"()
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 101, i32 0, ptr elementtype(i32 ()) @pause, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %a) ]
  %x = mul i64 %a, 11
  ret i64 %x
}
`)
	for i, c := range committedOnARM64 {
		fmt.Fprintf(&b, `
@format_%d = private constant [%d x i8] c"%s\0A\00"
define %[5]s %[4]s @work_%[1]d(i64 %%a) noinline gc  "statepoint-example" {
  %%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 %[1]d, i32 0, ptr elementtype(i32 ()) @pause, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %%a) ]
%[6]s
}
define void @print_%[1]d(i64 %%s) noinline {
  %%r = call %[5]s %[4]s @work_%[1]d(i64 %%s)
%[7]s
  %%p = call i32 (ptr, ...) @printf(ptr @format_%[1]d, %[8]s)
  ret void
}
`, i, len(c.format)+2, c.format, c.typ, c.attribute, c.body, c.print, c.args)
		fmt.Fprintf(&calls, "  call void @print_%d(i64 %%s)\n", i)
	}
	fmt.Fprintf(&b, `
@text = private constant [13 x i8] c"%%ld %%ld lost\00"
define dso_local i32 @main() {
  %%s = load volatile i64, ptr @seed
%s  %%f = call fastcc i64 @work_fast(i64 %%s, double 7.5)
  %%h = call i64 @held()
  %%p = call i32 (ptr, ...) @printf(ptr @text, i64 %%f, i64 %%h)
  ret i32 0
}
`, &calls)
	return b.String()
}

// TestCommitOnARM64 requires that a commit on arm64 leaves the same registers, memory and results as native code: the caller gets each result, and
// callee-saved registers are intact.
func TestCommitOnARM64(t *testing.T) {
	livetest.Slow(t)
	if !machineTurn(t) {
		return
	}
	c, head := arm64(t)
	module := clitest.TempFile(t, "commits.ll", head+committing())
	files := map[string]string{"commits.ll": module}
	script := []string{}
	var functions []string
	for i := range committedOnARM64 {
		functions = append(functions, fmt.Sprint("work_", i))
	}
	functions = append(functions, "work_fast", "work_held")
	levels := livetest.ShareOf([]string{"O0", "O2"}, "commit on arm64")
	for _, level := range levels {
		program := "commits-" + level
		// The return addresses of this program are signed.
		files[program] = c.Build(t, []string{"-static", "-O2", "-mbranch-protection=standard"}, "testdata/held.c", livetest.Object(t, 19, module, "-mtriple="+crossLayouts[c.Arch].triple, "-"+level))
		script = append(script, "start "+program)
		for _, function := range functions {
			script = append(script, "await "+program, fmt.Sprintf("run %s-%s reframe resume --commit --json -p @%[1]s --function %[2]s --ir /commits.ll", program, function))
		}
		script = append(script, "end "+program+" "+program)
	}
	out := onARM64(t, files, script...)
	for _, level := range levels {
		program := "commits-" + level
		for i, function := range functions {
			name := program + "-" + function
			require.Equal(t, "0", string(out[name+".code"]), "%s: %s", name, out[name+".stderr"])
			report := clitest.Result{Code: 0, Stdout: string(out[name+".stdout"]), Stderr: ""}.Object(t)["committed"].(map[string]any)
			require.Equal(t, true, report["written"])
			if i < len(committedOnARM64) {
				var where []string
				for _, part := range clitest.Objects(t, report["result"]) {
					where = append(where, part["register"].(string))
				}
				require.Equal(t, committedOnARM64[i].where, strings.Join(where, " "), name)
			}
			var set []string
			for _, r := range clitest.Objects(t, report["registers"]) {
				set = append(set, r["name"].(string))
			}
			require.Contains(t, strings.Join(set, " "), "x19 x20 x21 x22 x23 x24 x25 x26 x27 x28 x29 x30 sp pc", name)
			require.Contains(t, strings.Join(set, " "), "d8 d9 d10 d11 d12 d13 d14 d15", name)
		}
		want := ""
		for _, c := range committedOnARM64 {
			want += c.want + "\n"
		}
		require.Equal(t, want+"107 0 lost", string(out[program+".stdout"]), program)
		require.Equal(t, "0", string(out[program+".code"]))
	}
}
