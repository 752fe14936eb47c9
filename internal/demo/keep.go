package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Kept holds two targets that outlive the process which started them; the second one runs a virtual machine's method. Each ends when its FIFO is
// written to, when it is killed, or by itself after an hour.
type Kept struct {
	PID int
	VM  int    // the process with the virtual machine's method
	Dir string // the directory that holds the files listed below
}

// Names of the files in a [Kept]'s directory.
const (
	KeptProgram = "target"
	KeptIR      = "target.ll"
	KeptLayout  = "target.layout.json"
	KeptGo      = "go"     // a FIFO, the target's standard input
	KeptOutput  = "output" // its standard output: "ready", and at its end the result of its native code

	KeptVMGo     = "go-vm"
	KeptVMOutput = "output-vm" // the output of the second target: "ready"
)

// Keep starts the targets in a new temporary directory, next to the files that describe their code, and returns once each waits at its exit. On an
// error it removes all of them.
func Keep(ctx context.Context) (*Kept, error) {
	dir, err := os.MkdirTemp("", "reframe-demo-")
	if err != nil {
		return nil, err
	}
	k := &Kept{Dir: dir}
	err = errors.Join(
		os.WriteFile(k.path(KeptProgram), Target, 0o700),
		os.WriteFile(k.path(KeptIR), IR, 0o600),
		os.WriteFile(k.path(KeptLayout), Layout, 0o600))
	if err == nil {
		err = k.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("demo: starting the target: %w", err), os.RemoveAll(dir))
	}
	return k, nil
}

func (k *Kept) path(name string) string { return filepath.Join(k.Dir, name) }

// ready reports whether the target that writes to output has reached its exit.
func (k *Kept) ready(output string) bool {
	text, err := os.ReadFile(k.path(output))
	return err == nil && bytes.HasPrefix(text, []byte("ready\n"))
}
