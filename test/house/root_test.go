package house

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inRoot changes to the root folder of the module, whose files the tests read. A TestMain would do this too early: the go command would then look for
// the files that a test reads below the package's folder, would not find them, and would return a cached result after they have changed.
func inRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

// goList returns the lines that go list prints for each package of the module. It also opens all Go files itself, because the go command does not
// notice the files that go list reads, and would return a cached result after they have changed.
func goList(t *testing.T, format string) []string {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".go") {
			_, err = os.Stat(file)
		}
		return err
	}))
	list, err := exec.Command("go", "list", "-f", format, "./...").Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(list), "\n"), "\n")
}
