package livetest

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Child processes inherit ignored and blocked signals (execve(2)), and Go's os/exec passes on the ones with which the program itself was started.
// Under nohup, a test that ends a program by SIGHUP would wait forever. So a test binary that was started with signals ignored or blocked executes
// itself again without them, before any other code runs.
//
// It does so in a session of its own: the event for which the signals were ignored, such as a closing terminal or a ^C for another process, must
// reach neither it nor its children.
func init() {
	if err := startWithAllSignals(); err != nil {
		fmt.Fprintln(os.Stderr, "livetest: the signals that were ignored or blocked stay so:", err)
		os.Exit(2)
	}
}

// startWithAllSignals returns if no signal is ignored or blocked; otherwise it executes the program again without ignored and blocked signals.
func startWithAllSignals() error {
	ignored, blocked, err := heldOff()
	if err != nil || ignored|blocked == 0 {
		return err
	}
	runtime.LockOSThread() // the new program inherits this thread's mask
	for s := 1; s <= 64; s++ {
		if ignored&(1<<(s-1)) == 0 {
			continue
		}
		// The kernel's struct sigaction with all zeros: SIG_DFL. It has 32 bytes on all 64-bit architectures, and 20 on i386.
		var byDefault [32]byte
		const maskSize = 8
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&byDefault)), 0, maskSize, 0, 0); e != 0 {
			return os.NewSyscallError("rt_sigaction", e)
		}
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return os.NewSyscallError("rt_sigprocmask", err)
	}
	if ignored != 0 {
		_, _ = unix.Setsid() // fails if the process leads a group, as the job of a shell does
	}
	return os.NewSyscallError("execve", syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// heldOff returns the signals that the calling thread ignores and blocks, signal n as bit n-1 (proc_pid_status(5)). It omits signals that Go's
// runtime handles; they are reset to the default in children.
func heldOff() (ignored, blocked uint64, err error) {
	text, err := os.ReadFile("/proc/thread-self/status")
	for line := range bytes.Lines(text) {
		for name, set := range map[string]*uint64{"SigIgn:": &ignored, "SigBlk:": &blocked} {
			if rest, found := bytes.CutPrefix(line, []byte(name)); found && err == nil {
				_, err = fmt.Sscanf(string(rest), "%x", set)
			}
		}
	}
	return ignored, blocked, err
}
