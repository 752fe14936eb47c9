package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// floatSites are functions whose results depend on the floating-point environment; in the last one, a call changes that environment.
const floatSites = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @change(i64)
define double @product(double %a, double %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, double %a, double %b)
  %r = fmul double %a, %b
  ret double %r
}
define double @attributed(double %a, double %b) "denormal-fp-math"="preserve-sign,preserve-sign" {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, double %a, double %b)
  %r = fmul double %a, %b
  ret double %r
}
define double @quotient(double %a, double %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 8, double %a, double %b)
  %r = fdiv double %a, %b
  ret double %r
}
define i64 @long(i64 %a, i64 %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 8, i64 %a, i64 %b)
  %x = sitofp i64 %a to x86_fp80
  %y = sitofp i64 %b to x86_fp80
  %q = fdiv x86_fp80 %x, %y
  %c = bitcast x86_fp80 %q to i80
  %t = trunc i80 %c to i64
  ret i64 %t
}
define double @changed(double %a, double %b, i64 %mode) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 8, double %a, double %b, i64 %mode)
  call void @change(i64 %mode)
  %r = fdiv double %a, %b
  ret double %r
}
`

const floatHost = `
#include <fenv.h>
#include <stdio.h>
double product(double, double), attributed(double, double), quotient(double, double), changed(double, double, long);
long long_(long, long) __asm__("long");
volatile double tiny = 1e-300, small = 1e-15, one = 1, three = 3;
void change(long mode) { fesetround(mode); }
int main(void) {
  unsigned short control = 0x27f;
  __asm__ volatile("fldcw %0" : : "m"(control));
  double sum = product(tiny, small) + attributed(tiny, small);
  for (int mode = 0; mode <= 0xc00; mode += 0x400) {
    fesetround(mode);
    sum += quotient(one, three) + quotient(-one, three) + long_(1, 3);
  }
  fesetround(FE_TONEAREST);
  sum += changed(one, three, FE_TONEAREST) + changed(one, three, FE_UPWARD);
  return sum == 0;
}`

// TestVerifyInTheThreadsFloatEnvironment requires that the interpreter uses the floating-point environment of the thread, with and without the
// start-up code of -ffast-math. Exits with other rounding directions, with x87 of 53 bits, or with changes by native code during the run must not be
// comparable.
func TestVerifyInTheThreadsFloatEnvironment(t *testing.T) {
	dir := t.TempDir()
	host := filepath.Join(dir, "host.c")
	require.NoError(t, os.WriteFile(host, []byte(floatHost), 0o600))
	module := livetest.Module(t, floatSites)
	m, err := ir.ParseFile(module)
	require.NoError(t, err)
	refused := func(line int, instr, kind, environment, more string) string {
		function, value := "quotient", "r"
		if kind != "double" {
			function, value = "long", "x"
		}
		return fmt.Sprintf("the interpreter cannot run it: @%s, block %%0, line %d: %%%s = %s: arithmetic on %s in the floating-point environment of the thread (%s) is not supported",
			function, line, value, instr, kind, environment+more)
	}
	for flag, versions := range map[string][]int{"-fno-fast-math": {19}, "-ffast-math": {14, 19, 22}} {
		flushing := ""
		if flag == "-ffast-math" {
			flushing = ", subnormal operands and results are zero"
		}
		for _, version := range versions {
			program := filepath.Join(dir, "program"+flag)
			args := []string{"-O2"}
			if version == 14 {
				args = append(args, "-opaque-pointers")
			}
			livetest.Make(t, livetest.Tool(t, "gcc"), "-O1", "-w", flag, host, livetest.PICObject(t, version, module, args...), "-lm", "-o", program)
			summary, list := verified(t, []string{program}, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
			require.Equal(t, map[string][]string{
				"product": {Same}, "attributed": {Same},
				"quotient": {Same, refused(17, "fdiv double", "double", "rounding downward", flushing), refused(17, "fdiv double", "double", "rounding toward zero", flushing),
					refused(17, "fdiv double", "double", "rounding upward", flushing)},
				"long": {refused(22, "sitofp x86_fp80", "x86_fp80", "x87: precision of 53 bits", ""),
					refused(22, "sitofp x86_fp80", "x86_fp80", "x87: rounding downward, precision of 53 bits", ""),
					refused(22, "sitofp x86_fp80", "x86_fp80", "x87: rounding toward zero, precision of 53 bits", ""),
					refused(22, "sitofp x86_fp80", "x86_fp80", "x87: rounding upward, precision of 53 bits", "")},
				"changed": {"@change changed the floating-point environment, which the interpreter cannot follow", Same},
			}, outcomes(list), "%s %d", flag, version)
			require.EqualValues(t, 1+1+2+1, summary.Same)
		}
	}
}
