package livetest

import (
	"os/exec"
	"testing"
)

// OwnMounts is the beginning of a command that sees mounts of its own, as root. In a folder that was made a root without being
// mounted there (chroot(1)), mounts stay what they are to others: there they are private already, or nobody else's.
func OwnMounts(t testing.TB) []string {
	t.Helper()
	command := []string{Tool(t, "unshare"), "-m"}
	if exec.Command(command[0], "-m", "true").Run() != nil {
		command = append(command, "--propagation", "unchanged")
	}
	return command
}
