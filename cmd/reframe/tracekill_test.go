package main_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
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

	"reframe/internal/livetest"
)

// victim is a program that constantly leaves optimized code.
type victim struct {
	name, program string
	options       livetest.ObjectHostOptions
}

// Those without an event halfway run long enough without reframe that they can be stopped before they end.
var victims = []victim{
	{"one thread", "tick.ll", livetest.ObjectHostOptions{Rounds: 60000}},
	{"16 threads", "tick.ll", livetest.ObjectHostOptions{Threads: 16, Rounds: 4000}},
	{"guards", "guards.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 40000}},
	{"statepoints", "state.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 40000}},
	{"signals", "tick.ll", livetest.ObjectHostOptions{Threads: 4, Rounds: 8000, Signals: true}},
	{"unload", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 600, Unload: 1}},
	{"threads come and go", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 20000, Churn: 500}},
	// Instructions on floating-point numbers are run while all other threads are stopped; those above are emulated.
	{"stepped", "floats.ll", livetest.ObjectHostOptions{Threads: 16, Rounds: 600000}},
	{"stepped, signals", "floats.ll", livetest.ObjectHostOptions{Threads: 4, Rounds: 20000, Signals: true}},
	{"stepped, fork", "floats.ll", livetest.ObjectHostOptions{Threads: 4, Rounds: 400, Middle: "fork"}},
	{"fork", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 4, Middle: "fork"}},
	{"spawn", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 4, Middle: "spawn"}},
	{"exec", "tick.ll", livetest.ObjectHostOptions{Threads: 2, Rounds: 4, Middle: "exec"}},
}

// watching is a running reframe, and the streams of its output.
type watching struct {
	*exec.Cmd
	reader, terminal *os.File
}

// way is a way to end reframe from outside.
type way struct {
	name   string
	args   []string
	attach bool // it would end a command too that reframe has started, as it does without reframe
	writes bool // reframe ends at its next write: not while the process is stopped
	end    func(w watching) error
}

func bySignal(signals ...syscall.Signal) way {
	w := way{end: func(w watching) error {
		for _, s := range signals {
			if err := w.Process.Signal(s); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, s := range signals {
		w.name += unix.SignalName(s) + " "
	}
	return w
}

var ways = []way{
	bySignal(syscall.SIGKILL),
	bySignal(syscall.SIGINT),
	bySignal(syscall.SIGTERM),
	bySignal(syscall.SIGHUP),
	bySignal(syscall.SIGQUIT), // of which Go dies as of a panic that nobody catches
	bySignal(syscall.SIGSTOP, syscall.SIGKILL),
	bySignal(syscall.SIGTERM, syscall.SIGKILL),
	{name: "its group killed", attach: true, end: func(w watching) error { return unix.Kill(-w.Process.Pid, unix.SIGKILL) }},
	{name: "reader gone", writes: true, end: func(w watching) error { return w.reader.Close() }},
	{name: "disk full", args: []string{"-o", "/dev/full"}, writes: true, end: func(watching) error { return nil }},
	{name: "terminal gone", attach: true, end: func(w watching) error { return w.terminal.Close() }},
}

// A process whose watcher is ended at any moment and in any way finishes as if it had not been watched, and nothing of the watcher remains: no byte
// of its code, no tracer. With FIDELITY=all every victim is combined with every way, which makes 440 watchers; otherwise with a twelfth of them.
func TestWatcherKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	// A process whose parent was killed becomes this process's child (PR_SET_CHILD_SUBREAPER(2const)).
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	random := rand.New(rand.NewPCG(6, 6))
	before := time.Now()
	killed, compared := 0, 0
	for n, v := range victims {
		for m, w := range ways {
			for k, verb := range []string{"trace", "verify"} {
				halfway := v.options.Middle != ""
				if verb == "verify" && halfway { // it would be long on its way
					continue
				}
				if livetest.Out(12, n+m+k) { // each way and each victim still several times
					continue
				}
				args := append([]string{verb, "--ir", livetest.IR(t, 19, v.program)}, w.args...)
				if verb == "verify" {
					args = append(args, "--all")
				}
				stop := m%2 == 0 && !w.writes && !halfway
				pause := time.Duration(random.IntN(150)) * time.Millisecond
				t.Run(fmt.Sprintf("%s, %s, %s", verb, v.name, w.name), func(t *testing.T) {
					killed++
					if killAttached(t, v, w, args, pause, stop) {
						compared++
					}
					if !w.attach {
						killed++
						killLaunched(t, v, w, args, pause)
					}
				})
			}
		}
	}
	t.Logf("%d watchers were killed in %v; the code of %d processes was compared", killed, time.Since(before), compared)
	require.Greater(t, compared, 4)
}

// watch starts reframe, with a terminal of its own unless stdout is given.
func watch(t *testing.T, stdout *os.File, args ...string) watching {
	t.Helper()
	c := command(t, args...)
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
	go io.Copy(io.Discard, r) // until its end, or ours
	return watching{c, r, master}
}

// over waits until reframe and its tracer have ended.
func (w watching) over(t *testing.T, tracing int) {
	t.Helper()
	_ = w.Wait() // how it ended is what the test did
	w.reader.Close()
	if w.terminal != nil {
		w.terminal.Close()
	}
	// The tracer is now this process's child, unless reframe has waited for it.
	require.Eventually(t, func() bool {
		var ws unix.WaitStatus
		got, err := unix.Wait4(tracing, &ws, unix.WNOHANG, nil)
		return err == unix.ECHILD && gone(tracing) || got == tracing
	}, livetest.Patience, time.Millisecond, "the tracer stays")
}

func gone(pid int) bool {
	state := status(pid, pid, "State")
	return state == "" || state[0] == 'Z'
}

// killAttached ends a reframe that has attached itself. compared reports whether the code of the process could be compared with its earlier code.
func killAttached(t *testing.T, v victim, w way, args []string, pause time.Duration, stop bool) (compared bool) {
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, v.program, "-O2"), v.options)
	code := executable(t, p.PID)
	c := watch(t, nil, append(args[:len(args):len(args)], "-p", pid(p))...)
	traced(t, p)
	tracing := tracer(p.PID)
	begin()
	time.Sleep(pause)
	if err := w.end(c); err != nil {
		require.ErrorIs(t, err, os.ErrProcessDone)
	}
	if stop {
		_ = unix.Kill(p.PID, unix.SIGSTOP) // it may have ended
	}
	c.over(t, tracing)
	compared = stop && restored(t, p.PID, code)
	_ = unix.Kill(p.PID, unix.SIGCONT)
	require.NoError(t, p.Wait(), p.Output())
	finished(t, v, p.Output())
	return compared
}

