// The tests of this package check the command line that all verbs share: usage, help, output files, screens of documents.
package main_test

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }

// TestBinaryIsStatic requires that the program is one static binary, as the README promises.
func TestBinaryIsStatic(t *testing.T) {
	f, err := elf.Open(clitest.Binary())
	require.NoError(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type)
	}
	libraries, err := f.DynString(elf.DT_NEEDED)
	if err == nil {
		require.Empty(t, libraries)
	}
}
