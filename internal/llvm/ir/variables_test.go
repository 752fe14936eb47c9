package ir

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// describedModule has a site in each block of @f. The test replaces DBG by debug records, or by intrinsics as in LLVM 18 and older.
const describedModule = `
declare void @site(i64, i64, i64)
declare void @llvm.dbg.value(metadata, metadata, metadata)
declare void @llvm.dbg.declare(metadata, metadata, metadata)

define void @f(i64 %a, i64 %n, i1 %c) !dbg !5 {
entry:
  %slot = alloca i64
  VALUE(i64 %a, !20, !DIExpression(), !10)
  VALUE(i64 %a, !21, !DIExpression(), !10)
  DECLARE(ptr %slot, !27, !DIExpression(), !10)
  %x = add i64 %a, 1, !dbg !10
  VALUE(i64 %x, !22, !DIExpression(), !10)
  VALUE(i64 %x, !23, !DIExpression(DW_OP_plus_uconst, 4, DW_OP_stack_value), !10)
  VALUE(i64 %x, !24, !DIExpression(), !11)
  VALUE(i64 %n, !28, !DIExpression(), !12)
  call void @site(i64 %a, i64 %x, i64 %n), !dbg !10
  call void @site(i64 %a, i64 %x, i64 %n), !dbg !11
  call void @site(i64 %a, i64 %x, i64 %n), !dbg !12
  call void @site(i64 %a, i64 %x, i64 %n)
  VALUE(i64 %n, !22, !DIExpression(), !10)
  call void @site(i64 %a, i64 %x, i64 %n), !dbg !10
  VALUE(i64 poison, !22, !DIExpression(), !10)
  call void @site(i64 %a, i64 %x, i64 %n), !dbg !10
  br i1 %c, label %left, label %right, !dbg !10
left:
  VALUE(i64 %x, !25, !DIExpression(), !10)
  VALUE(i64 %x, !26, !DIExpression(), !10)
  br label %join, !dbg !10
right:
  VALUE(i64 %x, !25, !DIExpression(), !10)
  VALUE(i64 %n, !26, !DIExpression(), !10)
  br label %join, !dbg !10
join:
  call void @site(i64 %a, i64 %x, i64 %n), !dbg !10
  br label %loop, !dbg !10
loop:
  %i = phi i64 [ 0, %join ], [ %i1, %loop ], !dbg !10
  call void @site(i64 %a, i64 %i, i64 %n), !dbg !10
  VALUE(i64 %i, !22, !DIExpression(), !10)
  call void @site(i64 %a, i64 %i, i64 %n), !dbg !10
  %i1 = add i64 %i, 1, !dbg !10
  VALUE(i64 %n, !21, !DIExpression(), !10)
  call void @site(i64 %i1, i64 %i, i64 %n), !dbg !10
  %more = icmp ult i64 %i1, %n, !dbg !10
  br i1 %more, label %loop, label %done, !dbg !10
done:
  call void @site(i64 %slotted, i64 %i, i64 %n), !dbg !10
  ret void, !dbg !10
}

!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!3}
!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, emissionKind: FullDebug)
!2 = !DIFile(filename: "f.c", directory: "/")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !DISubroutineType(types: !{null})
!5 = distinct !DISubprogram(name: "f", scope: !2, file: !2, line: 1, type: !4, spFlags: DISPFlagDefinition, unit: !1)
!6 = distinct !DISubprogram(name: "inner", scope: !2, file: !2, line: 1, type: !4, spFlags: DISPFlagDefinition, unit: !1)
!7 = distinct !DILexicalBlock(scope: !5, file: !2, line: 2, column: 1)
!8 = !DIBasicType(name: "long", size: 64, encoding: DW_ATE_signed)
!10 = !DILocation(line: 3, column: 1, scope: !5)
!11 = !DILocation(line: 4, column: 1, scope: !7)
!12 = !DILocation(line: 5, column: 1, scope: !6, inlinedAt: !13)
!13 = distinct !DILocation(line: 6, column: 1, scope: !5)
!20 = !DILocalVariable(name: "a", scope: !5, file: !2, line: 1, type: !8)
!21 = !DILocalVariable(name: "copy", scope: !5, file: !2, line: 1, type: !8)
!22 = !DILocalVariable(name: "v", scope: !5, file: !2, line: 1, type: !8)
!23 = !DILocalVariable(name: "sum", scope: !5, file: !2, line: 1, type: !8)
!24 = !DILocalVariable(name: "inblock", scope: !7, file: !2, line: 1, type: !8)
!25 = !DILocalVariable(name: "both", scope: !5, file: !2, line: 1, type: !8)
!26 = !DILocalVariable(name: "either", scope: !5, file: !2, line: 1, type: !8)
!27 = !DILocalVariable(name: "lies", scope: !5, file: !2, line: 1, type: !8)
!28 = !DILocalVariable(name: "ininner", scope: !6, file: !2, line: 1, type: !8)
`

