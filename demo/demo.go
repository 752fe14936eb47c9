// Package demo carries the target of `reframe demo`: a small prebuilt program for x86-64 Linux that runs
// LLVM-compiled code into an OSR exit, so that the whole story can be told on a machine without LLVM. Its main type
// is [Process], the running target.
//
// The program is built from demo/target by demo/build.sh; a test builds it anew and compares.
//
// # Security
//
// The program is this repository's own. It runs with the rights of whoever runs the demo and reads nothing but
// its standard input. What it prints is nevertheless read up to a bound only.
package demo

import (
	"bufio"
	_ "embed" // for the files below
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Target is the program: a static x86-64 Linux executable.
//
//go:embed target-gcc12-llc19-amd64
var Target []byte

// IR is the module that the program's JIT code was compiled from, as llc saw it.
//
//go:embed target-llc19.ll
var IR []byte

// Layout says how the exit of @sum_opt becomes a frame of @sum, as a layout file.
//
//go:embed target.layout.json
var Layout []byte

// A Process is a running target that waits at its exit.
type Process struct {
	PID int

	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	file  string // path of the temporary executable, if one had to be made
}

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

// Wake lets the target go on from its exit, as soon as it runs.
func (p *Process) Wake() error {
	if _, err := p.stdin.Write([]byte{'\n'}); err != nil {
		return fmt.Errorf("demo: waking the target: %w", err)
	}
	return nil
}

// Result waits for a target that was woken and returns what its native code computed.
func (p *Process) Result() (int64, error) {
	defer p.Kill()
	line, err := p.line()
	if err != nil {
		return 0, err
	}
	number, found := strings.CutPrefix(line, "native ")
	result, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return 0, fmt.Errorf("demo: the target printed %q in place of its result", line)
	}
	if err := p.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("demo: the target ended badly: %w", err)
	}
	return result, nil
}

// Kill ends the target and removes what it left. It may be called after Result and more than once.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // an error means that it has ended already
	p.cmd.Wait()         // an error tells how it ended, which is known
	if p.file != "" {
		os.Remove(p.file) // a file left in the temporary directory does no harm
	}
}

func (p *Process) expect(want string) error {
	line, err := p.line()
	if err != nil {
		return err
	}
	if line != want {
		return fmt.Errorf("demo: the target printed %q in place of %q", line, want)
	}
	return nil
}

// line returns the target's next line; bufio.Scanner bounds its length at 64 KiB.
func (p *Process) line() (string, error) {
	if p.lines.Scan() {
		return p.lines.Text(), nil
	}
	err := p.lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return "", fmt.Errorf("demo: reading what the target prints: %w", err)
}
