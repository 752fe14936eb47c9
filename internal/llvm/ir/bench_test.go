package ir

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyFunctions returns a module as clang -O1 -g prints it: functions of 33 lines, each with a global, a declaration and eleven metadata nodes.
func manyFunctions(lines int) string {
	const each = 33 + 4 + 2 + 11
	var b strings.Builder
	b.WriteString("source_filename = \"many.c\"\ntarget triple = \"x86_64-pc-linux-gnu\"\n\n%struct.pair = type { i32, ptr }\n\n")
	n := lines / each
	for i := range n {
		fmt.Fprintf(&b, "@.str.%d = private unnamed_addr constant [12 x i8] c\"text %06d\\00\", align 1\n", i, i)
	}
	for i := range n {
		fmt.Fprintf(&b, "\n; Function Attrs: nounwind uwtable\ndefine dso_local i32 @f%d(ptr nocapture noundef readonly %%0, i32 noundef %%1) local_unnamed_addr #0 !dbg !%d {\n", i, 11*i)
		b.WriteString("  call void @llvm.dbg.value(metadata ptr %0, metadata !7, metadata !DIExpression()), !dbg !8\n  %3 = icmp sgt i32 %1, 0, !dbg !9\n  br i1 %3, label %4, label %28, !dbg !10\n\n4:                                                ; preds = %2, %4\n  %5 = phi i32 [ 0, %2 ], [ %26, %4 ]\n")
		for k := range 20 {
			fmt.Fprintf(&b, "  %%%d = add nsw i32 %%%d, %d, !dbg !%d\n", 6+k, 5+k, k, 11*i+k%11)
		}
		fmt.Fprintf(&b, "  %%26 = call i32 @g%d(ptr noundef nonnull dereferenceable(1) @.str.%d, i32 noundef %%25) #1, !dbg !%d\n", i, i, 11*i)
		b.WriteString("  %27 = icmp eq i32 %26, %1\n  br i1 %27, label %28, label %4, !llvm.loop !5\n\n28:                                               ; preds = %4, %2\n  ret i32 0, !dbg !3\n}\n\n")
		fmt.Fprintf(&b, "declare i32 @g%d(ptr noundef, i32 noundef) local_unnamed_addr #2\n", i)
	}
	b.WriteString("\ndeclare void @llvm.dbg.value(metadata, metadata, metadata) #3\n\nattributes #0 = { nounwind uwtable \"frame-pointer\"=\"none\" \"target-cpu\"=\"x86-64\" }\nattributes #1 = { nounwind }\nattributes #2 = { \"frame-pointer\"=\"none\" }\nattributes #3 = { nounwind readnone }\n\n")
	for i := range 11 * n {
		fmt.Fprintf(&b, "!%d = !DILocalVariable(name: \"v%d\", scope: !%d, file: !1, line: %d, type: !12)\n", i, i, i/11*11, i)
	}
	return b.String()
}

// oneFunction returns a module with one function and without metadata.
func oneFunction(lines int) string {
	var b strings.Builder
	b.WriteString("define i32 @f(i32 %0) {\n")
	for i := range lines {
		fmt.Fprintf(&b, "  %%%d = add nsw i32 %%%d, %d\n", i+2, i*2/3, i%100)
	}
	fmt.Fprintf(&b, "  ret i32 %%%d\n}\n", lines+1)
	return strings.Replace(b.String(), "%1,", "%0,", -1)
}

// BenchmarkOneBodyOf100000Lines measures the time and memory to parse a module of 100,000 lines and the body of its first function.
func BenchmarkOneBodyOf100000Lines(b *testing.B) {
	for name, src := range map[string]string{"many functions": manyFunctions(100_000), "one function": oneFunction(100_000)} {
		text := []byte(src)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				m, err := Parse("big.ll", text)
				require.NoError(b, err)
				_, err = m.Funcs[0].Body()
				require.NoError(b, err)
			}
		})
	}
}
