package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// greeting is a program that reads a line, prints an answer, and returns the number of its arguments.
const greeting = `@.hello = private constant [16 x i8] c"hello %s of %d\0A\00"
@.oops = private constant [9 x i8] c"no name\0A\00"
@stdin = external global ptr
@stderr = external global ptr
declare ptr @fgets(ptr, i32, ptr)
declare i32 @fputs(ptr, ptr)
declare i32 @printf(ptr, ...)
declare ptr @strchr(ptr, i32)
define i32 @main(i32 %argc, ptr %argv) {
  %line = alloca [32 x i8]
  %in = load ptr, ptr @stdin
  %got = call ptr @fgets(ptr %line, i32 32, ptr %in)
  %none = icmp eq ptr %got, null
  br i1 %none, label %empty, label %name
name:
  %end = call ptr @strchr(ptr %line, i32 10)
  store i8 0, ptr %end
  call i32 (ptr, ...) @printf(ptr @.hello, ptr %line, i32 %argc)
  ret i32 %argc
empty:
  %err = load ptr, ptr @stderr
  call i32 @fputs(ptr @.oops, ptr %err)
  ret i32 200
}
`

// TestRun requires that run has the exit status and the output of the program.
func TestRun(t *testing.T) {
	t.Parallel()
	path := clitest.TempFile(t, "greeting.ll", greeting)
	c := clitest.Command(t, "run", path, "-x", "--steps", "1")
	c.Stdin = strings.NewReader("world\n")
	require.Equal(t, clitest.Result{Code: 4, Stdout: "hello world of 4\n", Stderr: ""}, clitest.Finish(t, c))
	c = clitest.Command(t, "run", path)
	c.Stdin = strings.NewReader("")
	require.Equal(t, clitest.Result{Code: 200, Stdout: "", Stderr: "no name\n"}, clitest.Finish(t, c))
}

// TestRunOfBitcode requires that a C program has the same output as its native version, both from text and from bitcode.
func TestRunOfBitcode(t *testing.T) {
	t.Parallel()
	source := livetest.Testdata(t, "programs", "fib.c")
	text := livetest.CModule(t, 19, []string{"-O1"}, source)
	bitcode := filepath.Join(t.TempDir(), "fib.bc")
	c := tool(t, livetest.LLVM(t, 19, "llvm-as"), "-o", bitcode, text)
	require.NoError(t, c.Run())
	native, err := tool(t, livetest.ModuleBinary(t, 19, text), "20").Output()
	require.NoError(t, err)
	for _, module := range []string{text, bitcode} {
		require.Equal(t, clitest.Result{Code: 0, Stdout: string(native), Stderr: ""}, clitest.Run(t, "run", module, "20"))
	}
}

// tool returns a command that runs another program, set up as command does for reframe.
func tool(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	c := clitest.Command(t, args...)
	c.Path, c.Args[0] = path, path
	return c
}

const counting = `define i32 @square(i32 %x) {
entry:
  %s = mul nsw i32 %x, %x
  ret i32 %s
}
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i32 [ 1, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %s = call i32 @square(i32 %i)
  %more = add i32 %sum, %s
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, 4
  br i1 %again, label %loop, label %end
end:
  ret i32 %more
}
`

func TestRunFunction(t *testing.T) {
	t.Parallel()
	path := clitest.TempFile(t, "counting.ll", counting)
	require.Equal(t, clitest.Result{Code: 14, Stdout: "", Stderr: ""}, clitest.Run(t, "run", path))
	require.Equal(t, clitest.Result{Code: 0, Stdout: "i32 49\n", Stderr: ""}, clitest.Run(t, "run", "--function", "square", path, "-7"))
	clitest.Run(t, "run", "--function", "square", path).FailsEmpty(t, 64, "expected 1 argument for @square, got 0")
	clitest.Run(t, "run", "--function", "square", path, "x").FailsEmpty(t, 64, `argument %x of @square: "x" is not a value of type i32`)
	clitest.Run(t, "run", "--function", "cube", path).FailsEmpty(t, 64, "--function cube: the module does not define @cube")
}

func TestRunTrace(t *testing.T) {
	t.Parallel()
	r := clitest.Run(t, "run", "--trace", "--until", "square", clitest.TempFile(t, "counting.ll", counting))
	require.Equal(t, 0, r.Code)
	require.Equal(t, `    8 main:entry           br label %loop
   10 main:loop            %i = phi i32 [ 1, %entry ], [ %next, %loop ]  ; 1
   11 main:loop            %sum = phi i32 [ 0, %entry ], [ %more, %loop ]  ; 0
   12 main:loop            %s = call i32 @square(i32 %i)
stopped before block %entry of @square, line 2, after 4 instructions
  i32 %x = 1
  called by @main, block %loop, line 12
`, r.Stderr)
}

