package interp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// compiled returns the IR of a C program.
func compiled(t *testing.T, src string) *ir.Module {
	t.Helper()
	dir := t.TempDir()
	file, module := filepath.Join(dir, "test.c"), filepath.Join(dir, "test.ll")
	require.NoError(t, os.WriteFile(file, []byte(src), 0o600))
	clang(t, "19", "-w", "-Wno-implicit-function-declaration", "-O1", "-fno-builtin", "-S", "-emit-llvm", "-o", module, file)
	text, err := os.ReadFile(module)
	require.NoError(t, err)
	m, err := ir.Parse("test.ll", text)
	require.NoError(t, err)
	return m
}

// TestCProgramsThatEndWithAnError checks the errors of the C library that end a run: errors of a program, and missing functions.
func TestCProgramsThatEndWithAnError(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		name, body string
		kind       interp.Kind
		message    string // suffix of the message
		stderr     string
	}{
		{"abort", `abort();`, interp.KindAbort, "the program called abort", ""},
		{"assert", `assert(argc == 7);`, interp.KindAbort, "failed", "prog: F:1: int main(int, char **): Assertion `argc == 7' failed.\n"},
		{"fortified copy", `char b[4]; __memcpy_chk(b, "too long", 9, 4);`, interp.KindAbort, "buffer overflow detected", "*** buffer overflow detected ***: terminated\n"},
		{"fortified format", `char b[4]; __sprintf_chk(b, 1, 4, "%d", 12345);`, interp.KindAbort, "buffer overflow detected", "*** buffer overflow detected ***: terminated\n"},
		{"longjmp into a function that has returned", `static jmp_buf b; late(b); longjmp(b, 1);`, interp.KindFault,
			"longjmp to a setjmp whose function has returned", ""},
		{"longjmp without a setjmp", `static jmp_buf b; longjmp(b, 1);`, interp.KindFault, "which no setjmp has filled", ""},
		{"longjmp through what is not written", `jmp_buf *b = malloc(sizeof *b); longjmp(*b, 1);`, interp.KindUndef, "is undefined", ""},
		{"setjmp that the library calls", `jmp_buf b; qsort(b, 2, 8, (void *)_setjmp);`, interp.KindUnsupported, "call it directly in the function that longjmp returns to", ""},
		{"setjmp without end", `for (;;) { jmp_buf *b = malloc(sizeof *b); setjmp(*b); }`, interp.KindMemory, "", ""},
		{"longjmp without end", `jmp_buf b; setjmp(b); longjmp(b, 1);`, interp.KindSteps, "", ""},
		{"a format for another type", `printf("%s", 1);`, interp.KindModule, "%s got a value of type i32", ""},
		{"too few arguments", `printf("%d %d", 1);`, interp.KindModule, "too few arguments in the call of @printf: got 2", ""},
		{"a format that ends", `printf("%-");`, interp.KindModule, "a format that ends inside a conversion", ""},
		{"a conversion that is none", `printf("%k", 1);`, interp.KindUnsupported, "the conversion %k is not supported", ""},
		{"a field of a million", `printf("%1000000d", 1);`, interp.KindUnsupported, "a format with a field of more than 65536 bytes is not supported", ""},
		{"a string without an end", `char *p = malloc(3); memset(p, 'x', 3); printf("%s", p);`, interp.KindFault,
			"0 bytes past the end of the 3 bytes allocated at 0x4000000000000060", ""},
		{"a string that is not written", `char *p = malloc(3); puts(p);`, interp.KindUndef, "the byte at 0x4000000000000060 is undefined", ""},
		{"a stream that is none", `fputs("x", (FILE *)argv);`, interp.KindFault, "which is not stdin, stdout or stderr", ""},
		{"free twice", `char *p = malloc(2); free(p); free(p);`, interp.KindFault, "which malloc did not return, or which was freed before", ""},
		{"free of a stream", `free(stdout);`, interp.KindFault, "which malloc did not return, or which was freed before", ""},
		{"division", `return div(1, argc - 1).quot;`, interp.KindDivision, "@div by zero", ""},
		{"a comparison that is no function", `int a[2] = {1, 2}; qsort(a, 2, 4, (void *)argv);`, interp.KindFault, "which is not a function of the module", ""},
		{"a sort of everything", `qsort(argv, 1UL << 40, 8, (void *)main);`, interp.KindMemory, "", ""},
		{"a sort without end", `int a[3] = {1, 2, 3}; for (;;) qsort(a, 3, 4, (void *)strcmp);`, interp.KindSteps, "", ""},
		{"output without end", `for (;;) printf("%60000d", 1);`, interp.KindMemory, "", ""},
		{"handlers without end", `for (;;) atexit(abort);`, interp.KindMemory, "", ""},
		{"fprintf into a freed buffer", `char *p = malloc(9); free(p); sprintf(p, "x");`, interp.KindFault, "outside of every block of malloc, or in a freed one", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := `#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void late(jmp_buf b) { setjmp(b); }
#line 1 "F"
`
			m := compiled(t, head+"int main(int argc, char **argv) { "+c.body+" return 0; }\n")
			in, err := interp.New(m, interp.Options{MaxSteps: 1e6, MaxMemory: 1 << 20})
			require.NoError(t, err)
			res, err := in.Main(context.Background(), []string{"/path/prog"})
			var run *interp.RunError
			require.ErrorAs(t, err, &run)
			require.Equal(t, c.kind.String(), run.Kind.String(), "%v", err)
			require.True(t, strings.HasSuffix(err.Error(), c.message), "%v", err)
			require.Equal(t, c.stderr, res.Errors)
		})
	}
}

