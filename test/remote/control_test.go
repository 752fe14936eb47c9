package remote_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// launches holds functions that start a program in a stub, and return reframe's flags for it.
var launches = map[string]func(t *testing.T, command []string) []string{
	"gdbserver": func(t *testing.T, command []string) []string {
		return []string{"--remote", "| exec " + livetest.Tool(t, "gdbserver") + " --once - " + strings.Join(command, " ") + " >&1 2>/dev/null"}
	},
	"lldb-server": func(t *testing.T, command []string) []string {
		port := filepath.Join(t.TempDir(), "port")
		require.NoError(t, syscall.Mkfifo(port, 0o600))
		begin(t, exec.Command(livetest.Tool(t, "lldb-server-19"), append([]string{"gdbserver", "--named-pipe", port, "127.0.0.1:0", "--"}, command...)...))
		text, err := os.ReadFile(port)
		require.NoError(t, err)
		return []string{"--remote", "127.0.0.1:" + strings.Trim(string(text), "\x00\n")}
	},
	"valgrind": func(t *testing.T, command []string) []string {
		prefix := filepath.Join(t.TempDir(), "vgdb")
		c := exec.Command(livetest.Tool(t, "valgrind"), append([]string{"--vgdb=full", "--vgdb-error=0", "--vgdb-prefix=" + prefix}, command...)...)
		begin(t, c)
		require.Eventually(t, func() bool {
			made, err := filepath.Glob(prefix + "-from-vgdb-to-*")
			return err == nil && len(made) > 0
		}, livetest.Patience, 5*time.Millisecond)
		return []string{"--exe", command[0], "--remote", fmt.Sprintf("| vgdb --vgdb-prefix=%s --pid=%d 2>/dev/null", prefix, c.Process.Pid)}
	},
}

// exitsOf returns the lines of a trace without times, as one list for each thread, sorted.
func exitsOf(text string) []string {
	threads := map[string]string{}
	for line := range strings.Lines(text) {
		if m := exitLine.FindStringSubmatch(line); m != nil {
			threads[m[1]] += m[2] + "\n"
		}
	}
	var list []string
	for _, lines := range threads {
		list = append(list, lines)
	}
	slices.Sort(list)
	return list
}

var exitLine = regexp.MustCompile(`^\d+\.\d{6}  (\d+)(?: \S+)?  (.*)\n$`)

// TestTraceThroughStubs requires that trace reports the same exits with a stub as without: of several threads, of code that is unloaded and loaded
// again, of a process that forks, spawns or executes another program, and with many signals.
func TestTraceThroughStubs(t *testing.T) {
	livetest.NeedsTools(t)
	object, module := clitest.TickObject(t)
	for name, o := range map[string]livetest.ObjectHostOptions{
		"threads": {Threads: 2}, "unload": {Rounds: 2, Unload: 1}, "fork": {Middle: "fork"}, "spawn": {Middle: "spawn"},
		"exec": {Rounds: 2, Middle: "exec"}, "signals": {Signals: true},
	} {
		for stub, launch := range launches {
			// Lldb-server 19 reports an exec only of the first thread.
			if stub == "valgrind" && name != "threads" || stub == "lldb-server" && name == "exec" {
				continue
			}
			t.Run(name+" "+stub, func(t *testing.T) {
				t.Parallel()
				command := livetest.ObjectHostCommand(t, object, o)
				exits := filepath.Join(t.TempDir(), "exits")
				want := clitest.Run(t, append([]string{"trace", "--ir", module, "-o", exits, "--"}, command...)...)
				require.Equal(t, 0, want.Code, want.Stderr)
				text, err := os.ReadFile(exits)
				require.NoError(t, err)
				require.NotEmpty(t, exitsOf(string(text)))

				got := clitest.Run(t, append([]string{"trace", "--ir", module, "--wait"}, launch(t, command)...)...)
				require.Equal(t, 0, got.Code, got.Stderr)
				require.Equal(t, exitsOf(string(text)), exitsOf(got.Stdout))
				require.Contains(t, got.Stderr, "the process exited with status 0\n")
			})
		}
	}
}