func TestRunUntil(t *testing.T) {
	t.Parallel()
	path := clitest.TempFile(t, "counting.ll", counting)
	r := clitest.Run(t, "run", "--until", "@main:%end", path)
	require.Equal(t, clitest.Result{Code: 0, Stdout: "", Stderr: "stopped before block %end of @main, line 17, after 28 instructions\n  i32 %more = 14\n"}, r)
	for until, want := range map[string]string{
		":start":     "--until :start: expected FUNCTION or FUNCTION:BLOCK",
		"main:":      "--until main:: expected FUNCTION or FUNCTION:BLOCK",
		"squar":      "--until squar: the module does not define @squar; nearest: square",
		"cube":       "--until cube: the module does not define @cube",
		"main:start": "--until main:start: @main has no block %start; its first are entry, loop, end",
	} {
		clitest.Run(t, "run", "--until", until, path).FailsEmpty(t, 64, want)
	}
	require.Equal(t, clitest.Result{Code: 0, Stdout: "", Stderr: "stopped before block %entry of @main, line 7, after 0 instructions\n"},
		clitest.Run(t, "run", "--until", "main:entry", path))
	// A block that is never entered does not stop the run.
	never := clitest.TempFile(t, "never.ll", "define i32 @main() {\n  ret i32 14\nnever:\n  ret i32 1\n}\n")
	require.Equal(t, clitest.Result{Code: 14, Stdout: "", Stderr: ""}, clitest.Run(t, "run", "--until", "main:never", never))
}

// TestRunNamesOfCPlusPlus requires that a function of the module can be given by any form of its name, as in other verbs.
func TestRunNamesOfCPlusPlus(t *testing.T) {
	t.Parallel()
	const module = `define i32 @_ZN2ns1fEi(i32 %x) {
	%y = add i32 %x, 1
	br label %end
end:
	ret i32 %y
}
define i32 @_ZN2ns1gEi(i32 %x) {
	ret i32 3
}
define i32 @_ZN2ns1gEl(i64 %x) {
	ret i32 4
}
`
	path := clitest.TempFile(t, "ns.ll", module)
	for _, name := range []string{"_ZN2ns1fEi", "ns::f", "ns::f(int)", "/f/", "@_ZN2ns1fEi"} {
		require.Equal(t, clitest.Result{Code: 0, Stdout: "i32 6\n", Stderr: ""}, clitest.Run(t, "run", "--function", name, path, "5"), name)
	}
	r := clitest.Run(t, "run", "--function", "ns::f", "--until", "ns::f:end", path, "5")
	require.Equal(t, clitest.Result{Code: 0, Stdout: "", Stderr: "stopped before block %end of @_ZN2ns1fEi, line 4, after 2 instructions\n  i32 %y = 6\n"}, r)
	clitest.Run(t, "run", "--function", "ns::g", path, "5").FailsEmpty(t, 64, "--function ns::g: matches 2 functions; the first are @_ZN2ns1gEi, @_ZN2ns1gEl")
	clitest.Run(t, "run", "--function", "ns::F", path, "5").FailsEmpty(t, 64, "--function ns::F: the module does not define @ns::F; nearest: ns::f")
}

func TestRunProfile(t *testing.T) {
	t.Parallel()
	r := clitest.Run(t, "run", "--profile", clitest.TempFile(t, "counting.ll", counting))
	require.Equal(t, clitest.Result{Code: 14, Stdout: "", Stderr: `  instructions  share         runs  block
            21  72.4%            3  @main:%loop, line 9
             6  20.7%            3  @square:%entry, line 2
             1   3.4%            1  @main:%entry, line 7
             1   3.4%            1  @main:%end, line 17
`}, r)
}