// describedForms returns the module with records and with intrinsics.
func describedForms() map[string]string {
	text := strings.ReplaceAll(describedModule, "%slotted", "%x")
	intrinsics := text
	for _, name := range []string{"VALUE", "DECLARE"} {
		text = strings.ReplaceAll(text, name+"(", "#dbg_"+strings.ToLower(name)+"(")
		var lines []string
		for line := range strings.Lines(intrinsics) {
			if head, rest, ok := strings.Cut(line, name+"("); ok {
				parts := strings.SplitN(rest, ", ", 3)
				at := strings.LastIndex(parts[2], ", !")
				line = head + "call void @llvm.dbg." + strings.ToLower(name) + "(metadata " + parts[0] + ", metadata " + parts[1] +
					", metadata " + parts[2][:at] + "), !dbg " + strings.TrimSuffix(parts[2][at+2:], ")\n") + "\n"
			}
			lines = append(lines, line)
		}
		intrinsics = strings.Join(lines, "")
	}
	records := strings.ReplaceAll(strings.ReplaceAll(text, "declare void @llvm.dbg.value(metadata, metadata, metadata)\n", ""),
		"declare void @llvm.dbg.declare(metadata, metadata, metadata)\n", "")
	return map[string]string{"records": records, "intrinsics": intrinsics}
}

// describedSites lists the variables of the three arguments of each site, in the order of the source.
var describedSites = []string{
	"a copy | v | ",         // records with an expression, and variables of other scopes, are ignored
	"a copy | inblock v | ", // inblock is declared in this site's block
	"a copy | v | ininner",  // ininner is declared in the inlined function that contains this site
	"a copy | v | ",         // a site without a location: only variables of the function itself
	"a copy |  | v",         // v is assigned the third argument
	"a copy |  | ",          // the debug information states that v has no value any more
	"a copy | both | ",      // both paths assign both: once the same value, once another one
	"a |  | ",               // in the second iteration %i differs from the first value of v, and so does copy
	"a | v | ",              // now v has the value of %i
	" | v | copy",           // the loop has assigned %n to copy
	"both | v | copy",       // a site after the loop
}

func TestVariables(t *testing.T) {
	for name, text := range describedForms() {
		t.Run(name, func(t *testing.T) {
			version := 22
			if name == "intrinsics" {
				version = 16
			}
			_, errs, ok := llvm(t, version, "llvm-as", "-o", os.DevNull, write(t, "described.ll", text))
			require.True(t, ok, errs)
			body, err := parse(t, text).Func("f").Body()
			require.NoError(t, err)
			var got []string
			for _, b := range body {
				for _, in := range b.Instrs {
					if callee, ok := callOf(in); ok && callee == "site" {
						var parts []string
						for _, list := range in.Variables(in.Args) {
							parts = append(parts, strings.Join(list, " "))
						}
						got = append(got, strings.Join(parts, " | "))
					}
				}
			}
			require.Equal(t, describedSites, got)
			where := body[0].Instrs[len(body[0].Instrs)-1].Variables([]Value{body[0].Instrs[0]})
			require.Equal(t, [][]string{{"&lies"}}, where)
		})
	}
}

// callOf returns the name of the directly called function.
func callOf(in *Instr) (string, bool) {
	if in.Call == nil {
		return "", false
	}
	f, ok := in.Call.Callee.(*Func)
	if !ok {
		return "", false
	}
	return f.Name, true
}

// TestBrokenVariables requires that malformed debug information names no values.
func TestBrokenVariables(t *testing.T) {
	for name, change := range map[string][]string{
		"no variable":     {"!22 = !DILocalVariable(name: \"v\"", "!22 = !DIBasicType(name: \"v\""},
		"no scope":        {"!22 = !DILocalVariable(name: \"v\", scope: !5, ", "!22 = !DILocalVariable(name: \"v\", "},
		"no name":         {"!22 = !DILocalVariable(name: \"v\", ", "!22 = !DILocalVariable("},
		"a missing node":  {"#dbg_value(i64 %x, !22,", "#dbg_value(i64 %x, !99,"},
		"no location":     {"#dbg_value(i64 %x, !22, !DIExpression(), !10)", "#dbg_value(i64 %x, !22, !DIExpression(), !99)"},
		"no value":        {"#dbg_value(i64 %x, !22,", "#dbg_value(!{}, !22,"},
		"another's value": {"#dbg_value(i64 %x, !22,", "#dbg_value(i64 %missing, !22,"},
		"a block":         {"#dbg_value(i64 %x, !22,", "#dbg_value(i64 %join, !22,"},
		"a list":          {"#dbg_value(i64 %x, !22, !DIExpression()", "#dbg_value(!DIArgList(i64 %x, i64 %a), !22, !DIExpression(DW_OP_LLVM_arg, 0)"},
		"too few":         {"#dbg_value(i64 %x, !22, !DIExpression(), !10)", "#dbg_value(i64 %x, !22)"},
	} {
		text := describedForms()["records"]
		changed := strings.Replace(text, change[0], change[1], 1)
		require.NotEqual(t, text, changed, name)
		body, err := parse(t, changed).Func("f").Body()
		require.NoError(t, err, name)
		for _, in := range body[0].Instrs {
			if callee, ok := callOf(in); ok && callee == "site" {
				require.Empty(t, in.Variables(in.Args)[1], name)
				break
			}
		}
	}
}
