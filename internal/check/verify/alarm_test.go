package verify

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// severalRight is a program with functions for which native code and the interpreter may compute different right numbers, and with similar functions
// for which a difference is an error.
const severalRight = `
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
struct big { long a[6]; };
long glob[16];
double gd[4];
jmp_buf env;

// LLVM's own memcmp returns -1 and 1, that of the C library the difference of two bytes.
int func_1(const char *a, const char *b) { glob[0]++; return memcmp(a, b, 4); }
int func_2(const char *a, const char *b) { glob[0]++; return memcmp(a, b, 4) < 0; }
// The number of comparisons of qsort is unspecified.
int func_3(const void *a, const void *b) { glob[1]++; return *(const int *)a - *(const int *)b; }
int func_4(int n) { int a[10]; for (int i = 0; i < 10; i++) a[i] = (i * 7 + n) % 10; qsort(a, 10, sizeof *a, func_3); return a[0]; }
// Either zero may be the smaller one.
void func_5(double a, double b) { gd[0] = fmin(a, b); gd[1] = fmin(b, a); }
// The main thread's stack is mapped when it is touched.
long func_6(int n) {
  char big[1 << 20];
  glob[2]++;
  for (int i = 0; i < 1 << 20; i += 4096) big[i] = n;
  return big[n << 12];
}
// The last digit of a square root is defined, that of a cube root is not.
double func_7(double x) { glob[3]++; return sqrt(x) + 1.25; }
double func_8(double x) { glob[3]++; return cbrt(x) + 1.375; }
// The result of the call is in a vector register.
double func_9(double x) { double r = func_7(x) * 2; gd[2] = r; return r; }
// Arguments and results in memory, a stack that is realigned or of run-time size, a tail call, a frame that longjmp leaves.
struct big func_10(struct big b, int k) { struct big r; for (int i = 0; i < 6; i++) { b.a[i] += k; r.a[5 - i] = b.a[i] * 2; } return r; }
long func_11(int n) { _Alignas(64) long p[16]; for (int i = 0; i < 16; i++) p[i] = i * n; long s = 0; for (int i = 0; i < 16; i++) s += p[i * 7 & 15] * i; return s; }
long func_12(int n) { long *p = __builtin_alloca(n * 8); for (int i = 0; i < n; i++) p[i] = i * i; glob[4] = p[n - 1]; return p[n / 2]; }
int func_13(int a, int b, int c, int d, int e, int f, int g, int h) { g += a * h; h = b; return g + h; }
int func_14(int a, int b, int c, int d, int e, int f, int g, int h) { glob[5]++; return func_13(b, a, c, d, e, f, h, g); }
void func_15(int n) { glob[6] = n; if (n > 1) longjmp(env, 1); }

int main(int argc, char **argv) {
  for (int i = 0; i < 3; i++) {
    char x[] = "abcd", y[] = "abXd";
    struct big b = {{1, 2, 3, 4, 5, 6}};
    func_1(x, y); func_2(x, y); func_4(i); func_5(0.0, -0.0); func_6(i); func_8(i + 2); func_9(i);
    func_10(b, i); func_11(i); func_12(i + 3); func_14(1, 2, 3, 4, 5, 6, 7, i);
    if (!setjmp(env)) func_15(i);
  }
  return 0;
}
`

// outcomes lists the outcomes of the exits of each function: the status, or the reason why an exit is not comparable.
func outcomes(list []*Verified) map[string][]string {
	all := map[string]map[string]bool{}
	for _, v := range list {
		of := all[v.Exit.Frame.Function]
		if of == nil {
			of = map[string]bool{}
			all[v.Exit.Frame.Function] = of
		}
		if v.Status == NotComparable {
			of[v.Why] = true
		} else {
			of[v.Status] = true
		}
	}
	sorted := map[string][]string{}
	for name, of := range all {
		sorted[name] = slices.Sorted(maps.Keys(of))
	}
	return sorted
}

