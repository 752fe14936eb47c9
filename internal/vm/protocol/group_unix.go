//go:build unix

package protocol

import (
	"os/exec"
	"syscall"
)

// grouped puts a command into its own process group. Its children are killed with it, and a Ctrl-C at the terminal goes only to reframe.
func grouped(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup kills the process group.
func endGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
