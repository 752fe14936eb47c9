//go:build linux

package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/system"
)

// watchdogName is the name of the watchdog in lists of processes.
const watchdogName = "rf-watchdog"

func init() {
	if len(os.Args) == 2 && os.Args[0] == watchdogName {
		if pid, err := strconv.Atoi(os.Args[1]); err == nil {
			watchdog(pid)
		}
		os.Exit(0)
	}
}

// startWatchdog starts a process that waits for the tracer's end. If the tracer is killed, the kernel holds it at PTRACE_EVENT_EXIT. At that point
// the threads that it traces are still stopped, or stop at their next breakpoint. The watchdog then restores the code and lets the tracer end. The
// tracer also works without a watchdog. ended is closed when the watchdog has ended.
func startWatchdog(pid int) (ended <-chan struct{}) {
	end := make(chan struct{})
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{watchdogName, strconv.Itoa(pid)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of a terminal do not reach another session
	if cmd.Start() != nil {
		close(end)
		return end
	}
	go func() {
		defer close(end)
		_ = cmd.Wait() // its exit status is not used
	}()
	return end
}

// permitWatchdog permits the tracer's siblings to trace it. Yama permits only ancestors by default.
func permitWatchdog() { _ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(unix.Getppid()), 0, 0, 0) }

// watchdog is the main function of the watchdog. It delivers every signal to the tracer's thread until that thread has ended.
func watchdog(pid int) {
	runtime.LockOSThread()
	_ = os.WriteFile("/proc/self/comm", []byte(watchdogName), 0)
	sibling := system.StatusField(pid, "PPid") == strconv.Itoa(os.Getppid()) // false if the tracer has ended and another process has its number
	if !sibling || ptrace(unix.PTRACE_SEIZE, pid, unix.PTRACE_O_TRACEEXIT) != nil {
		return
	}
	spare()
	dropPrivileges(capSysPtrace)
	for {
		var ws unix.WaitStatus
		if _, err := wait(pid, &ws, unix.WALL); err != nil || !ws.Stopped() {
			return
		}
		request, signal := unix.PTRACE_CONT, unix.Signal(0)
		switch event := int(ws) >> 16; {
		case event == unix.PTRACE_EVENT_EXIT:
			restoreOf(pid)
		case event == unix.PTRACE_EVENT_STOP && ws.StopSignal() != unix.SIGTRAP:
			request = unix.PTRACE_LISTEN
		case event == 0:
			signal = ws.StopSignal()
		}
		_ = ptrace(request, pid, uintptr(signal)) // an error means that the tracer's thread has been killed, which wait(2) reports next
	}
}

// restoreOf restores the code of a target whose tracer is about to end.
func restoreOf(tracer int) {
	pidfd, err := unix.PidfdOpen(tracer, 0)
	if err != nil {
		return
	}
	number, found := ledgerOf(tracer)
	if !found {
		return
	}
	ledger, err := unix.PidfdGetfd(pidfd, number, 0)
	if err != nil {
		return
	}
	number, found = memoryIn(ledger)
	if !found {
		return
	}
	if memory, err := unix.PidfdGetfd(pidfd, number, 0); err == nil {
		restoreBy(ledger, memory)
	}
}

// ledgerOf returns the file descriptor number of a tracer's ledger.
func ledgerOf(tracer int) (fd int, found bool) {
	dir := fmt.Sprintf("/proc/%d/fd", tracer)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, false
	}
	for _, e := range entries {
		to, err := os.Readlink(dir + "/" + e.Name())
		if err == nil && strings.HasPrefix(to, "/memfd:"+ledgerName) {
			fd, err = strconv.Atoi(e.Name())
			return fd, err == nil
		}
	}
	return 0, false
}
