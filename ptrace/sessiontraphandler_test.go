package ptrace

import (
	"bufio"
	"context"
	"debug/elf"
	"flag"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// trapped is a process of traps.c.
type trapped struct {
	*testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
	site  machine.Addr
}

// trapsProgram is the path of the compiled traps.c. test/arm64 sets it, for a machine without a compiler.
var trapsProgram = flag.String("traps", "", "the program of traps.c")

func startTraps(t *testing.T, mode string) *trapped {
	t.Helper()
	path := *trapsProgram
	if path == "" {
		path = livetest.CBinary(t, "../ptrace/testdata/traps.c", "-no-pie")
	}
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer file.Close()
	all, err := file.Symbols()
	require.NoError(t, err)
	p := &trapped{T: t, cmd: exec.Command(path, mode)}
	p.site = machine.Addr(all[slices.IndexFunc(all, func(s elf.Symbol) bool { return s.Name == "site" })].Value)
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.lines = bufio.NewReader(out)
	require.Equal(t, "ready", p.line())
	return p
}

func (p *trapped) pid() int { return p.cmd.Process.Pid }

func (p *trapped) line() string {
	p.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		require.NoError(p, err, "ended by %v", p.ended())
	}
	return strings.TrimSpace(line)
}

// order sends a command to the process.
func (p *trapped) order(what string) {
	p.Helper()
	_, err := io.WriteString(p.stdin, what)
	require.NoError(p, err)
}

// says sends a command that the process answers with a line.
func (p *trapped) says(what string) string {
	p.Helper()
	p.order(what)
	return p.line()
}

// ended returns the signal that ended the process.
func (p *trapped) ended() syscall.Signal {
	_ = p.cmd.Wait() // returns an error, because a signal ends it
	return p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
}

// trace opens a session with a breakpoint at the site, and resumes the process.
func (p *trapped) trace(o Breakpoint) *Session {
	p.Helper()
	s, err := Open(context.Background(), p.pid())
	require.NoError(p, err)
	p.Cleanup(func() { _ = s.Detach() }) // has no effect if the test has detached already
	o.Addr = p.site
	require.NoError(p, s.Insert(o))
	_, err = s.Next(cancelled())
	require.ErrorIs(p, err, context.Canceled)
	watchdogHolds(p.T, tracerPID(s))
	return s
}

const sumOfTraps = "1000000"

// TestTrapHandlerIsTakenOut requires that a process has the SIGTRAP handler only while it is traced. Before and after that, and in a child that it
// forks meanwhile, it must have the default action and no additional pages.
func TestTrapHandlerIsTakenOut(t *testing.T) {
	p := startTraps(t, "plain")
	maps := func() string {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid()) + "/maps")
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, "default", p.says("a"))
	code, before := p.says("m"), maps()
	s := p.trace(Breakpoint{})
	require.Empty(t, s.memory.unhandled)
	require.Equal(t, "other", p.says("a"))
	require.NotEqual(t, code, p.says("m"))
	require.Equal(t, sumOfTraps, p.says("c"))
	require.Equal(t, "default "+code, p.says("f"))
	require.Equal(t, "other", p.says("a"))
	require.NoError(t, s.Detach())
	require.Equal(t, "default", p.says("a"))
	require.Equal(t, code, p.says("m"))
	require.Equal(t, before, maps())
	require.Equal(t, sumOfTraps, p.says("c"))
	p.order("i")
	require.Equal(t, syscall.SIGTRAP, p.ended())
}

// TestTrapHandlerOfTheProgram requires that the program's own SIGTRAP handler stays.
func TestTrapHandlerOfTheProgram(t *testing.T) {
	p := startTraps(t, "own")
	code := p.says("m")
	s := p.trace(Breakpoint{})
	require.Equal(t, "the process handles SIGTRAP itself", s.memory.unhandled)
	require.Equal(t, "own", p.says("a"))
	require.Equal(t, code, p.says("m"))
	require.Equal(t, sumOfTraps, p.says("c"))
	require.NoError(t, s.Detach())
	require.Equal(t, "own", p.says("a"))
}

