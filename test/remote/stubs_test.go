package remote_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// stubs holds functions that start a stub for a process, and return the address for --remote.
var stubs = map[string]func(t *testing.T, p *livetest.Process) string{
	"gdbserver by pipe": func(t *testing.T, p *livetest.Process) string {
		return "| " + livetest.Tool(t, "gdbserver") + " --once --attach - " + clitest.PID(p) + " 2>/dev/null"
	},
	"gdbserver by TCP": gdbserver,
	"lldb-server": func(t *testing.T, p *livetest.Process) string {
		port := filepath.Join(t.TempDir(), "port")
		require.NoError(t, syscall.Mkfifo(port, 0o600))
		begin(t, exec.Command(livetest.Tool(t, "lldb-server-19"), "gdbserver", "--attach", clitest.PID(p), "--named-pipe", port, "127.0.0.1:0"))
		text, err := os.ReadFile(port)
		require.NoError(t, err)
		return "127.0.0.1:" + strings.Trim(string(text), "\x00\n")
	},
}

var listening = regexp.MustCompile(`Listening on port (\d+)`)

func gdbserver(t *testing.T, p *livetest.Process) string {
	c := exec.Command(livetest.Tool(t, "gdbserver"), "--attach", "127.0.0.1:0", clitest.PID(p))
	out, err := c.StderrPipe()
	require.NoError(t, err)
	begin(t, c)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the stub
			return "127.0.0.1:" + m[1]
		}
	}
	require.Fail(t, "gdbserver does not listen")
	return ""
}

// begin starts a command that is killed when the test ends.
func begin(t *testing.T, c *exec.Cmd) {
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // an error means that it has ended
		_ = c.Wait()
	})
}

// programs holds functions that start a process and wait until it is at an exit.
var programs = map[string]func(t *testing.T) *livetest.Process{
	"orc":   func(t *testing.T) *livetest.Process { return livetest.Lli(t, 19, "deoptimize.ll", "orc") },
	"mcjit": func(t *testing.T) *livetest.Process { return livetest.Lli(t, 16, "deoptimize.ll", "mcjit") },
	"statepoint": func(t *testing.T) *livetest.Process {
		return livetest.Lli(t, 19, livetest.Module(t, clitest.DerivedPointersModule), "orc")
	},
}

// TestFramesThroughStubs requires that frames prints the same through a stub as with -p, except for the target and suggested commands.
func TestFramesThroughStubs(t *testing.T) {
	for program, start := range programs {
		for stub, hold := range stubs {
			t.Run(program+" "+stub, func(t *testing.T) {
				t.Parallel()
				p := start(t)
				want := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR)
				require.Equal(t, 0, want.Code, want.Stderr)
				wantJSON := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--json").Object(t)
				require.NotEmpty(t, clitest.Frames(t, wantJSON))
				addr := hold(t, p)
				got := clitest.Run(t, "frames", "--remote", addr, "--ir", p.IR)
				require.Equal(t, 0, got.Code, got.Stderr)
				title, rest, _ := strings.Cut(got.Stdout, "\n")
				require.Regexp(t, fmt.Sprintf(`^remote .*  pid %d  .*   x86-64$`, p.PID), title)
				_, wantRest, _ := strings.Cut(want.Stdout, "\n")
				require.Equal(t, wantRest, rest)
				gotJSON := clitest.Run(t, "frames", "--remote", hold2(t, hold, p, addr), "--ir", p.IR, "--json").Object(t)
				require.Equal(t, "remote", gotJSON["target"].(map[string]any)["provider"])
				delete(gotJSON, "target")
				delete(wantJSON, "target")
				require.Equal(t, wantJSON, gotJSON)
			})
		}
	}
}

// hold2 returns the address for a second connection. lldb-server accepts only one connection, so hold2 starts a second lldb-server.
func hold2(t *testing.T, hold func(t *testing.T, p *livetest.Process) string, p *livetest.Process, addr string) string {
	if strings.HasPrefix(addr, "|") || strings.Contains(t.Name(), "TCP") {
		return addr
	}
	require.Eventually(t, func() bool { return clitest.TracerOf(p.PID) == 0 }, livetest.Patience, 5*time.Millisecond)
	return hold(t, p)
}

