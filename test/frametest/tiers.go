package frametest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// tier is one compilation of @work. TIER 1 and TIER 2 have the same ids and counts, but swap their operands.
const tier = `
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @next(i64)
define internal i64 @work(i64 %a) noinline {
  %x = add i64 %a, 1000
  %y = add i64 %a, 2
  %r = call i64 @next(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, OPERANDS)
  %d = sub i64 %x, %y
  ret i64 %d
}
define i64 @enterTIER(i64 %a) noinline {
  %r = call i64 @work(i64 %a)
  ret i64 %r
}
`

// tierHost calls both tiers. With an argument it waits while both are on the stack.
const tierHost = `#include <stdio.h>
#include <unistd.h>
long enter1(long), enter2(long);
static int waits;
long next(long a) {
  if (a == 100) return enter2(101);
  if (waits) {
    puts("ready");
    fflush(stdout);
    pause();
  }
  return a;
}
int main(int argc, char **argv) {
  waits = argc > 1;
  printf("%ld\n", enter1(100));
  return 0;
}
`

// Tiers links a program with two libraries. Each contains a compilation of the same function. It returns the program's path and the modules. Each
// function returns 998; with the names of the other module the result would be -998.
func Tiers(t *testing.T, version int) (path string, modules []*ir.Module) {
	t.Helper()
	dir := t.TempDir()
	host := filepath.Join(dir, "host.c")
	require.NoError(t, os.WriteFile(host, []byte(tierHost), 0o600))
	args := []string{"-w", "-O1", "-rdynamic", "-Wl,-rpath,$ORIGIN", host}
	for n, operands := range []string{"i64 %x, i64 %y", "i64 %y, i64 %x"} {
		number := strconv.Itoa(n + 1)
		text := strings.NewReplacer("OPERANDS", operands, "TIER", number).Replace(tier)
		modules = append(modules, ReadModule(t, "tier"+number+".ll", text))
		library := filepath.Join(dir, "tier"+number+".so")
		livetest.Make(t, livetest.Tool(t, "gcc"), "-shared", "-Wl,-z,notext", "-Wl,-soname,tier"+number+".so", livetest.PICObject(t, version, livetest.Module(t, text), "-O2"), "-o", library)
		args = append(args, library)
	}
	path = filepath.Join(dir, "tiers")
	livetest.Make(t, livetest.Tool(t, "gcc"), append(args, "-o", path)...)
	return path, modules
}
