//go:build !linux || !(amd64 || arm64)

package confine

import (
	"context"
	"os/exec"
)

// Command returns a command that runs the program at path without confinement, which is not implemented on this system.
func Command(ctx context.Context, path string, _ uint64, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, path, args...)
}
