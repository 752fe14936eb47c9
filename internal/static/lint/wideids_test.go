package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// wideIDs has three statepoints with ids of more than 32 bits, and a stackmap and a patchpoint with one. POINTER is the type of a function pointer in
// each release, NAME the suffix of the intrinsic's name.
const wideIDs = `
target triple = "x86_64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.NAME(i64, i32, POINTER, i32, i32, ...)
declare void @g()
define i64 @f(i64 %a, i64 %b, i64 %c, i64 %d) gc "statepoint-example" {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 81985529216486895, i32 0, i64 %d)
  %t = call token (i64, i32, POINTER, i32, i32, ...) @llvm.experimental.gc.statepoint.NAME(i64 81985529216486895, i32 0, POINTER elementtype(void ()) @g, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %a) ]
  %u = call token (i64, i32, POINTER, i32, i32, ...) @llvm.experimental.gc.statepoint.NAME(i64 4294967303, i32 0, POINTER elementtype(void ()) @g, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %b) ]
  call void @g() "statepoint-id"="18446744073709551615" [ "deopt"(i64 %c) ]
  ret i64 %a
}`

// TestWideIDs compares the releases that truncate the id of a statepoint with llvm-readobj; each record must still have the names of its site, and
// lint must warn.
func TestWideIDs(t *testing.T) {
	livetest.Slow(t)
	whole := []string{"81985529216486895", "81985529216486895", "4294967303", "18446744073709551615"}
	cut := []string{"81985529216486895", "2309737967", "7", "4294967295"}
	for version, want := range map[int][]string{14: cut, 16: cut, 19: whole, 22: whole} {
		for _, level := range []string{"-O0", "-O2"} {
			t.Run(fmt.Sprintf("llc-%d %s", version, level), func(t *testing.T) {
				pointer, ending := "ptr", "p0"
				if version == 14 {
					pointer, ending = "void ()*", "p0f_isVoidf"
				}
				path, m := frametest.Written(t, "wide.ll", strings.NewReplacer("POINTER", pointer, "NAME", ending).Replace(wideIDs))
				object := frametest.LLC(t, version, path, level)
				var ids []string
				for _, found := range readRecord.FindAllStringSubmatch(frametest.Readobj(t, object), -1) {
					ids = append(ids, found[1])
				}
				require.Equal(t, want, ids)
				require.Equal(t, []string{"0 f: %d", "0 f: %a", "0 f: %b", "0 f: %c"}, frametest.Readings(t, frametest.MapsOf(t, object, m)))
			})
		}
	}
	_, m := frametest.Written(t, "wide.ll", strings.NewReplacer("POINTER", "ptr", "NAME", "p0").Replace(wideIDs))
	report, err := lint.Lint([]*ir.Module{m}, nil)
	require.NoError(t, err)
	var said []string
	for _, f := range report.Findings {
		if f.Rule == lint.WideID {
			require.Equal(t, lint.LintWarning, f.Severity)
			said = append(said, fmt.Sprint(f.Line, " ", f.What[strings.LastIndex(f.What, "the id"):]))
		}
	}
	require.Equal(t, []string{"8 the id 2309737967", "9 the id 7", "10 the id 4294967295"}, said)
}

// TestLintIDsThatAreCut requires a warning for ids that are equal only after truncation, which LLVM 19 and later do not do.
func TestLintIDsThatAreCut(t *testing.T) {
	text := strings.NewReplacer("POINTER", "ptr", "NAME", "p0", "i64 4294967303", "i64 7", "18446744073709551615", "4294967303").Replace(wideIDs)
	_, m := frametest.Written(t, "cut.ll", text)
	report, err := lint.Lint([]*ir.Module{m}, nil)
	require.NoError(t, err)
	var lines []int
	for _, f := range report.Findings {
		if f.Rule == lint.SameID && strings.HasPrefix(f.What, "LLVM before 19 cuts its id") {
			require.Equal(t, lint.LintWarning, f.Severity)
			lines = append(lines, f.Line)
		}
	}
	slices.Sort(lines)
	require.Equal(t, []int{9, 10}, lines)
}
