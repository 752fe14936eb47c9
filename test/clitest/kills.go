package clitest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/livetest"
)

// Victim is a program that tests trace and whose tracer they end. It continuously reaches exits of optimized code.
type Victim struct {
	Name, Program string
	Options       livetest.ObjectHostOptions
}

// Victims are the programs to trace. Each program without Middle runs long enough to be stopped before it ends.
var Victims = []Victim{
	{"one thread", "tick.ll", livetest.ObjectHostOptions{Rounds: 60000}},
	{"16 threads", "tick.ll", livetest.ObjectHostOptions{Threads: 16, Rounds: 4000}},
	{"guards", "guards.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 40000}},
	{"statepoints", "state.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 40000}},
	{"signals", "tick.ll", livetest.ObjectHostOptions{Threads: 4, Rounds: 8000, Signals: true}},
	{"unload", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 600, Unload: 1}},
	{"threads come and go", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 20000, Churn: 500}},
	// Floating-point instructions are single-stepped while all other threads are stopped. The programs above need no steps, because their
	// instructions are emulated.
	{"stepped", "floats.ll", livetest.ObjectHostOptions{Threads: 16, Rounds: 600000}},
	{"stepped, signals", "floats.ll", livetest.ObjectHostOptions{Threads: 4, Rounds: 20000, Signals: true}},
	{"stepped, fork", "floats.ll", livetest.ObjectHostOptions{Threads: 4, Rounds: 400, Middle: "fork"}},
	{"fork", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 4, Middle: "fork"}},
	{"spawn", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 4, Middle: "spawn"}},
	{"exec", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 4, Middle: "exec"}},
}

// Watching is a running reframe, with the streams of its output.
type Watching struct {
	*exec.Cmd
	Reader, Terminal *os.File
}

// Ending is a way to end reframe from outside.
type Ending struct {
	Name   string
	Args   []string
	Attach bool // it also ends a command that reframe has started, as it would without reframe
	Writes bool // it ends reframe only at reframe's next write, and so not while the process is stopped
	End    func(w Watching) error
}