// TestVerbsThroughStub requires that the other verbs that only read a process work through a stub.
func TestVerbsThroughStub(t *testing.T) {
	livetest.Slow(t)
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	addr := gdbserver(t, p)
	files := []string{"--remote", addr, "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t)}
	verb := func(name string, more ...string) clitest.Result {
		r := clitest.Run(t, append(append([]string{name}, files...), more...)...)
		require.Equal(t, 0, r.Code, "%s: %s%s", name, r.Stdout, r.Stderr)
		return r
	}
	require.Contains(t, verb("resume").Stdout, "sum returned i64 "+clitest.SumOfSquaresBelow1000)
	require.Contains(t, verb("explain").Stdout, "5525")
	r := clitest.Run(t, "maps", "--remote", addr, "--record", "2882400000")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "sum_opt")
	core := filepath.Join(t.TempDir(), "exit.core")
	verb("record", "-o", core)
	want := clitest.Run(t, append([]string{"frames"}, files...)...)
	_, wantFrames, _ := strings.Cut(want.Stdout, "\n")
	got := clitest.Run(t, "frames", "--core", core, "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t))
	_, frames, _ := strings.Cut(got.Stdout, "\n")
	require.Equal(t, wantFrames, frames)
	require.Contains(t, clitest.RunTool(t, livetest.Tool(t, "gdb"), "-batch", "-ex", "bt", livetest.LLVM(t, 19, "lli"), core), "sum_opt")

	for _, refused := range [][]string{{"verify"}, {"stress"}} {
		clitest.Run(t, append(refused, "--remote", addr)...).Fails(t, 64)
	}
	clitest.Run(t, "resume", "--remote", addr, "--commit").Fails(t, 64, "--commit requires a process that runs")
	clitest.Run(t, "frames", "--remote", addr, "-p", "1").Fails(t, 64, "-p and --remote cannot be combined")
	require.NotZero(t, clitest.TracerOf(p.PID), "the stub still holds the process")
}

// TestValgrind requires the frames and source lines of a process that valgrind emulates, although its stub lists no mappings.
func TestValgrind(t *testing.T) {
	program := livetest.Compiled(t, "gcc", filepath.Join("testdata", "depth.c"), "-O0", "-g")
	c := exec.Command(livetest.Tool(t, "valgrind"), "--vgdb=yes", "--vgdb-prefix="+filepath.Join(t.TempDir(), "vgdb"), program)
	prefix := c.Args[2]
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	begin(t, c)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	r := clitest.Run(t, "frames", "--remote", fmt.Sprintf("| vgdb %s --pid=%d 2>/dev/null", prefix, c.Process.Pid))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?s)#0 +native +pause\+.*#1 +native +depth\+0x[0-9a-f]+ +at \S+/depth.c:7\n.*main\+.*_start\+`, r.Stdout)
	require.NotContains(t, r.Stdout, "jit ")
}

func TestNoStub(t *testing.T) {
	dir := t.TempDir()
	for addr, want := range map[string]string{
		"127.0.0.1:1":                          "cannot connect: connection refused",
		"unix:" + filepath.Join(dir, "absent"): "cannot connect: no such file or directory",
		"| true":                               "the stub closed the connection",
		"| echo hello; sleep 1":                "the stub closed the connection",
		"| cat":                                "the stub",
		"| yes":                                "it does not speak the remote serial protocol of gdb",
		"nonsense":                             "cannot connect",
		"| " + livetest.Tool(t, "gdbserver") + " --multi - 2>/dev/null": "the stub holds no process: start one in it",
	} {
		clitest.Run(t, "frames", "--remote", addr, "--timeout", "5s").FailsEmpty(t, 2, want)
	}
	clitest.Run(t, "frames", "--remote", "").Fails(t, 64, "--remote requires an address")
}

// TestStubEndsMidway requires exactly one error, and no frames, if the stub ends after it has sent the registers.
func TestStubEndsMidway(t *testing.T) {
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	addr := gdbserver(t, p)
	relay := relay(t, addr, func(request []byte) bool { // ends at the first read of memory
		return bytes.HasPrefix(request, []byte("$m")) || bytes.HasPrefix(request, []byte("$x"))
	})
	clitest.Run(t, "frames", "--remote", relay, "--ir", p.IR).FailsEmpty(t, 2, "the debugger no longer answers: the stub closed the connection")
}

// relay forwards one connection to a stub, and returns the address at which it accepts the connection. It closes the connection at the first request
// for which ends returns true.
func relay(t *testing.T, stub string, ends func(request []byte) bool) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		stub, err := net.Dial("tcp", stub)
		if err != nil {
			return
		}
		defer stub.Close()
		go func() { _, _ = io.Copy(client, stub) }() // ends with either connection
		b := make([]byte, 64<<10)
		for {
			n, err := client.Read(b)
			if err != nil || ends(b[:n]) {
				return
			}
			if _, err := stub.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	return l.Addr().String()
}
