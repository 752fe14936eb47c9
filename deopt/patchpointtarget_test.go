package deopt_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// patchpointHost puts code at the address that the patchpoint calls: a jump to a function that waits.
const patchpointHost = `
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
long work(long);
static long waits(void) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
int main(void) {
  unsigned char code[12] = {0x48, 0xb8, [10] = 0xff, 0xe0};
  long (*to)(void) = waits;
  char *page = mmap((void *)0x60000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  memcpy(code + 2, &to, sizeof to);
  memcpy(page, code, sizeof code);
  printf("%ld\n", work(100));
}
`

// TestPatchpointToAnAddress requires the values of a patchpoint whose target is an address without a symbol, and which has no arguments. Its
// live-outs are not operands, so they must not become slots.
func TestPatchpointToAnAddress(t *testing.T) {
	const text = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
define i64 @work(i64 %a) noinline {
  %x = mul i64 %a, 3
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 9, i32 16, ptr inttoptr (i64 1610612736 to ptr), i32 0, i64 %x, i64 77)
  %s = add i64 %r, %x
  ret i64 %s
}
`
	host := filepath.Join(t.TempDir(), "host.c")
	require.NoError(t, os.WriteFile(host, []byte(patchpointHost), 0o600))
	module := frametest.ReadModule(t, "target.ll", text)
	for _, version := range []int{14, 19, 22} {
		object := livetest.Object(t, version, program(t, text), "-relocation-model=pic", "-O2")
		path := filepath.Join(t.TempDir(), "target")
		livetest.Make(t, livetest.Tool(t, "gcc"), "-w", "-O1", host, object, "-o", path)
		v := frametest.Look(t, quiet(t, 0, path), false, deopt.Options{Modules: []*ir.Module{module}})
		f := frametest.One(t, v, "work")
		require.NotNil(t, f.Record, "LLVM %d: %v", version, f.Notes)
		require.Equal(t, frame.Record{ID: 9, Site: "patchpoint", Offset: f.Record.Offset, Moment: frame.InCall}, *f.Record)
		require.NotEmpty(t, f.Match().Entry.Record.LiveOuts, "LLVM %d", version)
		require.Equal(t, []string{"%x i64 300", " i64 77"}, brief(f), "LLVM %d", version)
		stack := frametest.StackOf(v, f)
		stack.Result = "5"
		out, err := v.Run(context.Background(), stack, deopt.Limits{})
		require.NoError(t, err, "LLVM %d", version)
		require.Equal(t, "305", out.Result.Value, "LLVM %d", version)
	}
}