func TestVerifyWhereSeveralAreRight(t *testing.T) {
	livetest.Slow(t)
	source := filepath.Join(t.TempDir(), "several.c")
	require.NoError(t, os.WriteFile(source, []byte(severalRight), 0o600))
	program, m := frametest.Compiled(0, 19, "-O1", 19).WithSites(t, source, "-O2")
	same := []string{Same}
	want := map[string][]string{
		"func_1":  {"it calls @memcmp, of whose result only the sign is specified, and uses the number"},
		"func_2":  same,
		"func_3":  same,
		"func_4":  {"it calls @qsort, whose order of comparisons is unspecified", Same}, // Same: at exits after the call
		"func_5":  {"it calls @llvm.minnum, which may return 0.0 or -0.0"},
		"func_6":  {"its function has a part of the stack that the process has not touched yet", Same},
		"func_7":  same,
		"func_8":  same,
		"func_9":  same,
		"func_10": same, "func_11": same, "func_12": same, "func_13": same, "func_14": same,
		"func_15": {"it calls @longjmp, whose effects cannot be compared", Same},
	}
	_, list := verified(t, program, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	got := outcomes(list)
	delete(got, "csmith_main") // csmith_main calls all other functions
	require.Equal(t, want, got)

	// Now the interpreter's module has other numbers than the compiled one.
	text, err := os.ReadFile(filepath.Join(filepath.Dir(source), "p.ll"))
	require.NoError(t, err)
	other := strings.NewReplacer("1.250000e+00", "1.500000e+00", "1.375000e+00", "1.500000e+00").Replace(string(text))
	m, err = ir.Parse("other.ll", []byte(other))
	require.NoError(t, err)
	_, list = verified(t, program, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	got = outcomes(list)
	require.Equal(t, []string{Different}, got["func_7"])
	require.Equal(t, []string{Different, Same}, got["func_9"]) // after func_7 has returned, its result is read from the process
	require.Equal(t, []string{"it calls @cbrt, whose last digit may differ"}, got["func_8"])
	require.Equal(t, same, got["func_2"])
}

// TestVerifyStoresOfWhatIsThere requires that a store by the interpreter counts even if memory already had the stored bytes, and native code called
// the C library.
func TestVerifyStoresOfWhatIsThere(t *testing.T) {
	source := filepath.Join(t.TempDir(), "there.c")
	require.NoError(t, os.WriteFile(source, []byte(`
#include <string.h>
long data[8], sum;
void func_1(const char *s, int n) { long *p = &data[n]; sum += strlen(s); *p = 54321; }
int main(int argc, char **argv) {
  for (int i = 0; i < 4; i++) func_1(argv[0], i);
  return sum == 0;
}`), 0o600))
	program, m := frametest.Compiled(0, 19, "-O1", 19).WithSites(t, source, "-O2")
	_, list := verified(t, program, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Equal(t, []string{Same}, outcomes(list)["func_1"])
	require.True(t, slices.ContainsFunc(list, func(v *Verified) bool { return !v.NativeOnly }), "native code calls strlen")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(source), "p.ll"))
	require.NoError(t, err)
	m, err = ir.Parse("other.ll", []byte(strings.ReplaceAll(string(text), "i64 54321", "i64 0")))
	require.NoError(t, err)
	_, list = verified(t, program, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Equal(t, []string{Different}, outcomes(list)["func_1"])
}

// TestVerifyStatepointToBePatched requires that a statepoint with patch bytes makes no call, in native code and in the interpreter.
func TestVerifyStatepointToBePatched(t *testing.T) {
	path := livetest.Module(t, `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@calls = global i64 0
define void @count() noinline {
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  ret void
}
define i64 @entry(i64 %s) {
  %x = add i64 %s, 5
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  call void @count() "statepoint-id"="9" "statepoint-num-patch-bytes"="8" [ "deopt"(i64 %x) ]
  %n = load i64, ptr @calls
  %y = add i64 %x, %n
  ret i64 %y
}`)
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	for _, version := range []int{16, 19, 22} {
		command := livetest.ObjectHostCommand(t, livetest.PICObject(t, version, path), livetest.ObjectHostOptions{})
		summary, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
		require.EqualValues(t, 2, summary.Same)
		require.Equal(t, map[string][]string{"entry": {Same}}, outcomes(list))
	}
}

// patcher calls @entry before and after it has written a call of @count over the nops of its statepoint: callq and a nop of 3 bytes.
const patcher = `
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
long entry(long);
void count(void);
int main(void) {
  static const unsigned char nops[4] = {0x0f, 0x1f, 0x84, 0};
  unsigned char *at = (unsigned char *)entry, code[8] = {0xe8, 0, 0, 0, 0, 0x0f, 0x1f, 0};
  long sum = entry(1) + entry(2);
  while (memcmp(at, nops, 4)) at++;
  int32_t far = (int32_t)((unsigned char *)count - (at + 5));
  memcpy(code + 1, &far, 4);
  uintptr_t page = (uintptr_t)at & -4096ul;
  if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return 2;
  memcpy(at, code, 8);
  return sum + entry(3) + entry(4) == 0;
}
`

// TestVerifyPatchedStatepoint requires no difference for the changes of a call that was written over the nops of a statepoint, because the
// interpreter does not know that call. Without a patch, such changes must be a difference.
func TestVerifyPatchedStatepoint(t *testing.T) {
	dir := t.TempDir()
	text := `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@calls = global i64 0
define void @count() noinline {
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  ret void
}
define i64 @entry(i64 %s) {
  %x = add i64 %s, 5
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  call void @count() "statepoint-id"="9" "statepoint-num-patch-bytes"="8" [ "deopt"(i64 %x) ]
  %n = load i64, ptr @calls
  %y = add i64 %x, %n
  ret i64 %y
}`
	ll, c := filepath.Join(dir, "p.ll"), filepath.Join(dir, "main.c")
	require.NoError(t, os.WriteFile(ll, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(c, []byte(patcher), 0o600))
	m, err := ir.ParseFile(ll)
	require.NoError(t, err)
	other, err := ir.Parse("other.ll", []byte(strings.Replace(text, "%y = add i64 %x, %n", "%y = sub i64 %x, %n", 1)))
	require.NoError(t, err)
	wrong, err := ir.Parse("wrong.ll", []byte(strings.Replace(text, "%y = add i64 %x, %n", "%y = xor i64 %x, -1", 1)))
	require.NoError(t, err)
	for _, version := range []int{16, 19, 22} {
		object, program := filepath.Join(dir, "p.o"), filepath.Join(dir, "p")
		frametest.Command(t, dir, livetest.LLVM(t, version, "llc"), "-filetype=obj", "-relocation-model=pic", "-o", object, ll)
		frametest.Command(t, dir, livetest.Tool(t, "gcc"), object, c, "-o", program)
		const patched = "the nops of the statepoint of record 9 of @entry were patched: 7 of 8 bytes differ from the compiled ones, and the module does not describe their effect"
		only := trace.ExitFilter{Records: []uint64{1}}
		summary, list := verified(t, []string{program}, Options{Options: deopt.Options{Modules: []*ir.Module{m}}, ExitFilter: only})
		require.Equal(t, map[string][]string{"entry": {Same, patched}}, outcomes(list), "LLVM %d", version)
		require.Equal(t, map[string]uint64{patched: 2}, summary.Reasons, "LLVM %d", version)
		// Without a call before the exit, the operand is 0, so a sum and a difference are equal.
		_, list = verified(t, []string{program}, Options{Options: deopt.Options{Modules: []*ir.Module{other}}, ExitFilter: only})
		require.Equal(t, map[string][]string{"entry": {Same, patched}}, outcomes(list), "LLVM %d", version)
		_, list = verified(t, []string{program}, Options{Options: deopt.Options{Modules: []*ir.Module{wrong}}, ExitFilter: only})
		require.Equal(t, map[string][]string{"entry": {Different, patched}}, outcomes(list), "LLVM %d", version)
	}
}

// coroutine runs func_1 on a stack in the heap. func_1 stores to heap memory below that stack.
const coroutine = `
#include <stdlib.h>
#include <ucontext.h>
long *data, count;
ucontext_t host, guest;
void func_1(int n) { count++; data[n] = n * 12345; }
void guest_main(void) { for (int i = 1; i < 4; i++) func_1(i); }
int main(int argc, char **argv) {
  data = malloc(4096);
  getcontext(&guest);
  guest.uc_stack.ss_size = 1 << 16;
  guest.uc_stack.ss_sp = malloc(1 << 16);
  guest.uc_link = &host;
  makecontext(&guest, guest_main, 0);
  return swapcontext(&host, &guest);
}
`

// TestVerifyCoroutine requires that stores to memory below the stack of a coroutine are compared, and not treated as stores to a stack.
func TestVerifyCoroutine(t *testing.T) {
	source := filepath.Join(t.TempDir(), "coroutine.c")
	require.NoError(t, os.WriteFile(source, []byte(coroutine), 0o600))
	program, m := frametest.Compiled(0, 19, "-O1", 19).WithSites(t, source, "-O2")
	_, list := verified(t, program, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Equal(t, []string{Same}, outcomes(list)["func_1"])
	text, err := os.ReadFile(filepath.Join(filepath.Dir(source), "p.ll"))
	require.NoError(t, err)
	m, err = ir.Parse("other.ll", []byte(strings.Replace(string(text), "12345", "12346", 1)))
	require.NoError(t, err)
	_, list = verified(t, program, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
	require.Equal(t, []string{Different}, outcomes(list)["func_1"])
}
