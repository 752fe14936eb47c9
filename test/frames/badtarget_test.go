package frames_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

func TestNoSuchProcess(t *testing.T) {
	t.Parallel()
	// The largest process number on 64-bit Linux is 4194304 (proc_sys_kernel(5)).
	for _, verb := range clitest.CaptureVerbs {
		for _, number := range []string{"4194305", "2147483647"} {
			clitest.Run(t, verb, "-p", number).FailsEmpty(t, 2, "process "+number, "no such process")
		}
	}
}

// TestZombie requires an error for a process that has ended but was not waited for.
func TestZombie(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	c := exec.Command("true")
	require.NoError(t, c.Start())
	defer c.Wait()
	n := c.Process.Pid
	require.Eventually(t, func() bool { return strings.HasPrefix(clitest.ThreadStatus(n, n, "State"), "Z") }, livetest.Patience, time.Millisecond)
	for _, verb := range clitest.CaptureVerbs {
		clitest.Run(t, verb, "-p", fmt.Sprint(n)).FailsEmpty(t, 2, fmt.Sprintf("process %d", n), "has ended")
	}
}

func TestNotPermitted(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	for _, verb := range clitest.CaptureVerbs {
		r := clitest.Finish(t, clitest.AsNobody(t, clitest.Command(t, verb, "-p", clitest.PID(p))))
		r.FailsEmpty(t, 2, "process "+clitest.PID(p), "operation not permitted", "it belongs to another user; run as root")
	}
	clitest.RequireUnharmed(t, p)
}

// TestTracedAlready requires that the error for a process with a tracer names the tracer, and how to get a core from it.
func TestTracedAlready(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	core := filepath.Join(t.TempDir(), "nojit.core")
	// gdb holds the process while cat waits for the end of its input.
	gdb := exec.Command(livetest.Tool(t, "gdb"), "-nx", "-batch", "-p", clitest.PID(p), "-ex", "shell cat", "-ex", "gcore "+core)
	end, err := gdb.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, gdb.Start())
	state := func() string { return clitest.ThreadStatus(p.PID, p.PID, "State") }
	require.Eventually(t, func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", gdb.Process.Pid, gdb.Process.Pid))
		return len(children) > 0 && strings.HasPrefix(state(), "t")
	}, livetest.Patience, time.Millisecond, "gdb did not attach")
	for _, verb := range []string{"frames", "resume", "trace"} {
		r := clitest.Run(t, verb, "-p", clitest.PID(p))
		r.FailsEmpty(t, 2, "operation not permitted", fmt.Sprintf("process %d (gdb) traces it already; have it detach", gdb.Process.Pid),
			"(gdb) gcore FILE, and read that: reframe frames --core FILE")
		require.True(t, strings.HasPrefix(state(), "t"), "it is gdb's as before")
		require.Equal(t, fmt.Sprint(gdb.Process.Pid), clitest.ThreadStatus(p.PID, p.PID, "TracerPid"))
	}
	require.NoError(t, end.Close())
	require.NoError(t, gdb.Wait())
	require.Regexp(t, `(?m)^  #1 +native +main\+0x[0-9a-f]+$`, clitest.Run(t, "frames", "--core", core).Stdout, "what the error proposes")
	clitest.RequireUnharmed(t, p)
}

func Test32Bit(t *testing.T) {
	t.Parallel()
	if !livetest.Runs32Bit(t) {
		return // root may make this call
	}
	p := livetest.C(t, "bits32.c", []string{"-m32", "-nostdlib", "-static"})
	for _, verb := range clitest.CaptureVerbs {
		clitest.Run(t, verb, "-p", clitest.PID(p)).FailsEmpty(t, 2, "process "+clitest.PID(p), "32-bit")
	}
	clitest.RequireUnharmed(t, p)
}

