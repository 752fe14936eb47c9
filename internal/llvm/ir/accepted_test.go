package ir

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// accepted lists modules that LLVM 19 accepts, one for each construct that is hard to parse. want lists the expected results of got for the parsed module.
var accepted = []struct {
	name, src string
	got       func(m *Module) []string
	want      []string
}{
	{"intrinsics without a declaration", `
define i32 @f(i32 %a, i64 %b) {
  %x = call i32 @llvm.umax.i32(i32 %a, i32 7)
  %y = call i32 @llvm.umax(i32 %x, i32 8)
  %z = call i64 @llvm.umax(i64 %b, i64 9)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %y, i64 %z)
  ret i32 %y
}`,
		func(m *Module) []string {
			callee := func(name string) string {
				f := m.Func("f").Value(name).(*Instr).Call.Callee.(*Func)
				return f.Ref() + " " + f.Sig.String()
			}
			sites, err := m.Func("f").Sites()
			return []string{callee("x"), callee("y"), callee("z"), errorText(err), string(sites[0].Kind), sites[0].Live[1].Ref()}
		},
		[]string{"@llvm.umax.i32 i32 (i32, i32)", "@llvm.umax i32 (i32, i32)", "@llvm.umax i64 (i64, i64)", "", "stackmap", "%z"}},
	{"scalable splats", `
define <vscale x 4 x i32> @f(i32 %x) {
  %i = insertelement <vscale x 4 x i32> poison, i32 %x, i64 0
  %v = shufflevector <vscale x 4 x i32> %i, <vscale x 4 x i32> poison, <vscale x 4 x i32> zeroinitializer
  %w = shufflevector <vscale x 4 x i32> %v, <vscale x 4 x i32> poison, <vscale x 4 x i32> splat (i32 0)
  %u = shufflevector <vscale x 4 x i32> %w, <vscale x 4 x i32> poison, <vscale x 2 x i32> poison
  %s = add <vscale x 4 x i32> %w, splat (i32 7)
  ret <vscale x 4 x i32> %s
}`,
		func(m *Module) []string {
			f := m.Func("f")
			in := func(name string) *Instr { return f.Value(name).(*Instr) }
			return []string{numbers(in("v").Path), numbers(in("w").Path), numbers(in("u").Path), in("u").Typ.String(), in("s").Args[1].Ref()}
		},
		[]string{"0 0 0 0 ", "0 0 0 0 ", "-1 -1 ", "<vscale x 2 x i32>", "splat (i32 7)"}},
	{"metadata of a global, then metadata with a name", `
@a = global i32 3, !dbg !0
!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!8}
!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = !DIGlobalVariable(name: "a", scope: !2, file: !3, line: 1, type: !4, isLocal: false, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !3, emissionKind: FullDebug, globals: !5)
!3 = !DIFile(filename: "a.c", directory: "/")
!4 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!5 = !{!0}
!8 = !{i32 2, !"Debug Info Version", i32 3}
`,
		func(m *Module) []string { return []string{m.Lookup("a").(*Global).Init.Ref()} }, []string{"3"}},
	{"pointers spelled in both ways", `
@b = global i32 ()* @f
@c = global ptr @f
define i32 @f() {
  %p = load i32 ()*, ptr @b
  %q = alloca i8*
  store ptr null, i8** %q
  %r = call i32 %p()
  ret i32 %r
}`,
		func(m *Module) []string {
			return []string{m.Lookup("b").(*Global).ValueType.String(), m.Func("f").Value("q").Type().String(), yesNo(m.TypedPointers())}
		}, []string{"ptr", "ptr", "no"}},
	{"typed pointers that do not agree", `
@g = global i64 0
define i8 @f() {
  %x = load i8, i8* @g
  ret i8 %x
}`,
		func(m *Module) []string { return []string{m.Lookup("g").Type().String(), yesNo(m.TypedPointers())} }, []string{"ptr", "no"}},
	{"a global without a name", `
@5 = global i8 0
@"" = global i8 1
define i8 @""(i32 %"") {
  %"" = load i8, ptr @6
  ret i8 %2
}`,
		func(m *Module) []string {
			return []string{m.Globals[1].Ref(), m.Funcs[0].Ref(), m.Funcs[0].Params[0].Name}
		},
		[]string{"@6", "@7", "0"}},
	{"signed pointers", `
@f = external global i8
@p = global ptr ptrauth (ptr @f, i32 2)
@q = global ptr ptrauth (ptr @f, i32 2, i64 1234, ptr @q)
define void @g() {
  call void ptrauth (ptr @g, i32 0)() [ "ptrauth"(i32 0, i64 0) ]
  ret void
}`,
		func(m *Module) []string {
			return []string{m.Globals[1].Init.Ref(), m.Globals[2].Init.Ref()}
		}, []string{"ptrauth (ptr @f, i32 2)", "ptrauth (ptr @f, i32 2, i64 1234, ptr @q)"}},
	{"zero of an opaque type", "%opaque = type opaque\n@g = weak global %opaque zeroinitializer, align 16\n",
		func(m *Module) []string { return []string{m.Globals[0].Init.Ref()} }, []string{"zeroinitializer"}},
	{"floats of unusual length", `
@a = global double 0x1397723CCABD0000401C666660000000
@b = global double 0x13FF8000000000000
@c = global fp128 0xL00000000000000003fff000000000000ff
@d = global fp128 0xL3fff
@e = global fp128 0xL00000000000000011
@h = global half 0xH003C00
@k = global x86_fp80 0xK3FFF800000000000000012
`, // as printed by llvm-dis-19
		func(m *Module) (got []string) {
			for _, g := range m.Globals {
				got = append(got, g.Init.Ref())
			}
			return got
		},
		[]string{"0.000000e+00", "1.500000e+00", "0xL00000000000000003FFF000000000000", "0xL00000000000000000000000000003FFF",
			"0xL00000000000000010000000000000001", "0xH3C00", "0xK3FFF8000000000000000"}},
	{"a struct that contains itself", "%t = type { i32, [2 x %u] }\n%u = type { %t }\n%v = type { ptr, %t }\ndeclare void @f(ptr)\n",
		func(m *Module) []string {
			return []string{yesNo(m.TypeNames["t"].Opaque), yesNo(m.TypeNames["u"].Opaque), yesNo(m.TypeNames["v"].Opaque), yesNo(m.Layout.Size(m.TypeNames["v"]) == NoSize)}
		}, []string{"yes", "yes", "no", "yes"}},
	{"labels as arguments and in bundles", `
declare void @g()
define void @f() {
  call void asm sideeffect "jmp ${0:l}", "X"(label %next) [ "foo"(label %next) ]
  br label %next
next:
  ret void
dead:
  %p = phi i32
  ret void
}`,
		func(m *Module) []string {
			f := m.Func("f")
			in := f.Block("0").Instrs[0]
			return []string{in.Args[0].Ref(), in.Call.Bundles[0].Args[0].Ref(), yesNo(len(f.Value("p").(*Instr).Args) == 0)}
		}, []string{"%next", "%next", "yes"}},
	{"lengths in hexadecimal", "define void @f() {\n  %x = alloca [u0x30000001 x i8]\n  ret void\n}\n",
		func(m *Module) []string { return []string{m.Func("f").Value("x").(*Instr).Elem.String()} }, []string{"[805306369 x i8]"}},
	{"a pointer of 52 bits", "target datalayout = \"e-p:52:64\"\n@g = global i8 0\n",
		func(m *Module) []string { return []string{numbers([]int{m.Layout.PointerBytes(0)})} }, []string{"7 "}},
	{"address spaces of a data layout that no text names", `
target datalayout = "e-A5-G1-p5:32:32"
@x = global i32 0
define void @f() {
  %a = alloca i32
  store i32 1, ptr %a
  store i32 1, ptr @x
  ret void
}`,
		func(m *Module) []string {
			return []string{m.Globals[0].Type().String(), m.Func("f").Value("a").Type().String(), numbers([]int{m.Layout.GlobalSpace, m.Layout.AllocaSpace})}
		}, []string{"ptr", "ptr", "1 5 "}},
}

