package livetest

import (
	"os/exec"
	"testing"
)

// OwnMounts returns the beginning of a command with a mount namespace of its own; it requires root. In a directory that is a root but not a mount
// point (chroot(1)), the propagation of mounts cannot be changed. There the mounts are already private, or no other namespace has them.
func OwnMounts(t testing.TB) []string {
	t.Helper()
	command := []string{Tool(t, "unshare"), "-m"}
	if exec.Command(command[0], "-m", "true").Run() != nil {
		command = append(command, "--propagation", "unchanged")
	}
	return command
}