// TestNoStackMap requires that stacks are shown without stack maps.
func TestNoStackMap(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	r := clitest.Run(t, "frames", "-p", clitest.PID(p))
	r.Notes(t, 0, "process "+clitest.PID(p), "no stack map", "no code outside of its files")
	require.Regexp(t, `(?m)^  #1 +native +main\+0x[0-9a-f]+$`, r.Stdout)
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--json")
	r.Notes(t, 0, "no stack map")
	require.Equal(t, "native", clitest.FrameOf(t, r.Object(t), "main")["kind"])
	for _, none := range [][]string{{"resume"}, {"explain"}} {
		clitest.Run(t, append(none, "-p", clitest.PID(p))...).FailsEmpty(t, 2, "process "+clitest.PID(p), "no stack map", "no code outside of its files")
	}
	require.Equal(t, 0, clitest.Run(t, "explain", "-p", clitest.PID(p), "-f", "1").Code)

	r = clitest.Run(t, "maps", "-p", clitest.PID(p))
	r.Notes(t, 0, "process "+clitest.PID(p), "no stack map", "no code outside of its files")
	require.Empty(t, r.Stdout)
	r = clitest.Run(t, "maps", "-p", clitest.PID(p), "--json")
	r.Notes(t, 0, "no stack map")
	clitest.RequireValid(t, "maps.schema.json", r.Stdout)
	require.Empty(t, r.Object(t)["images"])
	for _, asked := range [][]string{{"--require"}, {"--function", "main"}, {"--record", "1"}} {
		clitest.Run(t, append([]string{"maps", "-p", clitest.PID(p)}, asked...)...).FailsEmpty(t, 1, "no stack map")
	}
	clitest.RequireUnharmed(t, p)
}

// TestHostMustTurnOn requires that, for a host which registers nothing and whose linker drops the section, the message says what to change in the
// host.
func TestHostMustTurnOn(t *testing.T) {
	t.Parallel()
	p := livetest.Host(t, 19, "orc", "block")
	for _, verb := range clitest.CaptureVerbs {
		status := 0 // a process without stack maps is not an error
		if verb == "resume" || verb == "explain" {
			status = 2
		}
		clitest.Run(t, verb, "-p", clitest.PID(p)).Fails(t, status, "process "+clitest.PID(p), "registered no object", "LLVMOrcLLJITEnableDebugSupport")
	}
	clitest.RequireUnharmed(t, p)
}

// TestCorruptRegistry requires that an error in the list of registered objects is described, and that the list is followed only up to a limit.
func TestCorruptRegistry(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"loop":      "list of registered JIT objects is corrupt: entry 2 is again the entry at 0x",
		"wild":      "list of registered JIT objects is corrupt: entry 2 cannot be read: 32 bytes at 0x5ead00000000",
		"wildfile":  "object 2: it points outside of memory",
		"hugesize":  "object 2: it claims 9223372036854775807 bytes",
		"badmagic":  "object 2: it does not point to a 64-bit ELF object",
		"truncated": "registered JIT objects are corrupt: object 1: its section headers lie outside of it",
	} {
		p := livetest.C(t, "corrupt.c", nil, how)
		for _, verb := range clitest.CaptureVerbs {
			status := 2
			if verb == "frames" { // the broken object contains no frame
				status = 0
			}
			clitest.Run(t, verb, "-p", clitest.PID(p)).Fails(t, status, "process "+clitest.PID(p), want)
		}
		clitest.RequireUnharmed(t, p)
	}
}

// TestDiesDuringCapture requires that, if a process is killed during the capture, the output is complete or one line gives the reason.
func TestDiesDuringCapture(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	kills := livetest.Times(30, 100)
	first := livetest.ManyObjects(t, 1)
	moment := 3 * takes(t, "frames", "-p", clitest.PID(first), "--json") / time.Duration(kills)
	gone, whole := 0, 0
	for n := range kills {
		p := livetest.ManyObjects(t, 1)
		c := clitest.Command(t, "frames", "-p", clitest.PID(p), "--json")
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(n) * moment)
			p.Kill()
		}()
		r := clitest.Finish(t, c)
		<-killed
		if r.Code == 2 {
			gone++
			r.Fails(t, 2, "process "+clitest.PID(p))
			require.Regexp(t, `ended|no such process`, r.Stderr)
			continue
		}
		whole++
		// The frame's values are in caller-saved registers.
		require.Equal(t, 1, r.Code, r.Stderr)
		require.Empty(t, r.Stderr)
		require.Contains(t, clitest.FrameOf(t, r.Object(t), "jf"), "record")
	}
	// The range of delays must include kills before and after the capture.
	require.Positive(t, gone)
	require.Positive(t, whole)
}

