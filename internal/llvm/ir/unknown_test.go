package ir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forks is a module with words of forks and later releases: Jeandle, Swift, Julia, Enzyme and out-of-tree back ends.
const forks = `target datalayout = "e-p:64:64"
target features = "+wide"
%T = type { i64 }
@hidden = jeandle_linkage dso_local global i32 7, jeandle_order 3, align 4
@plain = newvisibility constant i8 1, place(far)
@oop_handle_7 = external dso_local global ptr addrspace(1)
declare hotspotcc ptr addrspace(1) @jeandle.new_instance(ptr, i32 jeandle_klass(8))
declare swiftcorocc { ptr, i32 } @coro(ptr noalias, ptr swiftcoro %c) swiftish "java-method"
declare i32 @__gxx_personality_v0(...)
define novel_visibility hidden fastcc jeandle_result signext i64 @visible(i64 %a) {
  ret i64 %a
}
define hotspotcc i64 @"Main_add"(i64 jeandle_slot(0) %a, %T narrow_oop %t, ptr addrspace(10) swiftcoro) jeandle_java safepoints(3) depth=2 #0 gc "hotspotgc" personality ptr @__gxx_personality_v0 {
entry:
  #jeandle_record(i64 %a, !7)
  #dbg_value(i64 %a, !7, !DIExpression(), !7)
  %b = add jeandle_checked nsw i64 %a, 1
  %c = icmp samesign jeandle_hint slt i64 %a, %b
  %d = load jeandle_narrow volatile i64, ptr null, align 8, !invariant.load !7, !enzymejl_source_type_Ptr\7BFloat64\7D !{}
  store jeandle_narrow %T %t, ptr null
  %e = alloca jeandle_stack [2 x i8], align 1
  %g = getelementptr jeandle_bounds inbounds i8, ptr %e, i64 1
  %s = select jeandle_flag i1 %c, i64 %a, i64 %b
  %o = invoke hotspotcc ptr addrspace(1) @jeandle.new_instance(ptr jeandle_arg(1) null, i32 jeandle_zero 8) jeandle_call #1 [ "deopt"(i64 %a, i32 poison), "julia.gcroots"(ptr null) ]
          to label %ok unwind label %bad
ok:
  %n = call jeandlecc jeandle_ret %T @llvm.jeandle.unknown(i64 %a) jeandle_call
  ret i64 %b
bad:
  %lp = landingpad i64 cleanup
  ret i64 -1
}
declare %T @llvm.jeandle.unknown(i64)
attributes #0 = { jeandle_group novel(8) nounwind depth=4 named="x" "plain"="y" }
!java-method-compilation = !{}
!7 = jeandle_kind !{}
!8 = !JNode(scope: !7)
`

func TestForks(t *testing.T) {
	m, err := Parse("fork.ll", []byte(forks))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	list, more := m.Warnings()
	require.Zero(t, more)
	var got []string
	for _, w := range list {
		got = append(got, fmt.Sprintf("%d: %v", w.Line, w))
	}
	require.Equal(t, []string{
		"2: unknown property of the target 'features'",
		"4: unknown linkage or visibility 'jeandle_linkage'",
		"4: unknown global variable property 'jeandle_order'",
		"5: unknown linkage or visibility 'newvisibility'",
		"5: unknown global variable property 'place'",
		"7: unknown calling convention 'hotspotcc' (3 times)",
		"7: unknown attribute 'jeandle_klass'",
		"8: unknown calling convention 'swiftcorocc'",
		"8: unknown attribute 'swiftcoro' (2 times)",
		"8: unknown attribute 'swiftish'",
		"10: unknown linkage or visibility 'novel_visibility'",
		"10: unknown attribute 'jeandle_result'",
		"13: unknown attribute 'jeandle_slot'",
		"13: unknown attribute 'narrow_oop'",
		"13: unknown attribute 'jeandle_java'",
		"13: unknown attribute 'safepoints'",
		"13: unknown attribute 'depth' (2 times)",
		"15: unknown record 'jeandle_record'",
		"17: unknown flag 'jeandle_checked'",
		"18: unknown flag 'jeandle_hint'",
		"19: unknown flag 'jeandle_narrow' (2 times)",
		"21: unknown flag 'jeandle_stack'",
		"22: unknown flag 'jeandle_bounds'",
		"23: unknown flag 'jeandle_flag'",
		"24: unknown attribute 'jeandle_arg'",
		"24: unknown attribute 'jeandle_zero'",
		"24: unknown attribute 'jeandle_call' (2 times)",
		"27: unknown calling convention 'jeandlecc'",
		"27: unknown attribute 'jeandle_ret'",
		"34: unknown attribute 'jeandle_group'",
		"34: unknown attribute 'novel'",
		"34: unknown attribute 'named'",
		"36: unknown kind of metadata 'jeandle_kind'",
	}, got)

	// Known words next to unknown ones are parsed as usual, and an unknown convention keeps its name.
	f := m.Func("Main_add")
	require.Equal(t, "hotspotcc", f.CC)
	require.Equal(t, "hotspotgc", f.GC)
	require.Equal(t, "fastcc", m.Func("visible").CC)
	require.True(t, m.Func("visible").Ret.SignExt)
	in := f.Value("b").(*Instr)
	require.Equal(t, NSW, in.Flags)
	require.Equal(t, SameSign, f.Value("c").(*Instr).Flags)
	require.Equal(t, Volatile, f.Value("d").(*Instr).Flags)
	require.Equal(t, InBounds|NUSW, f.Value("g").(*Instr).Flags)
	o := f.Value("o").(*Instr)
	require.Equal(t, "hotspotcc", o.Call.CC)
	require.Len(t, o.Call.Bundles, 2)
	require.Equal(t, "jeandlecc", f.Value("n").(*Instr).Call.CC)
	require.Equal(t, int64(7), m.Lookup("hidden").(*Global).Init.Int.Int64())
}