// TestFunctionsOutsideTheLibraryAreRefusedByName requires that a call of a libc or libstdc++ function that is not built in ends the run. The error
// must be that of any other function without IR.
func TestFunctionsOutsideTheLibraryAreRefusedByName(t *testing.T) {
	for _, name := range []string{"regcomp", "getopt_long", "strftime", "localtime", "csqrt", "__muldc3", "fopen", "fdopen", "open", "stat64", "getline", "sscanf", "__isoc99_sscanf",
		"wcslen", "rand", "sem_wait", "getrandom", "pthread_create", "system", "sysconf", "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
		"_ZNSt8__detail15_List_node_base7_M_hookEPS0_", "_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm", "_ZSt11_Hash_bytesPKvmm"} {
		t.Run(name, func(t *testing.T) {
			in, err := interp.New(parse(t, "declare void @"+name+"()\ndefine i32 @main() {\n  call void @"+name+"()\n  ret i32 0\n}\n"), interp.Options{})
			require.NoError(t, err)
			_, err = in.Main(context.Background(), []string{"prog"})
			var run *interp.RunError
			require.ErrorAs(t, err, &run)
			require.Equal(t, interp.KindUnsupported, run.Kind)
			require.Contains(t, err.Error(), "a call of @"+name+" is not supported: it exists only as native code; link the module that defines it (llvm-link)")
			require.True(t, interp.LeftToNative(name))
		})
	}
}

// FuzzFormats requires that printf and the functions that read numbers stay within the limits of the run for arbitrary formats and memory, without
// internal errors.
func FuzzFormats(f *testing.F) {
	for _, format := range []string{"%d", "%*.*Lf%n", "%2$s%1$lld", "%a%A%La", "%ls%lc%hhn", "%-+ #0'I20.5jx", "%[^]a-z]%*5s%i", "%m%p%%", "%4095$d", "%65535d%65536d"} {
		f.Add([]byte(format), []byte("0x1f -7 1e5 nan word"), uint64(3))
	}
	m := parse(f, `declare i32 @printf(ptr, ...)
declare i32 @vprintf(ptr, ptr)
declare double @strtod(ptr, ptr)
declare x86_fp80 @strtold(ptr, ptr)
declare i64 @strtol(ptr, ptr, i32)
define void @print(ptr %f, ptr %m, i64 %n) {
  %d = bitcast i64 %n to double
  %l = fpext double %d to x86_fp80
  %r = call i32 (ptr, ...) @printf(ptr %f, i64 %n, ptr %m, double %d, x86_fp80 %l, ptr %m, i64 %n)
  ret void
}
define void @vprint(ptr %f, ptr %m, i64 %n) {
  %r = call i32 @vprintf(ptr %f, ptr %m)
  ret void
}
define void @number(ptr %f, ptr %m, i64 %n) {
  %d = call double @strtod(ptr %m, ptr null)
  %l = call x86_fp80 @strtold(ptr %m, ptr null)
  %b = trunc i64 %n to i32
  %i = call i64 @strtol(ptr %m, ptr null, i32 %b)
  ret void
}`)
	f.Fuzz(func(t *testing.T, format, memory []byte, n uint64) {
		in, err := interp.New(m, interp.Options{MaxSteps: 20000, MaxMemory: 1 << 20, MaxDepth: 20, Memory: flat{format, memory}})
		require.NoError(t, err)
		for _, name := range []string{"print", "vprint", "number"} {
			_, err := in.Call(context.Background(), m.Func(name),
				[]interp.Value{interp.FromUint(ir.Ptr, formatAt), interp.FromUint(ir.Ptr, memoryAt), interp.FromUint(ir.I64, n)})
			own(t, err)
		}
	})
}

// flat is a target with a format at one address and bytes at another, each followed by a zero byte.
type flat struct{ format, memory []byte }

const formatAt, memoryAt = 0x100000, 0x2000000

func (f flat) ReadMemory(p []byte, addr machine.Addr) error {
	for base, bytes := range map[machine.Addr][]byte{formatAt: f.format, memoryAt: f.memory} {
		if k := uint64(addr - base); k <= uint64(len(bytes)) && uint64(len(p)) <= uint64(len(bytes))+1-k {
			clear(p[copy(p, bytes[k:]):])
			return nil
		}
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not there"}
}
