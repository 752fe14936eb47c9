//go:build unix

package remote

import (
	"os"
	"syscall"
)

// ownGroup makes a command the leader of a process group, so that it can be killed together with its children.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(leader *os.Process) {
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL) // an error means that all have ended
}
