//go:build linux && amd64

package demo

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Start runs the target and returns once it stands at its exit: it has entered __llvm_deoptimize and reads its
// standard input, or is about to. The caller ends it with Wake and Result, or with Kill; should the caller die, the target dies
// with it.
func Start() (*Process, error) {
	p, err := startInMemory()
	if err != nil {
		p, err = startFromFile()
	}
	if err != nil {
		return nil, fmt.Errorf("demo: starting the target: %w", err)
	}
	if err := p.expect("ready"); err != nil {
		p.Kill()
		return nil, err
	}
	p.settle()
	return p, nil
}

// settle gives the target the moment that it needs from its last word to its sleep in
// read(2), so that every demo shows it at the same place. A target that takes longer is
// shown where it is.
func (p *Process) settle() {
	for range 1000 {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.PID))
		if err != nil || strings.HasPrefix(string(call), strconv.Itoa(unix.SYS_READ)+" ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// startInMemory runs the program from a memfd: a directory for temporary files may be mounted noexec, and
// nothing has to be cleaned up.
func startInMemory() (*Process, error) {
	fd, err := unix.MemfdCreate("reframe-demo-target", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	program := os.NewFile(uintptr(fd), "reframe-demo-target")
	defer program.Close()
	if _, err := program.Write(Target); err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/fd/3") // the first of ExtraFiles, once in the child
	cmd.ExtraFiles = []*os.File{program}
	return start(cmd)
}

// startFromFile is for kernels that do not let a memfd be executed (vm.memfd_noexec).
func startFromFile() (*Process, error) {
	f, err := os.CreateTemp("", "reframe-demo-target-")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(Target)
	err = errors.Join(err, f.Chmod(0o700), f.Close())
	var p *Process
	if err == nil {
		p, err = start(exec.Command(f.Name()))
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	p.file = f.Name()
	return p, nil
}

func start(cmd *exec.Cmd) (*Process, error) {
	cmd.Args = []string{"reframe-demo-target"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := startBound(cmd); err != nil {
		return nil, err
	}
	return &Process{PID: cmd.Process.Pid, cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout)}, nil
}

// startBound starts a child that the kernel kills when this process ends, however it
// ends. The end of its input does not reach a child that a debugger held still when it
// was killed itself. The signal goes out when the thread that forked ends, so that
// thread is kept for the life of the process (prctl(2), PR_SET_PDEATHSIG).
func startBound(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	return <-started
}