// session holds commands for debug that run the process and show its state.
const session = `break 1 if %i == 500
continue
bt
locals
print %acc + 1
step 3
back
leave
registers
disassemble
x/4gx $rsp
delete
tbreak 1
continue
print %i
threads
continue
`

// TestDebugThroughStubs requires that a session prints the same with a stub as without. Addresses may differ, because stubs disable address
// randomization.
func TestDebugThroughStubs(t *testing.T) {
	livetest.NeedsTools(t)
	object, module := clitest.TickObject(t)
	script := clitest.TempFile(t, "session.txt", session)
	command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
	numbers := regexp.MustCompile(`thread +\d+|0x[0-9a-f]+|unavailable: r\d+: .*|checksum \d+`)
	said := func(text string) string {
		_, text, _ = strings.Cut(text, "(reframe) ")
		return strings.ReplaceAll(numbers.ReplaceAllString(text, "N"), "\nN\nthe process", "\nthe process") // removes the program's output
	}
	want := clitest.Run(t, append([]string{"debug", "--ir", module, "-x", script, "--"}, command...)...)
	require.Equal(t, 0, want.Code, want.Stderr)
	require.Contains(t, want.Stdout, "%i       i64    500")
	for stub, launch := range launches {
		if stub == "valgrind" { // under valgrind, the frames below the program's and the addresses of the stack are different
			continue
		}
		t.Run(stub, func(t *testing.T) {
			t.Parallel()
			got := clitest.Run(t, append([]string{"debug", "--ir", module, "-x", script}, launch(t, command)...)...)
			require.Equal(t, 0, got.Code, got.Stderr)
			require.Equal(t, said(want.Stdout), said(got.Stdout))
		})
	}
}

// TestRefusedThroughStub requires that the error of an operation which the stub does not support names the stub, and that the session remains usable.
func TestRefusedThroughStub(t *testing.T) {
	livetest.NeedsTools(t)
	object, module := clitest.TickObject(t)
	for command, want := range map[string]string{
		"both":   "the debugger does not support it: running one thread while the others are stopped",
		"bisect": "the debugger does not support it: running one thread while the others are stopped",
		"commit": "the debugger does not support it: writing into the process",
	} {
		script := clitest.TempFile(t, "session.txt", "break 1\ncontinue\n"+command+"\n")
		args := launches["gdbserver"](t, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{}))
		r := clitest.Run(t, append([]string{"debug", "--ir", module, "-x", script}, args...)...)
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stderr, want)
		require.NotContains(t, r.Stdout, "they agree")
	}
}

// TestEndOfTraceThroughStub requires that, after an interrupted trace, the process continues with its original code.
func TestEndOfTraceThroughStub(t *testing.T) {
	livetest.NeedsTools(t)
	object, module := clitest.TickObject(t)
	for stub, hold := range stubs {
		t.Run(stub, func(t *testing.T) {
			t.Parallel()
			p, start := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 20})
			c := clitest.Command(t, "trace", "--remote", hold(t, p), "--ir", module)
			out, err := c.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, c.Start())
			clitest.WaitTraced(t, p)
			start()
			lines := bufio.NewReader(out)
			for range 3 {
				line, err := lines.ReadString('\n')
				require.NoError(t, err)
				require.Regexp(t, clitest.TickExitLine, strings.TrimSuffix(line, "\n"))
			}
			require.NoError(t, c.Process.Signal(os.Interrupt))
			for {
				if _, err := lines.ReadString('\n'); err != nil {
					break
				}
			}
			require.Error(t, c.Wait())
			require.Equal(t, 130, c.ProcessState.ExitCode())
			require.NoError(t, p.Wait())
			checksum, _ := livetest.CVersion(t, "tick.ll", livetest.ObjectHostOptions{Rounds: 20})
			require.Contains(t, p.Output(), checksum)
		})
	}
}

