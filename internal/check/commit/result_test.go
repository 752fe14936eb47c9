package commit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// returning returns a program whose @work waits and then returns a value of some type, which its main prints. body follows the wait and has the seed,
// 100, in %a; print makes the arguments of printf from %r, and args names them.
func returning(typ, attribute, body, print, format, args string) string {
	return livetest.Prelude + fmt.Sprintf(`
declare i32 @printf(ptr, ...)
@format = private constant [%d x i8] c"%s\0A\00"
@place = global [4 x i64] [i64 1, i64 2, i64 3, i64 4]
define %s %s @work(i64 %%a) noinline gc "statepoint-example" {
  %%t = call %s
%s
}
define i32 @main() {
  %%s = load volatile i64, ptr @seed
  %%r = call %s %s @work(i64 %%s)
%s
  %%p = call i32 (ptr, ...) @printf(ptr @format, %s)
  ret i32 0
}`, len(format)+2, format, attribute, typ, livetest.Statepoint(8, "@wait", "1", "i64 %a"), body, attribute, typ, print, args)
}

// TestCommitResults requires that main prints the committed result of @work, which its native code reads where the System V ABI returns it.
func TestCommitResults(t *testing.T) {
	livetest.Slow(t)
	for name, c := range map[string]struct{ typ, attribute, body, print, format, args, want, where string }{
		"i64": {"i64", "", "  %x = mul i64 %a, -7\n  ret i64 %x", "", "%ld", "i64 %r", "-700", "rax"},
		"i32": {"i32", "", "  %x = trunc i64 %a to i32\n  %y = sub i32 5, %x\n  ret i32 %y", "", "%d", "i32 %r", "-95", "rax"},
		"i8 signext": {"i8", "signext", "  %x = trunc i64 %a to i8\n  %y = sub i8 5, %x\n  ret i8 %y",
			"  %w = sext i8 %r to i32", "%d", "i32 %w", "-95", "rax"},
		"i16 zeroext": {"i16", "zeroext", "  %x = trunc i64 %a to i16\n  %y = sub i16 5, %x\n  ret i16 %y",
			"  %w = zext i16 %r to i32", "%d", "i32 %w", "65441", "rax"},
		"i1 zeroext": {"i1", "zeroext", "  %x = icmp eq i64 %a, 100\n  ret i1 %x", "  %w = zext i1 %r to i32", "%d", "i32 %w", "1", "rax"},
		"i128": {"i128", "", "  %x = zext i64 %a to i128\n  %y = mul i128 %x, 129127208515966861317\n  ret i128 %y", // 7 * 2^64 + 5
			"  %l = trunc i128 %r to i64\n  %s2 = lshr i128 %r, 64\n  %h = trunc i128 %s2 to i64", "%ld %ld", "i64 %l, i64 %h", "500 700", "rax:rdx"},
		"ptr":    {"ptr", "", "  %x = getelementptr i8, ptr @place, i64 16\n  ret ptr %x", "  %w = load i64, ptr %r", "%ld", "i64 %w", "3", "rax"},
		"double": {"double", "", "  %x = sitofp i64 %a to double\n  %y = fdiv double %x, 8.0\n  ret double %y", "", "%.3f", "double %r", "12.500", "xmm0"},
		"float": {"float", "", "  %x = sitofp i64 %a to float\n  %y = fdiv float %x, -8.0\n  ret float %y", "  %w = fpext float %r to double",
			"%.3f", "double %w", "-12.500", "xmm0"},
		"{ i64, double }": {"{ i64, double }", "", "  %x = sitofp i64 %a to double\n  %u = insertvalue { i64, double } undef, i64 %a, 0\n  %v = insertvalue { i64, double } %u, double %x, 1\n  ret { i64, double } %v",
			"  %w = extractvalue { i64, double } %r, 0\n  %x = extractvalue { i64, double } %r, 1", "%ld %.1f", "i64 %w, double %x", "100 100.0", "rax xmm0"},
		"{ i64, i32, i8 }": {"{ i64, i32, i8 }", "", "  %u = insertvalue { i64, i32, i8 } { i64 1, i32 -2, i8 3 }, i64 %a, 0\n  ret { i64, i32, i8 } %u",
			"  %w = extractvalue { i64, i32, i8 } %r, 0\n  %x = extractvalue { i64, i32, i8 } %r, 1\n  %y = extractvalue { i64, i32, i8 } %r, 2\n  %z = zext i8 %y to i32",
			"%ld %d %d", "i64 %w, i32 %x, i32 %z", "100 -2 3", "rax rdx rcx"},
		"{ double, float }": {"{ double, float }", "", "  %x = sitofp i64 %a to double\n  %u = insertvalue { double, float } { double 1.0, float 0.5 }, double %x, 0\n  ret { double, float } %u",
			"  %w = extractvalue { double, float } %r, 0\n  %x = extractvalue { double, float } %r, 1\n  %y = fpext float %x to double", "%.1f %.1f", "double %w, double %y", "100.0 0.5", "xmm0 xmm1"},
		"<2 x i64>": {"<2 x i64>", "", "  %u = insertelement <2 x i64> <i64 3, i64 -4>, i64 %a, i32 0\n  ret <2 x i64> %u",
			"  %w = extractelement <2 x i64> %r, i32 0\n  %x = extractelement <2 x i64> %r, i32 1", "%ld %ld", "i64 %w, i64 %x", "100 -4", "xmm0 xmm0+8"},
		"<4 x float>": {"<4 x float>", "", "  %x = sitofp i64 %a to float\n  %u = insertelement <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, float %x, i32 2\n  ret <4 x float> %u",
			"  %w = fpext <4 x float> %r to <4 x double>\n  %x0 = extractelement <4 x double> %w, i32 0\n  %x1 = extractelement <4 x double> %w, i32 1\n  %x2 = extractelement <4 x double> %w, i32 2\n  %x3 = extractelement <4 x double> %w, i32 3",
			"%.0f %.0f %.0f %.0f", "double %x0, double %x1, double %x2, double %x3", "1 2 100 4", "xmm0 xmm0+4 xmm0+8 xmm0+12"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []int{16, 22} {
				p := livetest.Lli(t, version, livetest.Raw(t, returning(c.typ, c.attribute, c.body, c.print, c.format, c.args)), "mcjit")
				out, printed := commit(t, p, frametest.Known(t, p), innermost, "")
				require.Equal(t, c.want+"\n", printed)
				where := ""
				for i, part := range out.Result {
					if i > 0 {
						where += " "
					}
					where += part.Register
				}
				require.Equal(t, c.where, where)
			}
		})
	}
}