func BySignal(signals ...syscall.Signal) Ending {
	w := Ending{End: func(w Watching) error {
		for _, s := range signals {
			if err := w.Process.Signal(s); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, s := range signals {
		w.Name += unix.SignalName(s) + " "
	}
	return w
}

var Endings = []Ending{
	BySignal(syscall.SIGKILL),
	BySignal(syscall.SIGINT),
	BySignal(syscall.SIGTERM),
	BySignal(syscall.SIGHUP),
	BySignal(syscall.SIGQUIT), // Go prints a trace of its goroutines, as after a panic
	BySignal(syscall.SIGSTOP, syscall.SIGKILL),
	BySignal(syscall.SIGTERM, syscall.SIGKILL),
	{Name: "its group killed", Attach: true, End: func(w Watching) error { return unix.Kill(-w.Process.Pid, unix.SIGKILL) }},
	{Name: "reader gone", Writes: true, End: func(w Watching) error { return w.Reader.Close() }},
	{Name: "disk full", Args: []string{"-o", "/dev/full"}, Writes: true, End: func(Watching) error { return nil }},
	{Name: "terminal gone", Attach: true, End: func(w Watching) error { return w.Terminal.Close() }},
}

// Watch starts reframe. If stdout is nil, it gets a terminal of its own.
func Watch(t *testing.T, stdout *os.File, args ...string) Watching {
	t.Helper()
	c := Command(t, args...)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	c.Stdout, c.Stderr = stdout, w
	var master *os.File
	if stdout == nil {
		var slave *os.File
		master, slave = livetest.Terminal(t)
		defer slave.Close()
		c.Stdin, c.Stdout = slave, w
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	require.NoError(t, c.Start())
	go io.Copy(io.Discard, r) // until reframe ends or closes its end
	return Watching{c, r, master}
}

// Over waits until reframe and its tracer process have ended.
func (w Watching) Over(t *testing.T, tracing int) {
	t.Helper()
	_ = w.Wait() // the error depends on how the test ended it
	w.Reader.Close()
	if w.Terminal != nil {
		w.Terminal.Close()
	}
	// Unless reframe has waited for the tracer, the tracer is now a child of this process.
	require.Eventually(t, func() bool {
		var ws unix.WaitStatus
		got, err := unix.Wait4(tracing, &ws, unix.WNOHANG, nil)
		return err == unix.ECHILD && Ended(tracing) || got == tracing
	}, livetest.Patience, time.Millisecond, "the tracer stays")
}

func Ended(pid int) bool {
	state := ThreadStatus(pid, pid, "State")
	return state == "" || state[0] == 'Z'
}

// RequireRestored requires that a stopped process has no tracer and that its code is unchanged. compared is false if the process had ended before.
func RequireRestored(t *testing.T, pid int, code map[uint64][]byte) (compared bool) {
	t.Helper()
	if !AllThreadsStop(t, pid) {
		return false
	}
	require.Equal(t, "0", ThreadStatus(pid, pid, "TracerPid"))
	for at, is := range ExecutableMemory(t, pid) {
		if was, known := code[at]; known && len(was) == len(is) {
			require.True(t, bytes.Equal(was, is), "the code at %#x", at)
			compared = true
		}
	}
	return compared
}

// AllThreadsStop waits until all threads of a process are stopped, and returns false if the process has ended.
func AllThreadsStop(t *testing.T, pid int) (stopped bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		stopped = true
		for _, tid := range Threads(pid) {
			stopped = stopped && strings.HasPrefix(ThreadStatus(pid, tid, "State"), "T")
		}
		return stopped || Ended(pid)
	}, livetest.Patience, time.Millisecond)
	return !Ended(pid)
}

// TracedHost returns the processes of the tracer and of the host that a reframe has started. Both are 0 if they ended before they were found.
func TracedHost(t *testing.T, pid int) (tracing, process int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if tracing = ChildOf(pid); tracing != 0 {
			process = ChildOf(tracing)
		}
		return process != 0 && ThreadStatus(process, process, "Name") == "obj_host" || Ended(pid)
	}, livetest.Patience, time.Millisecond)
	return tracing, process
}

// RequireEndedWell requires that the exit status of a host is 0. If the host was released before TracedHost found it, process is 0.
func RequireEndedWell(t *testing.T, process int) {
	t.Helper()
	var ws unix.WaitStatus
	if process == 0 {
		// The host was released before TracedHost found it.
	} else if _, err := unix.Wait4(process, &ws, 0, nil); err == nil { // otherwise the tracer has collected its status
		require.True(t, ws.Exited() && ws.ExitStatus() == 0, "%#x", ws)
	}
}

// RequireFinished requires that a program has printed the same output as without a tracer.
func RequireFinished(t *testing.T, v Victim, output string) {
	t.Helper()
	checksum, child := livetest.CVersion(t, v.Program, v.Options)
	require.Contains(t, output, checksum)
	if v.Options.Middle == "fork" {
		require.Contains(t, output, child)
	}
}

// ExecutableMemory returns all executable memory of a process by its addresses.
func ExecutableMemory(t *testing.T, pid int) map[uint64][]byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	defer memory.Close()
	all := map[uint64][]byte{}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var rights string
		_, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights)
		require.NoError(t, err)
		if strings.Contains(rights, "x") && !strings.Contains(line, "[vsyscall]") {
			all[from] = make([]byte, to-from)
			_, err := memory.ReadAt(all[from], int64(from))
			require.NoError(t, err, line)
		}
	}
	return all
}

// TracerOf returns the process that traces another.
func TracerOf(pid int) int {
	n, _ := strconv.Atoi(ThreadStatus(pid, pid, "TracerPid")) // the kernel writes a valid number
	return n
}

// ChildOf returns a child of the process parent, or 0 if it has none. It ignores the watchdog of a tracer.
func ChildOf(parent int) int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, dir := range dirs {
		if n, err := strconv.Atoi(filepath.Base(dir)); err == nil && ThreadStatus(n, n, "PPid") == strconv.Itoa(parent) && ThreadStatus(n, n, "Name") != "rf-watchdog" {
			return n
		}
	}
	return 0
}
