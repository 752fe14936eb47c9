package livetest

import (
	"os/exec"
	"testing"
)

// OwnMounts returns the beginning of a command that has mounts of its own, as root. In a directory that is a root without being a mount point
// (chroot(1)), the propagation of mounts cannot be changed: there they are private already, or belong to nobody else.
func OwnMounts(t testing.TB) []string {
	t.Helper()
	command := []string{Tool(t, "unshare"), "-m"}
	if exec.Command(command[0], "-m", "true").Run() != nil {
		command = append(command, "--propagation", "unchanged")
	}
	return command
}
