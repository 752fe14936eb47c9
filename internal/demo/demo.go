// Package demo contains the target of `reframe demo`: a small prebuilt program for x86-64 Linux that runs LLVM-compiled code into an OSR exit, so
// that the demo works on a machine without LLVM. Its main type is [Process], the running target.
//
// The same program contains a method that the JIT of examples/tinyvm compiled. With the argument "vm" it runs into an exit of that method.
//
// The program is built from internal/demo/target by internal/demo/build.sh; a test builds it anew and compares.
//
// # Security
//
// The program is part of this repository. It runs with the rights of the user who runs the demo, and reads only its standard input. The length of the
// output that is read from it is bounded anyway.
package demo

import (
	"bufio"
	_ "embed" // for the files that go:embed names below
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Target is the program: a static x86-64 Linux executable.
//
//go:embed target-gcc12-llc19-amd64
var Target []byte

// IR is the module from which llc compiled the program's JIT code.
//
//go:embed target-llc19.ll
var IR []byte

// Layout is the layout file that maps the exit of @sum_opt to a frame of @sum.
//
//go:embed target.layout.json
var Layout []byte

// Process is a running target that waits at its exit.
type Process struct {
	PID int

	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	file  string // path of the temporary executable, if one had to be made
}

// Wake lets the target continue from its exit. A target that is stopped continues when it runs again.
func (p *Process) Wake() error {
	if _, err := p.stdin.Write([]byte{'\n'}); err != nil {
		return fmt.Errorf("demo: waking the target: %w", err)
	}
	return nil
}

// Result waits for a target that was woken and returns the result of its native code.
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

// Kill ends the target and removes its files. It may be called after Result and more than once.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // an error means that it has ended already
	p.cmd.Wait()         // an error reports the SIGKILL
	if p.file != "" {
		os.Remove(p.file) // a file that stays in the temporary directory is harmless
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
