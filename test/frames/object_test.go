package frames_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// copiedTo returns the address of the copied code in a process of copied.c.
func copiedTo(t *testing.T, p *livetest.Process) uint64 {
	t.Helper()
	_, rest, found := strings.Cut(p.Output(), "code at 0x")
	require.True(t, found, p.Output())
	line, _, _ := strings.Cut(rest, "\n")
	addr, err := strconv.ParseUint(line, 16, 64)
	require.NoError(t, err)
	return addr
}

// TestGivenObject requires that --object gives names, records and unwind information of code that a runtime has copied after its own prologue and did
// not register. The function jf was called with 1000, 7 and 2.5.
func TestGivenObject(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	include := "-I" + filepath.Join(filepath.Dir(livetest.Testdata(t)), "internal", "demo", "target")
	for _, version := range []int{14, 19, 22} {
		t.Run(fmt.Sprintf("llc-%d", version), func(t *testing.T) {
			object, module := livetest.Object(t, version, "host_mod.ll"), livetest.IR(t, version, "host_mod.ll")
			p := livetest.C(t, "copied.c", []string{include}, object)
			addr := copiedTo(t, p)
			at := func(spelling string, addr uint64) string { return fmt.Sprintf("%s@%s%#x", object, spelling, addr) }

			require.NotContains(t, clitest.Run(t, "frames", "-p", clitest.PID(p)).Stdout, "jf+", "nothing says what code this is")
			core := livetest.Gcore(t, p)
			for _, given := range []string{at("", addr), at(".text=", addr), at("jf=", addr), object} {
				for _, target := range [][]string{{"-p", clitest.PID(p)}, {"--core", core}} {
					r := clitest.Run(t, append(target, "frames", "--object", given, "--ir", module)...)
					require.Equal(t, 1, r.Code, r.Stderr) // %d is in a caller-saved register
					require.Regexp(t, `jit +jf\+0x[0-9a-f]+ .*record 31, patchpoint, in call`, r.Stdout, given)
					require.Regexp(t, `%x +i64 +1007 `, r.Stdout)
					require.Regexp(t, `%y +i64 +7000 `, r.Stdout)
					require.Regexp(t, `%d +double unavailable: xmm0 is caller-saved`, r.Stdout)
					require.Regexp(t, `(?m)#\d+ +native +main\+`, r.Stdout, "the frame behind it was found by the object's unwind information")
					require.NotContains(t, r.Stdout, "by code")
				}
			}
			r := clitest.Run(t, "maps", "-p", clitest.PID(p), "--object", object)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, fmt.Sprintf("jf at %#x", addr))
			r = clitest.Run(t, "explain", "-p", clitest.PID(p), "--object", object, "--ir", module)
			require.Equal(t, 1, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, object)
			r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--object", object, "--ir", module, "--result", "5")
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, "8012", "5 + 1007 + 7000")

			// A wrong address is rejected, and the error gives the first byte that differs.
			r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", at("", addr+1))
			r.FailsEmpty(t, 2, fmt.Sprintf(".text is not at %#x: at offset 0x0 memory contains", addr+1))
			clitest.Run(t, "frames", "--core", core, "--object", at("", addr-16)).FailsEmpty(t, 2, "at offset 0x0 memory contains 90")
			clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", at("", 0x1000)).FailsEmpty(t, 2, "no code at 0x1000")
			clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", at("nosuch=", addr)).FailsEmpty(t, 2, "no section or symbol of code nosuch")
			other := livetest.Object(t, 19, "deoptimize.ll")
			clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", other).FailsEmpty(t, 2, ".text was not found in")
		})
	}
}

