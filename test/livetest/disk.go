package livetest

import (
	"os/exec"
	"testing"
)

// OwnMounts returns the beginning of a command line that runs a command in a new mount namespace, which requires root. If the root directory is not a
// mount point (chroot(1)), the propagation of mounts cannot be changed. In that case the mounts are private already, or no other namespace has them.
func OwnMounts(t testing.TB) []string {
	t.Helper()
	command := []string{Tool(t, "unshare"), "-m"}
	if exec.Command(command[0], "-m", "true").Run() != nil {
		command = append(command, "--propagation", "unchanged")
	}
	return command
}
