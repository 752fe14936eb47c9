//go:build unix

package vmproto

import (
	"os/exec"
	"syscall"
)

// grouped has a command be the first of a process group of its own: it is ended with what it started, and a Ctrl-C at the terminal is reframe's.
func grouped(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends it.
func endGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
