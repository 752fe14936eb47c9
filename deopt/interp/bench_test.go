package interp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
)

// BenchmarkLoop runs a loop that sums squares, with seven instructions per iteration.
func BenchmarkLoop(b *testing.B) {
	m := parse(b, sumOfSquares)
	in, err := interp.New(m, interp.Options{MaxSteps: 1 << 62})
	require.NoError(b, err)
	var steps uint64
	for b.Loop() {
		res, err := in.Call(context.Background(), m.Func("sum"), []interp.Value{i64(1_000_000)})
		require.NoError(b, err)
		steps += res.Steps
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds()/1e6, "Minstr/s")
}

// measured lists instructions that current clang often emits. The benchmark of each runs a loop that contains twenty copies of the instruction.
var measured = []struct{ name, declared, instr string }{
	{"add nsw", "", "add nsw i32 %x, 7"},
	{"mul", "", "mul i64 %w, 7"},
	{"sdiv", "", "sdiv i32 %x, 7"},
	{"sdiv exact", "", "sdiv exact i64 %w, 8"},
	{"ashr exact", "", "ashr exact i64 %w, 3"},
	{"or disjoint", "", "or disjoint i64 %w, 1"},
	{"trunc", "", "trunc i64 %w to i32"},
	{"trunc nuw", "", "trunc nuw i64 %w to i32"},
	{"trunc nsw", "", "trunc nsw i64 %w to i32"},
	{"trunc nuw nsw", "", "trunc nuw nsw i64 %w to i32"},
	{"zext nneg", "", "zext nneg i32 %x to i64"},
	{"icmp", "", "icmp ult i32 %x, 9"},
	{"icmp samesign", "", "icmp samesign ult i32 %x, 9"},
	{"getelementptr inbounds", "", "getelementptr inbounds i32, ptr %p, i64 %i"},
	{"getelementptr inbounds nuw", "", "getelementptr inbounds nuw i32, ptr %p, i64 %i"},
	{"load", "", "load i32, ptr %p"},
	{"extractvalue", "", "extractvalue { i64, i1 } { i64 1, i1 false }, 0"},
	{"sitofp double", "", "sitofp i32 %x to double"},
	{"sitofp float", "", "sitofp i32 %x to float"},
	{"uitofp double", "", "uitofp i64 %w to double"},
	{"uitofp float", "", "uitofp i64 %w to float"},
	{"fptosi double", "", "fptosi double %d to i32"},
	{"fptosi float", "", "fptosi float %f to i32"},
	{"fptoui double", "", "fptoui double %d to i64"},
	{"fptoui float", "", "fptoui float %f to i32"},
	{"fptrunc", "", "fptrunc double %d to float"},
	{"fadd", "", "fadd double %d, 1.0"},
	{"fneg", "", "fneg double %d"},
	{"fmuladd", "declare double @llvm.fmuladd.f64(double, double, double)", "call double @llvm.fmuladd.f64(double %d, double %d, double %d)"},
	{"fma", "declare double @llvm.fma.f64(double, double, double)", "call double @llvm.fma.f64(double %d, double %d, double %d)"},
	{"sqrt", "declare double @llvm.sqrt.f64(double)", "call double @llvm.sqrt.f64(double %d)"},
	{"minnum", "declare double @llvm.minnum.f64(double, double)", "call double @llvm.minnum.f64(double %d, double 2.0)"},
	{"fabs", "declare float @llvm.fabs.f32(float)", "call float @llvm.fabs.f32(float %f)"},
	{"smax", "declare i32 @llvm.smax.i32(i32, i32)", "call i32 @llvm.smax.i32(i32 %x, i32 5)"},
	{"umin", "declare i64 @llvm.umin.i64(i64, i64)", "call i64 @llvm.umin.i64(i64 %w, i64 5)"},
	{"abs", "declare i32 @llvm.abs.i32(i32, i1)", "call i32 @llvm.abs.i32(i32 %x, i1 true)"},
	{"fshl", "declare i32 @llvm.fshl.i32(i32, i32, i32)", "call i32 @llvm.fshl.i32(i32 %x, i32 %x, i32 7)"},
	{"usub.sat", "declare i32 @llvm.usub.sat.i32(i32, i32)", "call i32 @llvm.usub.sat.i32(i32 %x, i32 7)"},
	{"ctpop", "declare i64 @llvm.ctpop.i64(i64)", "call i64 @llvm.ctpop.i64(i64 %w)"},
	{"cttz", "declare i64 @llvm.cttz.i64(i64, i1)", "call i64 @llvm.cttz.i64(i64 %w, i1 false)"},
	{"bswap", "declare i32 @llvm.bswap.i32(i32)", "call i32 @llvm.bswap.i32(i32 %x)"},
	{"umul.with.overflow", "declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)", "call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %w, i64 3)"},
	{"x86_fp80 fadd", "", "fadd x86_fp80 0xK3FFF8000000000000000, 0xK3FFF8000000000000000"},
	{"<4 x i32> add", "", "add <4 x i32> <i32 1, i32 2, i32 3, i32 4>, <i32 1, i32 2, i32 3, i32 4>"},
	{"<4 x i32> load", "", "load <4 x i32>, ptr %p"},
}

func BenchmarkInstruction(b *testing.B) {
	const copies, turns = 20, 1000
	for _, c := range measured {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			text := ""
			for k := range copies {
				text += fmt.Sprintf("  %%v%d = %s\n", k, c.instr)
			}
			m := parse(b, c.declared+`
@m = global [1000 x i32] zeroinitializer
define void @f(i32 %x, i64 %w, float %f, double %d, ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
`+text+`  %next = add i64 %i, 1
  %more = icmp ult i64 %next, `+fmt.Sprint(turns)+`
  br i1 %more, label %loop, label %end
end:
  ret void
}
define void @main() {
  call void @f(i32 6, i64 24, float 2.5, double 2.5, ptr @m)
  ret void
}
`)
			in, err := interp.New(m, interp.Options{MaxSteps: 1 << 62})
			require.NoError(b, err)
			for b.Loop() {
				_, err := in.Call(context.Background(), m.Func("main"), nil)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/copies/turns, "ns/instr")
		})
	}
}