// TestDiesDuringResume requires an error if a process ends while the interpreter reads its memory.
func TestDiesDuringResume(t *testing.T) {
	t.Parallel()
	p, module, exits := spinning(t)
	done := make(chan clitest.Result, 1)
	c := clitest.Command(t, "resume", "-p", clitest.PID(p), "--ir", module, "--layout", exits, "--timeout", "10s", "--steps", "1000000000000")
	go func() { done <- clitest.Finish(t, c) }()
	require.Eventually(t, func() bool { return held(p) }, livetest.Patience, time.Millisecond, "it is not held")
	p.Kill()
	r := <-done
	r.FailsEmpty(t, 2)
}

// spinLoop replaces the end of deoptimize.ll's @sum by a function that never ends.
const spinLoop = `define i64 @spin(i64 %n) noinline {
entry:
  br label %again
again:
  %k = phi i64 [0,%entry],[%k1,%again]
  %k1 = add i64 %k, 1
  br label %again
}
`

// spinning returns a process at an exit. The returned module and layout resume it in an endless loop.
func spinning(t *testing.T) (p *livetest.Process, module, exits string) {
	t.Helper()
	p = livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	text, err := os.ReadFile(p.IR)
	require.NoError(t, err)
	module = clitest.TempFile(t, "spin.ll", string(text)+spinLoop)
	exits = clitest.TempFile(t, "spin.json", `{"schema":"reframe.layout/v1","exits":[{"function":"sum_opt",
  "resume":{"function":"spin","block":"again"},"slots":[{"operand":1,"name":"%k"},{"operand":3,"name":"%n"}]}]}`)
	return p, module, exits
}

// held reports whether a process is traced and stopped.
func held(p *livetest.Process) bool {
	return clitest.ThreadStatus(p.PID, p.PID, "TracerPid") != "0" && strings.HasPrefix(clitest.ThreadStatus(p.PID, p.PID, "State"), "t")
}

// TestResumeLimits requires that each limit of a run ends the run and releases the process.
func TestResumeLimits(t *testing.T) {
	t.Parallel()
	p, module, exits := spinning(t)
	given := []string{"resume", "-p", clitest.PID(p), "--ir", module, "--layout", exits}
	// The loop is endless, so even on a slow machine a limit ends the run.
	for limit, want := range map[string]string{"--steps=5000": "after 5000 steps", "--timeout=100ms": "--timeout"} {
		clitest.Run(t, append(given, limit)...).FailsEmpty(t, 2, "@spin", want)
		clitest.RequireUnharmed(t, p)
	}
	for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
		ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
		c := exec.CommandContext(ctx, clitest.Binary(), append(given, "--timeout=1m", "--steps=1000000000000")...)
		require.NoError(t, c.Start())
		require.Eventually(t, func() bool { return held(p) }, livetest.Patience, time.Millisecond, "it is not held")
		require.NoError(t, c.Process.Signal(signal))
		require.Error(t, c.Wait())
		require.NoError(t, ctx.Err())
		cancel()
		if signal == os.Interrupt {
			require.Equal(t, 2, c.ProcessState.ExitCode())
		}
		clitest.RequireUnharmed(t, p)
	}
}

// TestTwoAtOnce requires that, if several reframes read one process at once, one succeeds and the errors of the others name it.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	var results [8]clitest.Result
	var all sync.WaitGroup
	for n := range results {
		c := clitest.Command(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--json")
		all.Go(func() { results[n] = clitest.Finish(t, c) })
	}
	all.Wait()
	for _, r := range results {
		if r.Code != 0 {
			r.FailsEmpty(t, 2, "process "+clitest.PID(p))
		}
	}
	clitest.RequireUnharmed(t, p)
}

// TestStoppedTarget requires that a process which a signal has stopped stays stopped, and continues on SIGCONT.
func TestStoppedTarget(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	stands := func() bool { return strings.HasPrefix(clitest.ThreadStatus(p.PID, p.PID, "State"), "T") }
	p.Signal(t, syscall.SIGSTOP)
	require.Eventually(t, stands, livetest.Patience, time.Millisecond)
	for _, verb := range []string{"frames", "resume", "maps"} {
		args := []string{verb, "-p", clitest.PID(p)}
		if verb != "maps" {
			args = append(args, "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t))
		}
		r := clitest.Run(t, args...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Eventually(t, stands, livetest.Patience, time.Millisecond, verb)
	}
	p.Signal(t, syscall.SIGCONT)
	clitest.RequireUnharmed(t, p)
}
