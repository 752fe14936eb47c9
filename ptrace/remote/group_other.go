//go:build !unix

package remote

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(leader *os.Process) {
	_ = leader.Kill() // an error means that it has ended
}