// TestLookThroughStub requires that a session which does not run the process leaves it stopped in the stub.
func TestLookThroughStub(t *testing.T) {
	livetest.NeedsTools(t)
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	addr := gdbserver(t, p)
	script := clitest.TempFile(t, "session.txt", "bt\nlocals\n")
	for range 2 {
		r := clitest.Run(t, "debug", "--remote", addr, "--ir", p.IR, "-x", script)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, "5525")
		require.NotZero(t, clitest.TracerOf(p.PID), "the stub still holds the process")
	}
}

// TestControlInQEMU requires the values of a record at a breakpoint in a program that QEMU emulates.
func TestControlInQEMU(t *testing.T) {
	livetest.NeedsTools(t)
	for n := range livetest.Crosses {
		c := &livetest.Crosses[n]
		if _, known := targets[c.Arch]; !known {
			continue
		}
		t.Run(c.Arch, func(t *testing.T) {
			t.Parallel()
			program, module := qemuProgram(t, c)
			s := c.Stub(t, program)
			defer s.Close()
			r := clitest.Run(t, "trace", "--remote", "unix:"+s.Serve(), "--exe", program, "--ir", module)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Regexp(t, `^\S+  \d+  work\+0x[0-9a-f]+  record 7 stackmap  %a=120 %small=-2 %d=2\.5 #3=-5\n$`, r.Stdout)
			require.Contains(t, r.Stderr, "the process exited with status 0\n")

			s = c.Stub(t, program)
			defer s.Close()
			script := clitest.TempFile(t, "session.txt", "break 7\ncontinue\nlocals\ncontinue\n")
			r = clitest.Run(t, "debug", "--remote", "unix:"+s.Serve(), "--exe", program, "--ir", module, "-x", script)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Contains(t, r.Stdout, "breakpoint 1, record 7")
			require.Regexp(t, `%d +double +2\.5`, r.Stdout)
		})
	}
}

// TestStubEndsDuringTrace requires exactly one error if the stub ends while breakpoints are set.
func TestStubEndsDuringTrace(t *testing.T) {
	livetest.NeedsTools(t)
	object, module := clitest.TickObject(t)
	p, start := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 200})
	addr := gdbserver(t, p)
	stub := clitest.TracerOf(p.PID)
	c := clitest.Command(t, "trace", "--remote", addr, "--ir", module)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var failed strings.Builder
	c.Stderr = &failed
	require.NoError(t, c.Start())
	start()
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(stub, syscall.SIGKILL))
	for err == nil {
		_, err = lines.ReadString('\n')
	}
	require.Error(t, c.Wait())
	require.Equal(t, 2, c.ProcessState.ExitCode())
	require.Equal(t, 1, strings.Count(failed.String(), "reframe: "+addr+": "), failed.String())
	require.Contains(t, failed.String(), "the debugger no longer answers: the stub closed the connection")
}

// TestStubEndsAtAHit requires exactly one error, and no panic, if the stub ends at any request after the first hit.
func TestStubEndsAtAHit(t *testing.T) {
	livetest.NeedsTools(t)
	object, module := clitest.TickObject(t)
	for last := range 10 { // two of the requests read the thread at the exit
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			p, start := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 200})
			hit, requests := false, 0
			addr := relay(t, gdbserver(t, p), func(request []byte) bool {
				switch {
				case hit && bytes.HasPrefix(request, []byte("$")):
					requests++
				case bytes.HasPrefix(request, []byte("$vCont;c")):
					hit = true
				}
				return requests > last
			})
			start()
			r := clitest.Run(t, "trace", "--remote", addr, "--ir", module)
			require.Equal(t, 2, r.Code, r.Stderr)
			require.Equal(t, 1, strings.Count(r.Stderr, "the debugger no longer answers: the stub closed the connection"), r.Stderr)
		})
	}
}
