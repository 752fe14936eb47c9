package stress

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// TestStressInTheThreadsFloatEnvironment requires that committed results are computed in the floating-point environment of the thread, with and
// without the start-up code of -ffast-math. If the thread does not round to nearest, nothing may be committed.
func TestStressInTheThreadsFloatEnvironment(t *testing.T) {
	const (
		code = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define double @product(double %a, double %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, double %a, double %b)
  %r = fmul double %a, %b
  ret double %r
}
define double @quotient(double %a, double %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, double %a, double %b)
  %r = fdiv double %a, %b
  ret double %r
}
`
		host = `#include <fenv.h>
#include <stdio.h>
double product(double, double), quotient(double, double);
volatile double tiny = 1e-300, small = 1e-15, one = 1, three = 3;
int main(void) {
  printf("%a\n", product(tiny, small));
  for (int mode = 0; mode <= 0xc00; mode += 0x400) {
    fesetround(mode);
    double q = quotient(one, three);
    fesetround(FE_TONEAREST);
    printf("%a\n", q);
  }
}
`
	)
	dir := t.TempDir()
	source := filepath.Join(dir, "host.c")
	require.NoError(t, os.WriteFile(source, []byte(host), 0o600))
	module := livetest.Module(t, code)
	m, err := ir.ParseFile(module)
	require.NoError(t, err)
	for _, flag := range []string{"-fno-fast-math", "-ffast-math"} {
		program := filepath.Join(dir, "program"+flag)
		livetest.Make(t, livetest.Tool(t, "gcc"), "-O1", "-w", flag, source, livetest.PICObject(t, 19, module, "-O2"), "-lm", "-o", program)
		r := run(t, []string{program}, Options{Options: deopt.Options{Modules: []*ir.Module{m}}, Seed: 1, Probability: 1})
		require.Equal(t, Same, r.Status, "%s: %+v", flag, r)
		require.EqualValues(t, 2, r.Committed, flag)
	}
}
