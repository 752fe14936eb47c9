//go:build unix

package protocol

import (
	"os/exec"
	"syscall"
)

// grouped puts a command into a process group of its own: it is ended together with the processes it started, and a Ctrl-C at the terminal goes only
// to reframe.
func grouped(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends it.
func endGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
