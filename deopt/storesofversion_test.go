package deopt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// storesHost waits in the call that comes before the record.
const storesHost = `
#include <stdio.h>
#include <unistd.h>
long cell;
long work(long);
long next(long a) {
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
int main(void) { return work(5); }
`

const storesModule = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i64 @next(i64)
declare void @llvm.experimental.stackmap(i64, i32, ...)
@cell = external dso_local global i64
define i64 @work(i64 %a) noinline {
  %m = mul i64 %a, 11
  %s = add i64 %a, 1000
  store volatile i64 STORED, ptr @cell
  %t = trunc i64 %s to i32
  %r = call i64 @next(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, LIVE %m, i64 %a)
  %x = add i64 %r, %m
  %y = add i64 %x, %s
  %z = add i64 %y, %a
  ret i64 %z
}
`

// TestVersionThatStoresOtherValues requires that the stores of the code distinguish two versions of a module. Both record the same numbers in the
// same places, one as an i64 and one truncated, but store different values in a variable.
func TestVersionThatStoresOtherValues(t *testing.T) {
	text := func(stored, live string) string {
		return strings.NewReplacer("STORED", stored, "LIVE", live).Replace(storesModule)
	}
	host := filepath.Join(t.TempDir(), "host.c")
	require.NoError(t, os.WriteFile(host, []byte(storesHost), 0o600))
	compiled := text("%m", "i64 %s, i64")
	for _, version := range []int{16, 19, 22} {
		object := livetest.Object(t, version, program(t, compiled), "-relocation-model=pic", "-O2")
		path := filepath.Join(t.TempDir(), "stores")
		livetest.Make(t, livetest.Tool(t, "gcc"), "-w", "-O1", host, object, "-no-pie", "-o", path)
		p := quiet(t, 0, path)
		shown := func(given string) ([]string, string) {
			target, err := ptrace.Capture(p.PID, ptrace.Options{})
			require.NoError(t, err)
			defer target.Close()
			v, err := deopt.Frames(target, deopt.Options{Modules: []*ir.Module{frametest.ReadModule(t, "given.ll", given)}})
			require.NoError(t, err)
			f := frametest.One(t, v, "work")
			return brief(f), deopt.ProvenanceOfFrame(f).Why
		}
		names, _ := shown(compiled)
		require.Equal(t, []string{"%s i64 1005", "%m i64 55", "%a i64 5"}, names, "LLVM %d", version)
		names, why := shown(text("%s", "i32 %t, i64"))
		require.Equal(t, []string{"loc0  0x3ed", "loc1  0x37", "loc2  0x5"}, names, "LLVM %d", version)
		require.Equal(t, "the code stores another value in @cell than line 9 of given.ll", why, "LLVM %d", version)
	}
}
