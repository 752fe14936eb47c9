package frames_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// linedModule has debug locations only in the module, because NoDebug keeps them out of the object. @step is inlined into @work.
const linedModule = `
@ready = private constant [6 x i8] c"ready\00"
declare i32 @puts(ptr)
declare i32 @pause()
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)

define i64 @work(i64 %n) noinline !dbg !5 {
  #dbg_value(i64 %n, !20, !DIExpression(), !10)
  %x = add i64 %n, 1, !dbg !10
  #dbg_value(i64 %x, !21, !DIExpression(), !12)
  %p = call i32 @puts(ptr @ready), !dbg !10
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 7, i32 16, ptr @pause, i32 0, i64 %n, i64 %x), !dbg !12
  %s = add i64 %x, %n, !dbg !10
  ret i64 %s, !dbg !10
}

define i32 @main() {
  %r = call i64 @work(i64 41)
  ret i32 0
}

!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!3}
!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, emissionKind: NoDebug)
!2 = !DIFile(filename: "lined.c", directory: "/")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !DISubroutineType(types: !{null})
!5 = distinct !DISubprogram(name: "work", scope: !2, file: !2, line: 10, type: !4, spFlags: DISPFlagDefinition, unit: !1)
!6 = distinct !DISubprogram(name: "step", scope: !2, file: !2, line: 1, type: !4, spFlags: DISPFlagDefinition, unit: !1)
!8 = !DIBasicType(name: "long", size: 64, encoding: DW_ATE_signed)
!10 = !DILocation(line: 11, column: 3, scope: !5)
!12 = !DILocation(line: 2, column: 5, scope: !6, inlinedAt: !13)
!13 = distinct !DILocation(line: 12, column: 7, scope: !5)
!20 = !DILocalVariable(name: "count", scope: !5, file: !2, line: 10, type: !8)
!21 = !DILocalVariable(name: "next", scope: !6, file: !2, line: 1, type: !8)
`

// TestLinesOfModule requires that lines and variables of a module are shown with its frames, in text and JSON.
func TestLinesOfModule(t *testing.T) {
	t.Parallel()
	ir := filepath.Join(t.TempDir(), "lined.ll")
	require.NoError(t, os.WriteFile(ir, []byte(linedModule), 0o600))
	p := livetest.Lli(t, 19, ir, "mcjit")
	places := []any{
		map[string]any{"function": "step", "file": "lined.c", "line": json.Number("2"), "column": json.Number("5"), "inlined": true},
		map[string]any{"function": "work", "file": "lined.c", "line": json.Number("12"), "column": json.Number("7")},
	}
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", ir, "--function", "work", "--json")
	f := clitest.Frames(t, r.Object(t))[0]
	require.Equal(t, places, f["source"])
	require.Equal(t, "count", f["slots"].([]any)[0].(map[string]any)["variable"])

	const text = "        step (inlined) at lined.c:2\n        at lined.c:12\n        count = %n i64    "
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", ir)
	require.Contains(t, r.Stdout, text)
	r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", ir, "--function", "work", "--result", "0")
	require.Contains(t, r.Stdout, "step (inlined) at lined.c:2\n        at lined.c:12\n")
	r = clitest.Run(t, "explain", "-p", clitest.PID(p), "--ir", ir)
	require.Contains(t, r.Stdout, "  source    step (inlined) at lined.c:2\n            at lined.c:12\n")
	require.Contains(t, r.Stdout, "  count = %n i64    41\n")
	r = clitest.Run(t, "explain", "-p", clitest.PID(p), "--ir", ir, "--json")
	require.Equal(t, places, r.Object(t)["places"].([]any)[0].(map[string]any)["in"].(map[string]any)["source"])

	// This program ends instead of waiting.
	ended := filepath.Join(t.TempDir(), "ended.ll")
	require.NoError(t, os.WriteFile(ended, []byte(strings.ReplaceAll(linedModule, "@pause", "@getpid")), 0o600))
	lli := []string{"--", livetest.LLVM(t, 19, "lli"), "-jit-kind=mcjit", ended}
	r = clitest.Run(t, append([]string{"trace", "--ir", ended}, lli...)...)
	require.Contains(t, r.Stdout+r.Stderr, " at lined.c:2  record 7 patchpoint")
	clitest.RequireUnharmed(t, p)
}

// TestLinesAfterCommit requires that source lines in a program's own debug information are also read after a commit has released the process.
func TestLinesAfterCommit(t *testing.T) {
	t.Parallel()
	ir := clitest.TempFile(t, "lined.ll", strings.Replace(linedModule, "NoDebug", "FullDebug", 1))
	p := livetest.Linked(t, 19, ir, "-no-pie")
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", ir, "--function", "work", "--result", "0", "--commit", "--dry-run")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "at lined.c:12\n")
	require.NotContains(t, r.Stdout, "cannot be read")
}
