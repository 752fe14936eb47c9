package livetest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Csmith returns the path of a C program that csmith makes up of a seed. It lies in a directory of the test's own,
// where csmith puts a file with the sizes of the machine's types, too.
func Csmith(t testing.TB, seed int) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), Tool(t, "csmith"), "--seed", fmt.Sprint(seed), "-o", "program.c")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
	return filepath.Join(dir, "program.c")
}
