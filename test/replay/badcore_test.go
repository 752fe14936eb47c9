package replay_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestNoCore requires that the error for a file which is not a core, or cannot be read, names the type of the file and an alternative.
func TestNoCore(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	made := func(name, text string) string { return clitest.TempFile(t, name, text) }
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	object := livetest.Object(t, 19, "deoptimize.ll")
	packed := made("core.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00")
	type bad struct {
		path string
		want []string
	}
	list := []bad{
		{filepath.Join(dir, "nowhere"), []string{"no such file or directory", "give the path of a core file"}},
		{dir, []string{"a directory", "give the path of a core file"}},
		{"/dev/zero", []string{"a device", "give the path"}},
		{pipe, []string{"a pipe", "give the path"}},
		{made("empty", ""), []string{"it is empty", "ulimit -c"}},
		{made("text", "a text\n"), []string{"not an ELF core: no ELF file"}},
		{object, []string{"not an ELF core: an unlinked object", "reframe maps FILE"}},
		{livetest.CBinary(t, "nojit.c"), []string{"a position-independent executable", "reframe maps FILE"}},
		{packed, []string{"compressed by gzip", "decompress it first"}},
		{made("cut", "\x7fELF\x02\x01\x01"), []string{"a broken ELF file: it ends inside its header"}},
	}
	if livetest.Runs32Bit(t) { // on other kernels, TestHostileCores covers how ptrace reads such a file
		p := livetest.C(t, "bits32.c", []string{"-m32", "-nostdlib", "-static"})
		list = append(list, bad{livetest.Gcore(t, p), []string{"a 32-bit core; only 64-bit ones can be read"}})
	}
	for _, c := range list {
		for _, verb := range clitest.CaptureVerbs {
			clitest.Run(t, verb, "--core", c.path).FailsEmpty(t, 2, append(c.want, c.path)...)
		}
	}
}