// TestCommitNothing requires that a commit of a void function sets no result register.
func TestCommitNothing(t *testing.T) {
	text := livetest.Prelude + `
declare i32 @printf(ptr, ...)
@format = private constant [5 x i8] c"%ld\0A\00"
define void @work(i64 %a) noinline gc "statepoint-example" {
  %t = call ` + livetest.Statepoint(8, "@wait", "1", "i64 %a") + `
  %x = add i64 %a, 11
  store i64 %x, ptr @seed
  ret void
}
define i32 @main() {
  call void @work(i64 5)
  %s = load i64, ptr @seed
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %s)
  ret i32 0
}`
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	out, printed := commit(t, p, frametest.Known(t, p), innermost, "")
	require.Equal(t, "16\n", printed)
	require.Empty(t, out.Result)
	require.Len(t, out.Registers, 8)
}

// TestCommitRefusesResults requires an error for results that cannot be written to the place at which the caller expects them.
func TestCommitRefusesResults(t *testing.T) {
	livetest.Slow(t)
	for name, c := range map[string]struct{ typ, body, want string }{
		"in memory":              {"[4 x i64]", "  ret [4 x i64] zeroinitializer", "the result, of type [4 x i64]: its type is returned in memory, or on the x87 stack"},
		"on the x87 stack":       {"x86_fp80", "  ret x86_fp80 0xK3FFF8000000000000000", "cannot tell where a value of type x86_fp80 is returned"},
		"in one register or two": {"<8 x float>", "  ret <8 x float> zeroinitializer", "depend on the processor that the code was compiled for"},
		"undefined":              {"i64", "  ret i64 undef", "the result has undefined bits: undef"},
		"partly undefined":       {"{ i64, i8 }", "  ret { i64, i8 } { i64 1, i8 undef }", "the result[1] has undefined bits"},
		"memory of its own":      {"ptr", "  ret ptr @msg", "the result depends on the addresses of the interpreter's own memory: 0x54"},
	} {
		t.Run(name, func(t *testing.T) {
			text := livetest.Prelude + "define " + c.typ + ` @work(i64 %a) noinline gc "statepoint-example" {
  %t = call ` + livetest.Statepoint(8, "@wait", "1", "i64 %a") + "\n" + c.body + `
}
define i32 @main() {
  %r = call ` + c.typ + ` @work(i64 1)
  ret i32 0
}`
			p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
			refusedCommit(t, p, frametest.Known(t, p), innermost, "", c.want)
		})
	}
}
