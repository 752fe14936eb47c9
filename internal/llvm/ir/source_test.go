package ir

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sourceModule = `define i32 @mangled(i32 %x) !dbg !5 {
  %a = add i32 %x, 1, !dbg !10
  %b = add i32 %a, 1, !tbaa !15, !dbg !11
  %c = add i32 %b, 1, !dbg !12, !tbaa !15
  %d = add i32 %c, 1, !dbg !DILocation(line: 4, column: 7, scope: !9)
  %e = add i32 %d, 1, !dbg !16
  %f = add i32 %e, 1
  ret i32 %f, !dbg !17
}

define void @plain() {
  ret void
}

!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!3}
!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, emissionKind: FullDebug)
!2 = !DIFile(filename: "src/f.c", directory: "/home \22x\22", checksumkind: CSK_MD5, checksum: "0123456789abcdef0123456789abcdef")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !DISubroutineType(types: !{})
!5 = distinct !DISubprogram(name: "outer", linkageName: "mangled", scope: !2, file: !2, line: 10, type: !4, scopeLine: 11, flags: DIFlagPrototyped | DIFlagThunk, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
!6 = distinct !DISubprogram(name: "inner", scope: !2, file: !2, line: 1, type: !4, spFlags: DISPFlagDefinition, unit: !1)
!7 = !DIFile(filename: "table.inc", directory: "")
!8 = distinct !DILexicalBlock(scope: !6, file: !2, line: 2, column: 3)
!9 = !DILexicalBlockFile(scope: !8, file: !7, discriminator: 0)
!10 = !DILocation(line: 12, column: 5, scope: !5)
!11 = !DILocation(line: 3, scope: !6, inlinedAt: !13)
!12 = !DILocation(line: 4, column: 9, scope: !9, inlinedAt: !14)
!13 = distinct !DILocation(line: 13, column: 2, scope: !5)
!14 = distinct !DILocation(line: 5, column: 1, scope: !8, inlinedAt: !13)
!15 = !{!"int"}
!16 = !DILocation(line: 0, scope: !5)
!17 = !DILocation(
  line: 20, column: 1,
  scope: !5)
`

func TestSourceLines(t *testing.T) {
	// The verifier checks the types in the tree of alias sets and of subprograms; this parser does not.
	_, errs, ok := llvm(t, 22, "llvm-as", "-disable-verify", "-o", os.DevNull, write(t, "source.ll", sourceModule))
	require.True(t, ok, errs)
	const file, dir = "src/f.c", `/home "x"`
	call := SourceLine{file, dir, 13, 2, "outer", nil}
	want := map[string]SourceLine{
		"a": {file, dir, 12, 5, "outer", nil},
		"b": {file, dir, 3, 0, "inner", &call},
		"c": {"table.inc", "", 4, 9, "inner", &SourceLine{file, dir, 5, 1, "inner", &call}},
		"d": {"table.inc", "", 4, 7, "inner", nil},
		"e": {file, dir, 0, 0, "outer", nil},
		"":  {file, dir, 20, 1, "outer", nil},
	}
	m := parse(t, sourceModule)
	body, err := m.Func("mangled").Body()
	require.NoError(t, err)
	for _, in := range body[0].Instrs {
		at, ok := in.Source()
		expected, known := want[in.Name]
		require.Equal(t, known, ok, in.Name)
		require.Equal(t, expected, at, in.Name)
	}
	at, ok := m.Func("mangled").Source()
	require.True(t, ok)
	require.Equal(t, SourceLine{file, dir, 10, 0, "outer", nil}, at)
	_, ok = m.Func("plain").Source()
	require.False(t, ok)
}

// TestBrokenSourceLines requires that malformed debug information yields no source line, and that the lookup ends.
func TestBrokenSourceLines(t *testing.T) {
	for name, nodes := range map[string]string{
		"missing":         "",
		"another kind":    "!1 = !DIFile(filename: \"a\", directory: \"\")\n",
		"no node":         "!1 = !{!1}\n",
		"inlined in self": "!1 = !DILocation(line: 1, scope: !2, inlinedAt: !1)\n!2 = !DILexicalBlock(scope: !2, file: !2)\n",
		"no fields":       "!1 = !DILocation(1)\n",
	} {
		m := parse(t, "define void @f() !dbg !1 {\n  ret void, !dbg !1\n}\n"+nodes)
		body, err := m.Func("f").Body()
		require.NoError(t, err)
		_, ok := body[0].Instrs[0].Source()
		require.False(t, ok, name)
		_, ok = m.Func("f").Source()
		require.False(t, ok, name)
	}
}

// TestMetadataLaidOutByHand requires that metadata is found in any layout, and that text that only looks like metadata is not.
func TestMetadataLaidOutByHand(t *testing.T) {
	const node = "!1 = !DILocation(line: 7, column: 8, scope: !2)"
	for name, src := range map[string]string{
		"as printed":           node + "\n",
		"indented":             "   " + node,
		"without spaces":       "!1=!DILocation(line:7,column:8,scope:!2)",
		"two in a line":        "!0 = !{} " + node + "\n",
		"after a type":         "!0 = !{} %t = type { i32 }\n" + node + "\n@t = global %t { i32 1 }",
		"after a declaration":  "!0 = !{} declare void @g()\n@g2 = global ptr @g\n" + node + "\n",
		"over lines":           "!0 = !{\n!2,\n!3}\n" + strings.ReplaceAll(node, ", ", ",\n") + "\n",
		"after a comment":      "!0 = !{} ; it's \"\n" + node + "\n",
		"in a string":          "!0 = !{!\"\n!1 = !DILocation(line: 99, scope: !2)\n\"}\n" + node + "\n",
		"before a function":    node + "\ndefine void @g() {\n  ret void\n}\n",
		"with a typed pointer": "!0 = !{i32* null}\n" + node + "\n",
		"descending":           "!9 = !{}\n" + node + "\n!0 = !{}\n",
	} {
		m := parse(t, "define void @f() {\n  ret void, !dbg !1\n}\n"+src)
		body, err := m.Func("f").Body()
		require.NoError(t, err)
		at, ok := body[0].Instrs[0].Source()
		require.True(t, ok, name)
		require.Equal(t, SourceLine{Line: 7, Column: 8}, at, name)
	}
}
