//go:build linux && amd64

package demo

import (
	"bufio"
	"context"
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

// Start runs the target and returns once it is at its exit: it has entered __llvm_deoptimize and reads its standard input, or is about to. The
// caller ends it with Wake and Result, or with Kill; if the caller dies, the target dies with it.
func Start() (*Process, error) { return started() }

// StartVM runs the target with a virtual machine's method, and returns once the method is at its exit. The method's object contains the layout of its
// frames. The target has no Result; the caller ends it with Kill.
func StartVM() (*Process, error) { return started(ofVM) }

// ofVM is the program's argument for the virtual machine's method.
const ofVM = "vm"

func started(args ...string) (*Process, error) {
	p, err := startInMemory(args...)
	if err != nil {
		p, err = startFromFile(args...)
	}
	if err != nil {
		return nil, fmt.Errorf("demo: starting the target: %w", err)
	}
	if err := p.expect("ready"); err != nil {
		p.Kill()
		return nil, err
	}
	waitForRead(p.PID)
	return p, nil
}

func (k *Kept) start(ctx context.Context) (err error) {
	if k.PID, err = k.startOne(ctx, KeptGo, KeptOutput); err != nil {
		return err
	}
	if k.VM, err = k.startOne(ctx, KeptVMGo, KeptVMOutput, ofVM); err != nil {
		return errors.Join(err, unix.Kill(k.PID, unix.SIGKILL))
	}
	return nil
}

// startOne starts a kept target in a new session (setsid(2)), so that it survives the end of this process and of its terminal.
func (k *Kept) startOne(ctx context.Context, goes, output string, args ...string) (pid int, err error) {
	if err := unix.Mkfifo(k.path(goes), 0o600); err != nil {
		return 0, err
	}
	// A FIFO that is also open for writing never ends: the target waits for input from any process. os.OpenFile would make reads non-blocking.
	fd, err := unix.Open(k.path(goes), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	stdin := os.NewFile(uintptr(fd), k.path(goes))
	defer stdin.Close()
	stdout, err := os.Create(k.path(output))
	if err != nil {
		return 0, err
	}
	defer stdout.Close()
	command := func(path string) *exec.Cmd {
		return &exec.Cmd{Path: path, Args: arguments(args), Dir: "/", Stdin: stdin, Stdout: stdout, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	}
	cmd := command(k.path(KeptProgram))
	err = cmd.Start()
	if errors.Is(err, os.ErrPermission) { // the directory is mounted noexec
		var program *os.File
		if program, err = programInMemory(); err != nil {
			return 0, err
		}
		defer program.Close()
		cmd = command("/proc/self/fd/3")
		cmd.ExtraFiles = []*os.File{program}
		err = cmd.Start()
	}
	if err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !k.ready(output) {
		select {
		case err := <-ended:
			return 0, fmt.Errorf("it ended: %v", err)
		case <-ctx.Done():
			return 0, errors.Join(context.Cause(ctx), cmd.Process.Kill())
		case <-time.After(time.Millisecond):
		}
	}
	waitForRead(cmd.Process.Pid)
	return cmd.Process.Pid, nil
}

// waitForRead waits until the target sleeps in read(2) after its last output, so that every demo shows it at the same pc. It gives up after a bound.
func waitForRead(pid int) {
	for range 1000 {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		if err != nil || strings.HasPrefix(string(call), strconv.Itoa(unix.SYS_READ)+" ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// startInMemory runs the program from a memfd: a temporary directory may be mounted noexec, and a memfd needs no cleanup.
func startInMemory(args ...string) (*Process, error) {
	program, err := programInMemory()
	if err != nil {
		return nil, err
	}
	defer program.Close()
	cmd := exec.Command("/proc/self/fd/3") // in the child, descriptor 3 is the first of ExtraFiles
	cmd.ExtraFiles = []*os.File{program}
	return start(cmd, args)
}

func programInMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("reframe-demo-target", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	program := os.NewFile(uintptr(fd), "reframe-demo-target")
	if _, err := program.Write(Target); err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return program, nil
}

// startFromFile runs the program from a file, for kernels that do not execute a memfd (vm.memfd_noexec).
func startFromFile(args ...string) (*Process, error) {
	f, err := os.CreateTemp("", "reframe-demo-target-")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(Target)
	err = errors.Join(err, f.Chmod(0o700), f.Close())
	var p *Process
	if err == nil {
		p, err = start(exec.Command(f.Name()), args)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	p.file = f.Name()
	return p, nil
}

// arguments returns the arguments of the program, with the name that ps shows.
func arguments(args []string) []string { return append([]string{"reframe-demo-target"}, args...) }

func start(cmd *exec.Cmd, args []string) (*Process, error) {
	cmd.Args = arguments(args)
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

// startBound starts a child that the kernel kills when this process ends in any way (prctl(2), PR_SET_PDEATHSIG). Closing the child's input is not
// enough: a child that a killed debugger left stopped does not read it. The kernel sends the signal when the forking thread ends, so startBound keeps
// that thread for the life of the process.
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
