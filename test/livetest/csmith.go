package livetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Csmith returns the path of a C program that csmith generates from a seed, in a temporary directory of the test.
func Csmith(t testing.TB, seed int) string {
	t.Helper()
	csmith := Tool(t, "csmith")
	// csmith writes a file with the sizes of the machine's types to its current directory. build appends -o and a path after the seed.
	made := build(t, recipe{output: "program.c", tool: Tool(t, "sh"), inputs: []string{csmith},
		args: []string{"-c", `cd "${3%/*}" && exec "$0" --seed "$1" -o "$3"`, csmith, fmt.Sprint(seed)}})
	content, err := os.ReadFile(made)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "program.c")
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}
