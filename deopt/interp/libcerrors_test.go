package interp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
	"reframe/internal/livetest"
)

// compiled is the IR of a C program.
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

// TestCProgramsThatEndWithAnError requires the errors that end a run in the C library: errors of a program, and functions that are missing.
func TestCProgramsThatEndWithAnError(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		name, body string
		kind       interp.Kind
		message    string // the end of it
		stderr     string
	}{
		{"abort", `abort();`, interp.KindAbort, "the program called abort", ""},
		{"assert", `assert(argc == 7);`, interp.KindAbort, "failed", "prog: F:1: int main(int, char **): Assertion `argc == 7' failed.\n"},
		{"fortified copy", `char b[4]; __memcpy_chk(b, "too long", 9, 4);`, interp.KindAbort, "buffer overflow detected", "*** buffer overflow detected ***: terminated\n"},
		{"fortified format", `char b[4]; __sprintf_chk(b, 1, 4, "%d", 12345);`, interp.KindAbort, "buffer overflow detected", "*** buffer overflow detected ***: terminated\n"},
		{"longjmp into a function that has returned", `static jmp_buf b; late(b); longjmp(b, 1);`, interp.KindFault,
			"longjmp to a setjmp whose function has returned", ""},
		{"longjmp without a setjmp", `static jmp_buf b; longjmp(b, 1);`, interp.KindFault, "where no setjmp has left anything", ""},
		{"longjmp through what is not written", `jmp_buf *b = malloc(sizeof *b); longjmp(*b, 1);`, interp.KindUndef, "is undefined", ""},
		{"setjmp that the library calls", `jmp_buf b; qsort(b, 2, 8, (void *)_setjmp);`, interp.KindUnsupported, "call it in the function that is to be gone on in", ""},
		{"setjmp without end", `for (;;) { jmp_buf *b = malloc(sizeof *b); setjmp(*b); }`, interp.KindMemory, "", ""},
		{"longjmp without end", `jmp_buf b; setjmp(b); longjmp(b, 1);`, interp.KindSteps, "", ""},
		{"fopen", `fopen("f", "r");`, interp.KindUnsupported, "a call of @fopen is not supported: give the input on standard input, or the files in Options.Files", ""},
		{"thread", `pthread_create(0, 0, 0, 0);`, interp.KindUnsupported,
			"a call of @pthread_create is not supported: there is one thread; define the function in the module if one is enough", ""},
		{"system", `system("ls");`, interp.KindUnsupported,
			"a call of @system is not supported: a run never reaches the system; define the function in the module", ""},
		{"a format for another type", `printf("%s", 1);`, interp.KindModule, "%s is given a value of type i32", ""},
		{"too few arguments", `printf("%d %d", 1);`, interp.KindModule, "@printf is called with 2 arguments, too few", ""},
		{"a format that ends", `printf("%-");`, interp.KindModule, "a format that ends inside of a conversion", ""},
		{"a conversion that is none", `printf("%k", 1);`, interp.KindUnsupported, "the conversion %k is not supported", ""},
		{"a field of a million", `printf("%1000000d", 1);`, interp.KindUnsupported, "a format with a field of more than 65536 bytes is not supported", ""},
		{"a string without an end", `char *p = malloc(3); memset(p, 'x', 3); printf("%s", p);`, interp.KindFault,
			"0 bytes past the end of the 3 bytes allocated at 0x4000000000000060", ""},
		{"a string that is not written", `char *p = malloc(3); puts(p);`, interp.KindUndef, "the byte at 0x4000000000000060 is undefined", ""},
		{"a stream that is none", `fputs("x", (FILE *)argv);`, interp.KindFault, "which is none of stdin, stdout and stderr", ""},
		{"scanf into a string that is too small", `char *p = malloc(2); sscanf("three", "%s", p);`, interp.KindFault, "outside of what malloc gave, or freed", ""},
		{"free twice", `char *p = malloc(2); free(p); free(p);`, interp.KindFault, "which malloc did not return, or which was freed before", ""},
		{"free of a stream", `free(stdout);`, interp.KindFault, "which malloc did not return, or which was freed before", ""},
		{"division", `return div(1, argc - 1).quot;`, interp.KindDivision, "@div by zero", ""},
		{"a comparison that is no function", `int a[2] = {1, 2}; qsort(a, 2, 4, (void *)argv);`, interp.KindFault, "where no function of the module is", ""},
		{"a sort of everything", `qsort(argv, 1UL << 40, 8, (void *)main);`, interp.KindMemory, "", ""},
		{"a sort without end", `int a[3] = {1, 2, 3}; for (;;) qsort(a, 3, 4, (void *)strcmp);`, interp.KindSteps, "", ""},
		{"output without end", `for (;;) printf("%60000d", 1);`, interp.KindMemory, "", ""},
		{"handlers without end", `for (;;) atexit(abort);`, interp.KindMemory, "", ""},
		{"fprintf into a freed buffer", `char *p = malloc(9); free(p); sprintf(p, "x");`, interp.KindFault, "outside of what malloc gave, or freed", ""},
		{"a back reference", `regex_t r; regcomp(&r, "\\(a\\)\\1", 0);`, interp.KindUnsupported, "@regcomp of a regular expression with a back reference is not supported", ""},
		{"an expression that is too large", `regex_t r; regcomp(&r, "((a{999}){999}){999}", 1);`, interp.KindUnsupported,
			"@regcomp of a regular expression that needs more than 65536 nodes is not supported", ""},
		{"a match that glibc does not find the end of", `regex_t r; regmatch_t m[2]; regcomp(&r, "(^.|)+a", 1); regexec(&r, "bBaac", 2, m, 0);`, interp.KindUnsupported,
			"@regexec of a match in which glibc goes round in a circle is not supported", ""},
		{"regexec without regcomp", `static regex_t r; regexec(&r, "", 0, 0, 0);`, interp.KindFault, "@regexec of a regex_t that holds nothing that regcomp compiled", ""},
		{"regexec of what is not written", `regex_t *r = malloc(sizeof *r); regexec(r, "", 0, 0, 0);`, interp.KindUndef, "is undefined", ""},
		{"regfree of a copy too", `regex_t r, s; regcomp(&r, "a", 0); s = r; regfree(&r); regfree(&s);`, interp.KindFault, "that holds nothing that regcomp compiled", ""},
		{"spans past their array", `regex_t r; regmatch_t *m = malloc(8); regcomp(&r, "a", 0); regexec(&r, "a", -1UL, m, 0);`, interp.KindFault,
			"0 bytes past the end of the 8 bytes allocated at 0x4000000000000060", ""},
		{"expressions without end", `regex_t r; for (;;) regcomp(&r, "a", 0);`, interp.KindMemory, "", ""},
		{"matches without end", `regex_t r; regcomp(&r, "a*b", 0); for (;;) regexec(&r, "aaaaaaaaaaaaaaa", 0, 0, 0);`, interp.KindSteps, "", ""},
		{"a match of a million places", `static char t[99999]; regex_t r; memset(t, 'a', 99998); regcomp(&r, "(a|a?)*b", 1); regexec(&r, t, 0, 0, 0);`, interp.KindSteps, "", ""},
		{"groups of a long match", `static char t[99999]; regmatch_t m[2]; regex_t r; memset(t, 'a', 99998); regcomp(&r, "(a|a?)*", 1); regexec(&r, t, 2, m, 0);`, interp.KindMemory, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := `#include <assert.h>
#include <pthread.h>
#include <regex.h>
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

// FuzzFormats requires that printf and scanf with arbitrary formats and memory end within the limits of the run, and never by an error of the
// interpreter itself.
func FuzzFormats(f *testing.F) {
	for _, format := range []string{"%d", "%*.*Lf%n", "%2$s%1$lld", "%a%A%La", "%ls%lc%hhn", "%-+ #0'I20.5jx", "%[^]a-z]%*5s%i", "%m%p%%", "%4095$d", "%65535d%65536d"} {
		f.Add([]byte(format), []byte("0x1f -7 1e5 nan word"), uint64(3))
	}
	m := parse(f, `declare i32 @printf(ptr, ...)
declare i32 @sscanf(ptr, ptr, ...)
declare i32 @vprintf(ptr, ptr)
declare i32 @vsscanf(ptr, ptr, ptr)
declare double @strtod(ptr, ptr)
declare x86_fp80 @strtold(ptr, ptr)
declare i64 @strtol(ptr, ptr, i32)
define void @print(ptr %f, ptr %m, i64 %n) {
  %d = bitcast i64 %n to double
  %l = fpext double %d to x86_fp80
  %r = call i32 (ptr, ...) @printf(ptr %f, i64 %n, ptr %m, double %d, x86_fp80 %l, ptr %m, i64 %n)
  ret void
}
define void @scan(ptr %f, ptr %m, i64 %n) {
  %r = call i32 (ptr, ptr, ...) @sscanf(ptr %m, ptr %f, ptr %m, ptr %f, ptr %m, ptr %m)
  ret void
}
define void @vprint(ptr %f, ptr %m, i64 %n) {
  %r = call i32 @vprintf(ptr %f, ptr %m)
  ret void
}
define void @vscan(ptr %f, ptr %m, i64 %n) {
  %r = call i32 @vsscanf(ptr %m, ptr %f, ptr %m)
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
		for _, name := range []string{"print", "scan", "vprint", "vscan", "number"} {
			_, err := in.Call(context.Background(), m.Func(name),
				[]interp.Value{interp.FromUint(ir.Ptr, formatAt), interp.FromUint(ir.Ptr, memoryAt), interp.FromUint(ir.I64, n)})
			own(t, err)
		}
	})
}

// flat is a target with a format at one address and bytes at another, each followed by a zero.
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
