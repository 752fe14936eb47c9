package livetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Patience bounds the wait for something that takes at most seconds on an idle machine. Only a hang should exceed it, even on a loaded machine.
const Patience = 3 * time.Minute

// Process is a running program. It is killed when its test ends.
type Process struct {
	PID int
	IR  string // path of the .ll file that its JIT compiled; empty for plain C programs

	cmd     *exec.Cmd
	output  transcript
	drained chan struct{} // closed when all output has been read
	exited  chan struct{} // closed when the process has been reaped; err is valid afterwards
	err     error

	switches string // voluntarySwitches of the main thread when it reached its resting place
}

// restingPlace is a state that a process must reach before a test may inspect it.
type restingPlace int

const (
	onItsWay restingPlace = iota // it has printed "ready"
	inPause                      // it has printed "ready", and its main thread is blocked in pause(2)
	inKernel                     // it has printed "ready", and its main thread is blocked in any system call
)

// start runs cmd on a pseudo-terminal. The programs of lli print with puts and never flush, so nothing appears while stdout is a pipe.
func start(t testing.TB, cmd *exec.Cmd, rest restingPlace) *Process {
	t.Helper()
	NeedsTools(t)
	master, slave := Terminal(t)
	cmd.Stdout, cmd.Stderr = slave, slave
	cmd.Dir = t.TempDir() // it may write a core there
	// MCJIT's perf listener writes a dump of each run. Without this variable, on Debian it writes to /tmp/.debug, which is never cleaned up and to
	// which other users cannot write.
	cmd.Env = append(cmd.Environ(), "JITDUMPDIR="+cmd.Dir)
	// Otherwise LLVM symbolizes the stack of a process that aborts, and leaves the symbolizer's files behind if it is killed meanwhile.
	cmd.Env = append(cmd.Env, "LLVM_DISABLE_SYMBOLIZATION=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := startFromLastingThread(cmd)
	slave.Close()
	if err != nil {
		master.Close()
		require.NoError(t, err, "%s", cmd)
	}
	p := &Process{PID: cmd.Process.Pid, cmd: cmd, drained: make(chan struct{}), exited: make(chan struct{})}
	go func() {
		p.output.fill(master)
		master.Close()
		close(p.drained)
	}()
	go func() {
		awaitExit(p.PID)
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.Kill)
	p.await(t, "it prints ready", p.ready)
	switch rest {
	case inPause:
		p.AwaitPause(t)
	case inKernel:
		p.await(t, "its main thread waits in a system call", func() bool { return p.blockedIn() != "" })
	}
	p.switches = p.voluntarySwitches()
	return p
}

// Paused starts a program of the caller's own, and returns when it has printed "ready" and waits in pause(2).
func Paused(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	return start(t, cmd, inPause)
}

// await polls until the condition holds. It fails the test if the process ends first, or after Patience.
func (p *Process) await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(t, "timed out before "+what, "%s\n%s", p.cmd, p.Output())
		}
		select {
		case <-p.drained:
			if !holds() {
				require.FailNow(t, "ended before "+what, "%s\n%s", p.cmd, p.Output())
			}
		default:
		}
	}
}

func (p *Process) ready() bool {
	return strings.Contains("\n"+p.Output(), "\nready\n")
}

// sysPause is the number of pause(2) on x86-64, the only architecture on which processes are tested.
const sysPause = "34"

func (p *Process) paused() bool { return p.blockedIn() == sysPause }

// blockedIn returns the decimal number of the system call that the main thread is blocked in, or "". The first field of /proc/PID/syscall is that
// number, "running", or -1 if the thread is blocked elsewhere (proc(5)).
func (p *Process) blockedIn() string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.PID))
	number, _, several := strings.Cut(string(text), " ")
	if err != nil || !several || number == "-1" {
		return ""
	}
	return number
}

// Output returns the output of the process to stdout and stderr so far.
func (p *Process) Output() string { return p.output.String() }

// AwaitPause waits until the main thread is blocked in pause(2). A thread that is stopped there calls pause again when it resumes (ERESTARTNOHAND).
// If a signal arrives just before that, its handler runs, and pause then waits for another signal.
func (p *Process) AwaitPause(t testing.TB) {
	t.Helper()
	p.await(t, "its main thread waits in pause", p.paused)
}

// SignalInPause sends a signal to a process that waits in pause(2), and returns when its main thread has woken up and waits there again.
func (p *Process) SignalInPause(t testing.TB, s syscall.Signal) {
	t.Helper()
	before := p.voluntarySwitches()
	p.Signal(t, s)
	p.await(t, "its main thread has left pause and waits there again", func() bool { return p.voluntarySwitches() != before && p.paused() })
}

// Disturbed reports whether the main thread has left its resting place since the process was started, because it ran or a tracer stopped it.
func (p *Process) Disturbed() bool { return p.voluntarySwitches() != p.switches }

// voluntarySwitches returns the number of times that the main thread has gone to sleep or stopped (proc_pid_status(5)).
func (p *Process) voluntarySwitches() string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID)) // an error means that it has ended
	_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
	number, _, _ := strings.Cut(rest, "\n")
	return number
}

// Signal sends a signal to the process. If the signal must end pause(2), call [Process.AwaitPause] first.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// Alive reports whether the process exists and has not exited. A zombie is not alive.
func (p *Process) Alive() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return false
	}
	// The command name, in parentheses, may contain any character: the state follows the last parenthesis.
	state := text[bytes.LastIndexByte(text, ')')+1:]
	return len(state) > 1 && state[1] != 'Z' && state[1] != 'X'
}

// Wait waits for the process to end by itself and returns the error of exec.Cmd.Wait. Afterwards Output returns all its output.
func (p *Process) Wait() error {
	<-p.exited
	<-p.drained
	return p.err
}

// Kill ends the process with SIGKILL, which also ends a stopped process, and waits for its end.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // an error means that it has ended already
	<-p.exited
}

// awaitExit blocks until a child has ended. A plain wait would consume the stops that ptrace reports to a test that captures its own child: the
// kernel reports them to the first thread of the process that waits (ptrace(2)).
func awaitExit(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended already, and Wait returns at once
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// startFromLastingThread starts cmd from a thread that lives as long as this program. The kernel sends the parent-death signal when the thread that
// forked ends, and a test that locks a goroutine to its thread for ptrace may end that thread.
func startFromLastingThread(cmd *exec.Cmd) error {
	starter.Do(func() {
		go func() {
			runtime.LockOSThread()
			for r := range starts {
				r.result <- r.cmd.Start()
			}
		}()
	})
	r := startRequest{cmd, make(chan error)}
	starts <- r
	return <-r.result
}

type startRequest struct {
	cmd    *exec.Cmd
	result chan error
}

var (
	starter sync.Once
	starts  = make(chan startRequest)
)