// TestRunThatFails requires that the error of a run says why and where the run cannot continue, with the call stack.
func TestRunThatFails(t *testing.T) {
	t.Parallel()
	divides := clitest.TempFile(t, "divides.ll", strings.Replace(counting, "mul nsw i32 %x, %x", "sdiv i32 %x, 0", 1))
	r := clitest.Run(t, "run", divides)
	require.Equal(t, clitest.Result{Code: 2, Stdout: "", Stderr: "reframe: " + divides + ": @square, block %entry, line 3: %s = sdiv i32: division by zero\n" +
		"  3 | %s = sdiv i32 %x, 0\n  called by @main, block %loop, line 12\n"}, r)

	const forever = "define i32 @main() {\n  br label %l\nl:\n  br label %l\n}\n"
	const greedy = "declare ptr @malloc(i64)\ndefine i32 @main() {\n  br label %l\nl:\n  %p = call ptr @malloc(i64 65536)\n  br label %l\n}\n"
	const deep = "define i32 @main() {\n  %r = call i32 @main()\n  ret i32 %r\n}\n"
	for _, c := range []struct {
		name, src string
		flags     []string
		code      int
		want      string
	}{
		{"endless", forever, []string{"--steps", "1000000"}, 2, "not finished after 1000000 steps (--steps)"},
		{"greedy", greedy, []string{"--memory", "8M"}, 2, "the program needs more than 8388608 bytes of memory (--memory)"},
		{"deep", deep, nil, 2, "calls are nested deeper than 50000 (--depth)"},
		{"deeper than its memory", deep, []string{"--depth", "100000000", "--memory", "16M"}, 2, "the program needs more than 16777216 bytes of memory"},
		{"abort", "declare void @abort()\ndefine i32 @main() {\n  call void @abort()\n  unreachable\n}\n", nil, 134, "the program called abort"},
		{"native", "declare i32 @elsewhere()\ndefine i32 @main() {\n  %r = call i32 @elsewhere()\n  ret i32 %r\n}\n", nil, 2, "a call of @elsewhere is not supported: it exists only as native code; link the module that defines it (llvm-link)"},
		{"poison", "define i32 @main() {\n  %x = add nsw i32 2147483647, 1\n  %c = icmp eq i32 %x, 0\n  br i1 %c, label %a, label %a\na:\n  ret i32 0\n}\n", nil, 2, "the condition %c is poison"},
		{"misaligned", "define i32 @main() {\n  %a = alloca [8 x i8], align 8\n  %p = getelementptr i8, ptr %a, i64 2\n  store i32 0, ptr %p, align 4\n  ret i32 0\n}\n",
			[]string{"--strict"}, 2, "the address is not a multiple of 4, as the instruction promises"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := clitest.Run(t, append(append([]string{"run"}, c.flags...), clitest.TempFile(t, "p.ll", c.src))...)
			require.Equal(t, c.code, r.Code)
			require.Empty(t, r.Stdout)
			require.Contains(t, r.Stderr, c.want)
			require.LessOrEqual(t, strings.Count(r.Stderr, "\n"), 20)
		})
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	path := clitest.TempFile(t, "counting.ll", counting)
	dir := t.TempDir()
	clitest.Run(t, "run").FailsEmpty(t, 64, "MODULE.ll is missing")
	clitest.Run(t, "run", filepath.Join(dir, "none.ll")).FailsEmpty(t, 2, "none.ll: no such file or directory")
	clitest.Run(t, "run", dir).FailsEmpty(t, 2, "is a directory")
	clitest.Run(t, "run", "--steps", "many", path).FailsEmpty(t, 64, `"many"`)
	for _, size := range []string{"0", "1X", "-1", "", "99999999999G"} {
		clitest.Run(t, "run", "--memory", size, path).FailsEmpty(t, 64, "--memory "+size+": expected a size such as 64M or 2G")
	}
	clitest.Run(t, "run", "--depth", "-1", path).FailsEmpty(t, 64, "--depth -1")
	clitest.Run(t, "run", clitest.TempFile(t, "nomain.ll", "define void @f() {\n  ret void\n}\n")).FailsEmpty(t, 2, "the module defines no @main")
	r := clitest.Run(t, "run", clitest.TempFile(t, "broken.ll", "define i32 @main() {\n  %x = frob i32 1, 2\n  ret i32 %x\n}\n"))
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "broken.ll:2:8: ")
	require.Contains(t, r.Stderr, "\n  %x = frob i32 1, 2\n       ^\n")
}

// TestRunIsInterrupted requires that Ctrl-C and other signals end an endless program with the same status as a native one.
func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	for number, word := range map[syscall.Signal]string{syscall.SIGINT: "interrupt", syscall.SIGTERM: "terminated"} {
		path := clitest.TempFile(t, "p.ll", "declare i32 @puts(ptr)\n@s = constant [3 x i8] c\"on\\00\"\ndefine i32 @main() {\n  %n = call i32 @puts(ptr @s)\n  br label %l\nl:\n  br label %l\n}\n")
		c := clitest.Command(t, "run", path)
		var stderr strings.Builder
		c.Stderr = &stderr
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		var line [3]byte
		_, err = out.Read(line[:])
		require.NoError(t, err)
		require.Equal(t, "on\n", string(line[:]))
		require.NoError(t, c.Process.Signal(number))
		require.Error(t, c.Wait())
		require.True(t, c.ProcessState.Exited(), "%v", c.ProcessState)
		require.Equal(t, 128+int(number), c.ProcessState.ExitCode())
		require.Regexp(t, `^reframe: \S+/p\.ll: @main, block %\w+, line \d: interrupted by a signal: `+word+`\n  \d \| br label %l\n$`, stderr.String())
	}
}