// TestMistakesAreNoForks requires that a mistake is an error at its position: a word in place of a type, an operand or an opcode is not an unknown word.
func TestMistakesAreNoForks(t *testing.T) {
	for _, c := range []struct {
		src       string
		line, col int
		msg       string
	}{
		{"define vod @f() {\n  ret void\n}\n", 1, 8, "expected a type"},
		{"define internal i32x @f() {\n  ret void\n}\n", 1, 17, "expected a type"},
		{"declare i32x @f()\n", 1, 9, "expected a type"},
		{"declare void @f(i32x)\n", 1, 17, "expected a type"},
		{"declare void @f()\nfoo bar\n", 2, 1, "expected top-level entity"},
		{"declare void @f() foo bar {\n", 1, 27, "expected top-level entity"},
		{body("%x = add i32x %a, 1\n  ret i32 %x"), 2, 12, "expected a type"},
		{body("%x = add nswx, 1\n  ret i32 %x"), 2, 12, "expected a type"},
		{body("%x = fneg floatx %a\n  ret i32 %x"), 2, 13, "expected a type"},
		{body("%x = icmp sltt i32 %a, 1\n  ret i32 %a"), 2, 13, "expected a predicate of icmp"},
		{body("%x = load i32x, ptr null\n  ret i32 %a"), 2, 13, "expected a type"},
		{body("%x = load volatile atomic i32, ptr null\n  ret i32 %a"), 2, 22, "expected a type"},
		{body("%x = add exact i32 %a, 1\n  ret i32 %x"), 2, 12, "expected a type"},
		{body("%x = call i32x @f(i32 1)\n  ret i32 %x"), 2, 13, "expected a type"},
		{body("%x = call fastcc ccold @f(i32 1)\n  ret i32 %x"), 2, 20, "expected a type"},
		{body("%x = call i32 @f(i32 nul)\n  ret i32 %x"), 2, 24, "expected a value, not 'nul'"},
		{body("%x = call i32 @f(i32 nul, i32 undefined)\n  ret i32 %x"), 2, 24, "expected a value, not 'nul'"},
		{body("%x = call i32 @f(i32 1)\n  foo\n  ret i32 %x"), 3, 3, "expected instruction opcode, not 'foo'"},
		{"attributes #0 = { foo", 1, 22, "unknown attribute"},
		{"@g = globl i32 0\n", 1, 6, "expected 'global', 'constant', 'alias' or 'ifunc'"},
		{"@g = glob global2 i32 0\n", 1, 6, "expected 'global', 'constant', 'alias' or 'ifunc'"},
		{"target tripel \"x\"\n", 1, 8, "expected triple or datalayout after target"},
		{"define foo(((((( i32 @f() {\n", 1, 8, "expected a type"},
		{"define " + strings.Repeat("a ", 20) + "i32 @f() {\n", 1, 8, "expected a type"},
	} {
		m, err := Parse("x.ll", []byte(c.src))
		if err == nil {
			err = m.Check()
		}
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.Equal(t, fmt.Sprintf("%d:%d", c.line, c.col), fmt.Sprintf("%d:%d", e.Line, e.Col), "%s%v", c.src, err)
		require.Contains(t, e.Msg, c.msg, c.src)
	}
}

// TestWarningsAreBounded requires that the list of warnings and each word are limited.
func TestWarningsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("attributes #0 = { " + strings.Repeat("w", 1000))
	for n := range 100 {
		fmt.Fprintf(&b, " word%d", n)
	}
	m, err := Parse("x.ll", []byte(b.String()+" }\n"))
	require.NoError(t, err)
	list, more := m.Warnings()
	require.Len(t, list, maxWarnings)
	require.Equal(t, 101-maxWarnings, more)
	require.Equal(t, strings.Repeat("w", maxWarned), list[0].Word)
}