// TestReadsWhatLLVMAsAccepts requires that this package parses each module that LLVM 19 accepts, with the expected meaning.
func TestReadsWhatLLVMAsAccepts(t *testing.T) {
	for _, c := range accepted {
		t.Run(c.name, func(t *testing.T) {
			_, said, ok := llvm(t, 19, "llvm-as", "-o", "/dev/null", write(t, "accepted.ll", c.src))
			require.True(t, ok, said)
			require.Equal(t, c.want, c.got(parse(t, c.src)))
		})
	}
}

// TestFloatsOfUnusualLengthAreAsAssembled requires that the floating-point literals above have the values that llvm-dis prints.
func TestFloatsOfUnusualLengthAreAsAssembled(t *testing.T) {
	for _, c := range accepted {
		if c.name != "floats of unusual length" {
			continue
		}
		printed := made(t, 19, "opt", "-S", write(t, "floats.ll", c.src))
		require.Equal(t, c.want, c.got(parse(t, printed)))
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func numbers(list []int) (text string) {
	for _, n := range list {
		text += fmt.Sprint(n, " ")
	}
	return text
}

// TestSitesOfTheProposal requires that the intrinsics of the proposal of 2013, which are named webkit and have 32-bit ids, are also sites.
func TestSitesOfTheProposal(t *testing.T) {
	const src = `
declare void @llvm.webkit.stackmap(i32, i32, ...)
declare void @llvm.webkit.patchpoint.void(i32, i32, i8*, i32, ...)
declare i64 @llvm.webkit.patchpoint.i64(i32, i32, i8*, i32, ...)
define i64 @f(i64 %a, i64 %b, i8* %target) {
  call void (i32, i32, ...) @llvm.webkit.stackmap(i32 -1, i32 5, i64 %a)
  call void (i32, i32, i8*, i32, ...) @llvm.webkit.patchpoint.void(i32 2, i32 15, i8* %target, i32 1, i64 %a, i64 %b)
  %r = call i64 (i32, i32, i8*, i32, ...) @llvm.webkit.patchpoint.i64(i32 3, i32 15, i8* null, i32 0, i64 %b, i64 %a)
  ret i64 %r
}
`
	sites, err := parse(t, src).Func("f").Sites()
	require.NoError(t, err)
	var got []string
	for _, s := range sites {
		text := fmt.Sprint(s.Kind, " ", s.ID, " ", s.PatchBytes)
		for _, v := range s.Live {
			text += " " + v.Ref()
		}
		got = append(got, text)
	}
	require.Equal(t, []string{"stackmap 4294967295 5 %a", "patchpoint 2 15 %b", "patchpoint 3 15 %b %a"}, got)
}
