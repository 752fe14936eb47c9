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

// inRoot changes to the root folder of the module, whose files the tests read. A TestMain would change too early: go test then looks for the files
// that tests read below the package's folder, does not find them, and returns a cached result after they have changed.
func inRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

// goList returns the lines that go list prints for each package of the module. It looks at all Go files, because go test does not see the files that
// go list reads, and would return a cached result after they have changed.
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
