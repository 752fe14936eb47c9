package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// marked sets an environment variable for a command, and returns a function that lists the running processes that have inherited the variable.
func marked(t *testing.T, c *exec.Cmd) func() []string {
	t.Helper()
	mark := fmt.Sprintf("REFRAME_TEST=%s %d", t.Name(), time.Now().UnixNano())
	c.Env = []string{mark}
	return func() []string {
		environments, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
		var out []string
		for _, path := range environments {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), mark) {
				out = append(out, filepath.Dir(path))
			}
		}
		return out
	}
}

func tellsTheStory(t *testing.T, r clitest.Result) {
	t.Helper()
	require.Equal(t, 0, r.Code, "%s%s", r.Stdout, r.Stderr)
	require.Empty(t, r.Stderr)
	require.Contains(t, r.Stdout, "deoptimize, in call   → sum, block %loop\n")
	require.Contains(t, r.Stdout, "and returns i64 "+clitest.SumOfSquaresBelow1000+" after ")
	require.Regexp(t, `(?m)^the native code runs on and returns to \w+\+0x[0-9a-f]+ with `+clitest.SumOfSquaresBelow1000+`$`, r.Stdout)
	require.Regexp(t, `\nthey agree\n\nstarted another, process \d+, [^\n]* it contains its own description: layout simple \(JIT object 1\), 1 module\n`, r.Stdout)
	require.True(t, strings.HasSuffix(r.Stdout, ordersFrames), r.Stdout)
	require.NotContains(t, r.Stdout, clitest.Escape)
}

// The values are those of internal/demo/target/orders.tvm on the first day on which a price times a count overflows: the sum of 1000 × day² - 50, and
// 0.5.
const ordersFrames = `
      vm Order.total @ 4, reexecute
           local[0]                object 0
           stack[0]         i32    146600                 slot 17
           stack[1]         i32    14660                  slot 19
         inlined into Shop.total @ 18, in call
           local[0]         i32    2000                   slot 6
           local[1]         i32    1466                   slot 8
           local[2]         double 1.0491464917005e+12    slot 10
           extra 2          i64    0                      slot 4
         object 0, not allocated: Order
           +16              i32    146600                 slot 24
           +24              i32    14660                  slot 26
           +32              i32    50                     slot 28
`