// restored requires that a stopped process has no tracer and that its code is unchanged. compared is false if it had ended before.
func restored(t *testing.T, pid int, code map[uint64][]byte) (compared bool) {
	t.Helper()
	if !stands(t, pid) {
		return false
	}
	require.Equal(t, "0", status(pid, pid, "TracerPid"))
	for at, is := range executable(t, pid) {
		if was, known := code[at]; known && len(was) == len(is) {
			require.True(t, bytes.Equal(was, is), "the code at %#x", at)
			compared = true
		}
	}
	return compared
}

// stands waits until all threads of a process are stopped, and returns false if it has ended before.
func stands(t *testing.T, pid int) (stopped bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		stopped = true
		for _, tid := range threads(pid) {
			stopped = stopped && strings.HasPrefix(status(pid, tid, "State"), "T")
		}
		return stopped || gone(pid)
	}, livetest.Patience, time.Millisecond)
	return !gone(pid)
}

// hostOf returns the tracer of a reframe that starts a host, and the host: 0 if they ended before they were seen.
func hostOf(t *testing.T, pid int) (tracing, process int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if tracing = childOf(pid); tracing != 0 {
			process = childOf(tracing)
		}
		return process != 0 && status(process, process, "Name") == "obj_host" || gone(pid)
	}, livetest.Patience, time.Millisecond)
	return tracing, process
}

// endedWell requires that the exit status of a host is 0.
func endedWell(t *testing.T, process int) {
	t.Helper()
	var ws unix.WaitStatus
	if process == 0 {
		// It was released before it was seen.
	} else if _, err := unix.Wait4(process, &ws, 0, nil); err == nil { // otherwise the tracer saw its end
		require.True(t, ws.Exited() && ws.ExitStatus() == 0, "%#x", ws)
	}
}

// killLaunched ends a reframe that has started the process itself.
func killLaunched(t *testing.T, v victim, w way, args []string, pause time.Duration) {
	file := filepath.Join(t.TempDir(), "output")
	out, err := os.Create(file)
	require.NoError(t, err)
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, v.program, "-O2"), v.options)
	c := watch(t, out, append(append(args[:len(args):len(args)], "--"), host...)...) // which is the process's own; the exits go to standard error
	out.Close()
	tracing, process := hostOf(t, c.Process.Pid)
	time.Sleep(pause)
	if err := w.end(c); err != nil {
		require.ErrorIs(t, err, os.ErrProcessDone)
	}
	c.over(t, tracing)
	checksum, _ := livetest.Twin(t, v.program, v.options)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return strings.Contains(string(text), checksum)
	}, livetest.Patience, time.Millisecond)
	endedWell(t, process)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	finished(t, v, string(text))
}

// finished requires that a program printed the same as without a tracer.
func finished(t *testing.T, v victim, output string) {
	t.Helper()
	checksum, child := livetest.Twin(t, v.program, v.options)
	require.Contains(t, output, checksum)
	if v.options.Middle == "fork" {
		require.Contains(t, output, child)
	}
}

// executable returns all executable memory of a process, by address.
func executable(t *testing.T, pid int) map[uint64][]byte {
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

// tracer returns the process that traces another.
func tracer(pid int) int {
	n, _ := strconv.Atoi(status(pid, pid, "TracerPid")) // the kernel's own
	return n
}

// childOf returns a process that parent has started, or 0. The watchdog of a tracer does not count.
func childOf(parent int) int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, dir := range dirs {
		if n, err := strconv.Atoi(filepath.Base(dir)); err == nil && status(n, n, "PPid") == strconv.Itoa(parent) && status(n, n, "Name") != "rf-watchdog" {
			return n
		}
	}
	return 0
}