// TestTrapHandlerUnderAFilter requires that a process survives if its seccomp filter would kill it at the system calls that install the handler. A
// tracer of root makes these calls without the filter; that of another user does not make them.
func TestTrapHandlerUnderAFilter(t *testing.T) {
	p := startTraps(t, "filter")
	s := p.trace(Breakpoint{})
	if why := s.memory.unhandled; os.Geteuid() == 0 {
		require.Empty(t, why)
	} else {
		require.Contains(t, why, "a seccomp filter of the process may forbid it, and cannot be suspended: ")
	}
	require.Equal(t, sumOfTraps, p.says("c"))
	require.NoError(t, s.Detach())
	require.Equal(t, sumOfTraps, p.says("c"))
	p.order("a")
	require.Equal(t, syscall.SIGSYS, p.ended()) // the filter still applies
}

// TestTrapHandlerIsTheDefault requires that a SIGTRAP that the program raises itself ends the process as without a tracer, both while it is traced
// and after all three processes of reframe were killed.
func TestTrapHandlerIsTheDefault(t *testing.T) {
	traps := []string{"i", "s"}
	if runtime.GOARCH == "amd64" {
		traps = append(traps, "1")
	}
	for _, own := range traps {
		for _, killed := range []bool{false, true} {
			p := startTraps(t, "plain")
			s := p.trace(Breakpoint{})
			if killed {
				killAll(t, s)
				require.Equal(t, "other", p.says("a"))
			}
			p.order(own)
			if !killed {
				for {
					e, err := s.Next(context.Background())
					require.NoError(t, err)
					if e.Kind == Ended {
						require.Equal(t, int(syscall.SIGTRAP), e.Signal)
						break
					}
				}
			}
			require.Equal(t, syscall.SIGTRAP, p.ended())
		}
	}
}

// killAll kills the watchdog and the tracer of a session.
func killAll(t *testing.T, s *Session) {
	t.Helper()
	watchdog, err := strconv.Atoi(strings.TrimSpace(system.StatusField(tracerPID(s), "TracerPid")))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(watchdog, syscall.SIGKILL))
	require.NoError(t, syscall.Kill(tracerPID(s), syscall.SIGKILL))
	_, err = s.Next(context.Background())
	require.Error(t, err)
}

// TestTrapHandlerAlone requires that, without tracer and watchdog, the handler restores the code or lets a thread pass a debug register, and that a
// later session removes the handler.
func TestTrapHandlerAlone(t *testing.T) {
	for _, hardware := range []bool{false, true} {
		t.Log("in debug registers:", hardware)
		p := startTraps(t, "plain")
		code := p.says("m")
		killAll(t, p.trace(Breakpoint{Hardware: hardware}))
		require.Equal(t, sumOfTraps, p.says("c"))
		require.Equal(t, "other", p.says("a"))
		s := p.trace(Breakpoint{})
		require.Empty(t, s.memory.unhandled)
		require.Equal(t, sumOfTraps, p.says("c"))
		require.NoError(t, s.Detach())
		require.Equal(t, "default", p.says("a"))
		require.Equal(t, code, p.says("m"))
		require.Equal(t, sumOfTraps, p.says("c"))
	}
}

// TestTrapHandlerIsSalvaged requires that reframe removes the handler of a tracer that was killed.
func TestTrapHandlerIsSalvaged(t *testing.T) {
	p := startTraps(t, "plain")
	code := p.says("m")
	s := p.trace(Breakpoint{})
	require.NoError(t, syscall.Kill(tracerPID(s), syscall.SIGKILL))
	require.ErrorContains(t, s.Detach(), "the guard process was killed: the code under 1 breakpoints was restored")
	require.Equal(t, "default", p.says("a"))
	require.Equal(t, code, p.says("m"))
	require.Equal(t, sumOfTraps, p.says("c"))
}

// TestTrapHandlerIsRestored requires that the handler is installed again soon after a thread with SIGTRAP blocked has hit a breakpoint, because the
// kernel then resets the action.
func TestTrapHandlerIsRestored(t *testing.T) {
	p := startTraps(t, "blocked")
	s := p.trace(Breakpoint{})
	require.Equal(t, sumOfTraps, p.says("c"))
	handled := func() bool {
		caught, err := strconv.ParseUint(system.StatusField(p.pid(), "SigCgt"), 16, 64)
		return err == nil && caught>>(syscall.SIGTRAP-1)&1 != 0
	}
	require.Eventually(t, handled, livetest.Patience, time.Millisecond)
	require.NoError(t, s.Detach())
	require.Equal(t, "default", p.says("a"))
}