// TestCutCore requires that the existing part of a truncated core is shown, and that the missing part is reported with the reason.
func TestCutCore(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	given := []string{"--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t)}
	live := clitest.Run(t, append([]string{"frames", "-p", clitest.PID(p), "--json"}, given...)...).Object(t)
	want := clitest.FrameOf(t, live, "sum_opt")["slots"]
	core := clitest.KernelCore(t, p)
	whole, err := os.ReadFile(core)
	require.NoError(t, err)
	same := func(path string) (code int) {
		r := clitest.Run(t, append([]string{"frames", "--core", path, "--json"}, given...)...)
		if r.Stdout == "" {
			require.Equal(t, 2, r.Code)
			require.Contains(t, r.Stderr, path)
			return r.Code
		}
		for _, f := range clitest.Frames(t, r.Object(t)) {
			if f["function"] == "sum_opt" && f["slots"] != nil {
				for n, s := range clitest.Objects(t, f["slots"]) {
					if s["status"] == "ok" {
						require.Equal(t, clitest.Objects(t, want)[n], s)
					} else {
						require.Contains(t, s["reason"], "the core is cut short before it")
					}
				}
			}
		}
		return r.Code
	}
	require.Equal(t, 0, same(core))
	const pieces = 24
	codes := map[int]int{}
	for n := range pieces {
		path := clitest.TempFile(t, "core", string(whole[:len(whole)*n/pieces]))
		codes[same(path)]++
		for _, verb := range []string{"resume", "explain", "explain --html -", "maps"} {
			args := append(append(strings.Fields(verb), "--core", path), given...)
			if verb == "maps" {
				args = args[:3]
			}
			r := clitest.Run(t, args...)
			require.Contains(t, []int{0, 1, 2}, r.Code)
			if r.Code == 2 {
				require.Contains(t, r.Stderr, path)
			}
		}
	}
	require.Positive(t, codes[2], "nothing is left of the shortest")
	r := clitest.Run(t, append([]string{"frames", "--core", clitest.TempFile(t, "core", string(whole[:len(whole)-1]))}, given...)...)
	require.Contains(t, r.Stdout, "the core is cut short: it has ")
}

// TestCutGcore requires a report that the core is truncated, for a core of gdb. gdb writes the notes at the end, so no thread is known.
func TestCutGcore(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	whole, err := os.ReadFile(livetest.Gcore(t, p))
	require.NoError(t, err)
	path := clitest.TempFile(t, "core", string(whole[:len(whole)/2]))
	for _, verb := range []string{"frames", "resume", "explain"} {
		clitest.Run(t, verb, "--core", path).FailsEmpty(t, 2, "core "+path+": it holds no thread: ", "the core is cut short: it has ", "no room on the disk?")
	}
}

// TestCoreWithoutStacks requires that a core without private memory can be read. It contains neither stacks nor JIT-compiled code.
func TestCoreWithoutStacks(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/coredump_filter", p.PID), []byte("0"), 0o600))
	core := livetest.Gcore(t, p)
	r := clitest.Run(t, "frames", "--core", core, "--ir", p.IR)
	r.Fails(t, 1, "core "+core)
	require.Contains(t, r.Stdout, "the core contains no private memory: coredump_filter (core(5)) of the process excluded it")
	require.Contains(t, r.Stdout, "\n  #0 ")
	require.Regexp(t, `(?m)^  cut short: .*0x7ff.*not in the core`, r.Stdout)
	for _, verb := range []string{"resume", "explain"} {
		clitest.Run(t, verb, "--core", core, "--ir", p.IR).FailsEmpty(t, 2, "core "+core)
	}
}

// TestCoreOfRebuiltProgram requires that a rebuilt program is not used for a core, and that the old file is used at any path.
func TestCoreOfRebuiltProgram(t *testing.T) {
	t.Parallel()
	built := livetest.Linked(t, 19, "deoptimize.ll", "-pie")
	old, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", built.PID))
	require.NoError(t, err)
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	clitest.RunTool(t, "cp", old, program)
	p := livetest.Program(t, program)
	core := clitest.RecordedCore(t, "-p", clitest.PID(p))
	given := []string{"--core", core, "--ir", built.IR, "--layout", clitest.DeoptimizeLayout(t)}
	look := func(verb string, more ...string) clitest.Result {
		return clitest.Run(t, append(append([]string{verb}, given...), more...)...)
	}
	whole := look("frames")
	require.Equal(t, 0, whole.Code, whole.Stderr)

	other := livetest.CBinary(t, "nojit.c")
	require.NoError(t, os.Rename(program, program+".old"))
	clitest.RunTool(t, "cp", other, program)
	why := fmt.Sprintf("%s: the file there now is a different one: its build id is %s, but that in the core is %s", program, clitest.BuildID(t, other), clitest.BuildID(t, old))
	r := look("frames")
	require.Contains(t, r.Stdout, why)
	require.Contains(t, r.Stdout, "--exe")
	require.NotEqual(t, 0, r.Code)
	require.Equal(t, 2, look("resume").Code)

	again := look("frames", "--exe", program+".old")
	require.Equal(t, 0, again.Code, again.Stderr)
	require.Equal(t, whole.Stdout, again.Stdout)
	require.Contains(t, again.Stderr, " --exe "+program+".old ")
	try := again.Stderr[strings.Index(again.Stderr, "reframe ")+len("reframe "):]
	r = clitest.Run(t, strings.Fields(try)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "sum returned i64 "+clitest.SumOfSquaresBelow1000+" after ")

	for _, verb := range clitest.CaptureVerbs {
		args := []string{verb, "--core", core, "--exe", other}
		clitest.Run(t, args...).FailsEmpty(t, 2, other+": it is a different file: its build id is "+clitest.BuildID(t, other), "but that in the core is "+clitest.BuildID(t, old), "--exe")
		clitest.Run(t, verb, "--core", core, "--exe", filepath.Join(dir, "nowhere")).FailsEmpty(t, 2, "nowhere", "no such file or directory")
		clitest.Run(t, verb, "--core", core, "--sysroot", filepath.Join(dir, "nowhere")).FailsEmpty(t, 2, "nowhere", "no such file or directory", "give the directory")
	}
	r = look("frames", "--sysroot", dir)
	require.Contains(t, r.Stdout, program+": cannot be opened below "+dir+": no such file or directory")
}

// farModule has a function that, after its site, reads memory 32 MiB away from everything to which a register or the stack points.
const farModule = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare ptr @malloc(i64)
declare i32 @pause()
declare i32 @puts(ptr)
@msg = private constant [6 x i8] c"ready\00"
define i64 @wait() noinline {
  %x = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define i64 @work(ptr %p) noinline {
  %r = call i64 @wait()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, ptr %p)
  %q = getelementptr i8, ptr %p, i64 33554432
  %v = load i64, ptr %q
  %s = add i64 %r, %v
  ret i64 %s
}
define i32 @main() {
  %p = call ptr @malloc(i64 67108864)
  %q = getelementptr i8, ptr %p, i64 33554432
  store i64 42, ptr %q
  %r = call i64 @work(ptr %p)
  ret i32 0
}
`

// TestResumeWithoutPages requires that, if the interpreter reads memory which the core lacks, the error says what the memory was and how to include
// it.
func TestResumeWithoutPages(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, clitest.TempFile(t, "far.ll", farModule), "mcjit")
	small, all := clitest.RecordedCore(t, "-p", clitest.PID(p)), clitest.RecordedCore(t, "-p", clitest.PID(p), "--memory", "all")
	live := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--result", "7", "--json")
	require.Equal(t, 0, live.Code, live.Stderr)
	r := clitest.Run(t, "resume", "--core", all, "--ir", p.IR, "--result", "7", "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	want, got := live.Object(t), r.Object(t)
	require.Contains(t, want, "pause_us")
	require.Equal(t, map[string]any{"type": "i64", "value": "49"}, want["result"])
	delete(want, "pause_us")
	require.Equal(t, want, got)
	r = clitest.Run(t, "resume", "--core", small, "--ir", p.IR, "--result", "7")
	r.FailsEmpty(t, 2, "not in the core; the core was recorded with --memory minimal, which omits it")
	require.Regexp(t, ` at 0x[0-9a-f]+: not in the core; `, r.Stderr)
}

// TestCoreNotPermitted requires that the error for a core without read permission gives that reason.
func TestCoreNotPermitted(t *testing.T) {
	t.Parallel()
	path := clitest.TempFile(t, "core", "a text")
	require.NoError(t, os.Chmod(path, 0))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	for _, verb := range clitest.CaptureVerbs {
		c := clitest.Command(t, verb, "--core", path)
		clitest.Finish(t, clitest.AsNobody(t, exec.CommandContext(t.Context(), c.Path, c.Args[1:]...))).FailsEmpty(t, 2, path, "permission denied")
	}
}