// TestDemo requires that the demo runs without PATH, HOME and files, and without privileges, because the program contains everything that it needs.
func TestDemo(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	for _, user := range []string{"root", "nobody"} {
		c := clitest.Command(t, "demo")
		if user == "nobody" {
			clitest.AsNobody(t, c)
		}
		var err error
		c.Dir, err = os.MkdirTemp(filepath.Dir(clitest.Binary()), "empty-") // only root can enter t.TempDir
		require.NoError(t, err)
		require.NoError(t, os.Chmod(c.Dir, 0o777))
		remain := marked(t, c)
		tellsTheStory(t, clitest.Finish(t, c))
		require.Empty(t, remain())
		left, err := os.ReadDir(c.Dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestDemoInterrupted requires that an interrupted demo ends its target.
func TestDemoInterrupted(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for n := range 20 {
		c := exec.Command(clitest.Binary(), "demo")
		remain := marked(t, c)
		require.NoError(t, c.Start())
		time.Sleep(time.Duration(n) * 3 * time.Millisecond) // at various moments of the run
		// An error means that the demo has finished already.
		_ = c.Process.Signal([]os.Signal{os.Interrupt, syscall.SIGTERM}[n%2])
		_ = c.Wait() // it may be killed by the signal, finish or fail
		require.Eventually(t, func() bool { return len(remain()) == 0 }, livetest.Patience, 5*time.Millisecond)
	}
}

// TestDemoKilled requires that the kernel kills the target if the demo is killed while the target is stopped.
func TestDemoKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for n := 0; n < 30; n += livetest.Step(3) {
		c := clitest.Command(t, "demo")
		remain := marked(t, c)
		require.NoError(t, c.Start())
		time.Sleep(time.Duration(n) * 8 * time.Millisecond) // at various moments of the run
		_ = c.Process.Kill()                                // an error means that the demo has finished already
		_ = c.Wait()
		require.Eventually(t, func() bool { return len(remain()) == 0 }, livetest.Patience, time.Millisecond)
	}
}

// TestDemoKeep requires that each command which demo --keep prints works, and that the target outlives the program and its terminal.
func TestDemoKeep(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"go", "kill"} {
		c := clitest.Command(t, "demo", "--keep")
		c.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		r := clitest.Finish(t, c)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Empty(t, r.Stderr)
		pid := regexp.MustCompile(`process (\d+);`).FindStringSubmatch(r.Stdout)[1]
		vm := regexp.MustCompile(`another, process (\d+),`).FindStringSubmatch(r.Stdout)[1]
		var numbers []int
		for _, text := range []string{pid, vm} {
			number, err := strconv.Atoi(text)
			require.NoError(t, err)
			numbers = append(numbers, number)
			t.Cleanup(func() { _ = syscall.Kill(number, syscall.SIGKILL) }) // an error means that it has ended
			session, err := unix.Getsid(number)
			require.NoError(t, err)
			require.Equal(t, number, session)
		}

		lines := regexp.MustCompile(`(?m)^  (.*)$`).FindAllStringSubmatch(r.Stdout, -1)
		require.Len(t, lines, 14)
		ends := []string{"echo > go ", "echo > go-vm ", "kill " + pid + " " + vm + " ", "rm -r "}
		for n, end := range ends {
			require.True(t, strings.HasPrefix(lines[10+n][1], end), r.Stdout)
		}
		dir := strings.TrimPrefix(lines[0][1], "cd ")
		s := clitest.NewShell(t, "/")
		screens := ""
		for n, line := range lines {
			if (n == 10 || n == 11) && mode == "kill" || n == 12 && mode == "go" || n == 13 {
				continue
			}
			screens += "$ " + line[1] + "\n" + s.TypeLine(line[1]+` || printf 'failed: %s\n' $?`)
		}
		require.NotContains(t, screens, "failed: ")
		require.Contains(t, screens, "  #1   jit     sum_opt+0x44 ")
		require.Regexp(t, `(?m)^ +%i +i64 +26 `, screens)
		require.Equal(t, 3, strings.Count(screens, "sum returned i64 "+clitest.SumOfSquaresBelow1000+" after 6819 instructions"), screens)
		require.Contains(t, screens, "the thread continues at call_optimized+0x20")
		require.Contains(t, screens, "using the layout and IR found in the process")
		require.Contains(t, screens, ordersFrames)
		require.Contains(t, screens, "  1    Shop.total @ 18, in call  (frame #1, being deoptimized)")
		for _, number := range numbers {
			// The first process of a container may leave an ended process as a zombie.
			require.Eventually(t, func() bool {
				state := clitest.ThreadStatus(number, number, "State")
				return state == "" || strings.HasPrefix(state, "Z")
			}, livetest.Patience, time.Millisecond)
		}
		written, err := os.ReadFile(filepath.Join(dir, "output"))
		require.NoError(t, err)
		require.Equal(t, map[string]string{"go": "ready\nnative " + clitest.SumOfSquaresBelow1000 + "\n", "kill": "ready\n"}[mode], string(written))
		require.Empty(t, s.TypeLine(lines[13][1]))
		require.NoDirExists(t, dir)
	}
}

// TestDemoKeepElsewhere requires that the target runs from memory if the temporary directory is mounted noexec, and that no file is left if that
// directory does not exist.
func TestDemoKeepElsewhere(t *testing.T) {
	t.Parallel()
	c := clitest.Command(t, "demo", "--keep")
	c.Env = append(os.Environ(), "TMPDIR=/nonexistent")
	clitest.Finish(t, c).FailsEmpty(t, 2, "/nonexistent")

	dir := t.TempDir()
	script := `mount -t tmpfs -o noexec none "$1" && TMPDIR="$1" "$2" demo --keep && cat "$1"/*/output && for go in "$1"/*/go*; do echo > "$go"; done`
	out, err := exec.Command(livetest.Tool(t, "unshare"), "-m", "sh", "-c", script, "sh", dir, clitest.Binary()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "\nready\n")
}