// TestGivenObjectTwice requires that, if a process contains two copies, the error names both and neither is used.
func TestGivenObjectTwice(t *testing.T) {
	t.Parallel()
	include := "-I" + filepath.Join(filepath.Dir(livetest.Testdata(t)), "internal", "demo", "target")
	object := livetest.Object(t, 19, "host_mod.ll")
	p := livetest.C(t, "copied.c", []string{include}, object, "2")
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", object).FailsEmpty(t, 2, ".text is in memory at 0x", fmt.Sprintf(" at %#x and perhaps elsewhere", copiedTo(t, p)))
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", fmt.Sprintf("%s@%#x", object, copiedTo(t, p)))
	require.Contains(t, r.Stdout, "jf+0x", r.Stderr)

	for spelled, want := range map[string]string{
		object + "@nowhere": "expected an address in hexadecimal",
		object + "@=0x10":   "the name before = is empty",
		object + "@0":       "expected an address in hexadecimal",
	} {
		clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", spelled).FailsEmpty(t, 64, want)
	}
	text := clitest.TempFile(t, "text.o", "no object")
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", text).FailsEmpty(t, 2, text, "not an object file")
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", "/nosuch.o").FailsEmpty(t, 2, "/nosuch.o: no such file")
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", t.TempDir()).FailsEmpty(t, 2, "a directory")
	self, err := os.Executable()
	require.NoError(t, err)
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", self).FailsEmpty(t, 2, "it is linked")
	clitest.Run(t, "maps", object, "--object", object).FailsEmpty(t, 64, "--object requires a process or a core")
}

// TestTraceGivenObject requires that exits of unregistered code are reported if its object is given, and that the breakpoints are removed afterwards.
func TestTraceGivenObject(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	include := "-I" + filepath.Join(filepath.Dir(livetest.Testdata(t)), "internal", "demo", "target")
	module := clitest.TempFile(t, "again.ll", `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @cb(i64, i64)
@slot = internal global ptr @cb
define i64 @jf(i64 %a, i64 %b, double %d) {
  %x = add i64 %a, %b
  %f = load volatile ptr, ptr @slot
  %r = call i64 %f(i64 %a, i64 %b)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 8, i64 %r, i64 %x)
  %y = mul i64 %r, %x
  %z = sub i64 %y, 11
  ret i64 %z
}
`)
	object := livetest.Object(t, 19, module, "-relocation-model=pic")
	p := livetest.C(t, "copied.c", []string{include}, object, "1", "again")
	given := fmt.Sprintf("%s@%#x", object, copiedTo(t, p))
	r := clitest.Run(t, "trace", "-p", clitest.PID(p), "--object", given, "--ir", module, "--dry-run")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `jf\+0x[0-9a-f]+ .*record 5`, r.Stdout)

	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trace", "--limit", "2"}, "record 5 stackmap  %r=993 %x=1007\n"},
		{[]string{"verify", "--limit", "1"}, "1 exit verified in "},
		{[]string{"verify", "--limit", "1"}, ": 1 same, 0 different, 0 not comparable"},
	} {
		watcher := exec.CommandContext(ctx, clitest.Binary(), append(c.args, "-p", clitest.PID(p), "--object", given, "--ir", module)...)
		var out bytes.Buffer
		watcher.Stdout, watcher.Stderr = &out, &out
		require.NoError(t, watcher.Start())
		clitest.WaitTraced(t, p)
		done := make(chan error, 1)
		go func() { done <- watcher.Wait() }()
		for waiting := true; waiting; {
			select {
			case <-done:
				waiting = false
			case <-time.After(20 * time.Millisecond): // repeat the exit, however slow the watcher is
				p.Signal(t, syscall.SIGUSR1) // makes the process reach its exit again
			}
		}
		require.Contains(t, out.String(), c.want)
	}
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--object", given)
	require.Contains(t, r.Stdout, "jf+0x", "the code is as it was: %s", r.Stderr)
	clitest.RequireUnharmed(t, p)

	clitest.Run(t, "trace", "-p", clitest.PID(p), "--object", fmt.Sprintf("%s@%#x", object, copiedTo(t, p)+1)).FailsEmpty(t, 2, "at offset 0x0 memory contains")
	clitest.Run(t, "trace", "--object", given, "--", "true").FailsEmpty(t, 64, "--object requires a running process")
}
