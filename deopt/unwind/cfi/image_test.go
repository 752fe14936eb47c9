package cfi

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/unwind/internal/unwindtest"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// shared links a source of testdata into a shared object without gcc's startup code.
func shared(t testing.TB, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.so")
	livetest.Make(t, "gcc", append([]string{"-shared", "-fPIC", "-nostdlib", "-o", out}, args...)...)
	return out
}

// newest returns the last file that a pattern matches.
func newest(t testing.TB, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, "no %s", pattern)
	return files[len(files)-1]
}

// sectionsOf takes the unwind sections out of an ELF file that is loaded at bias.
func sectionsOf(t testing.TB, path string, bias machine.Addr) Sections {
	t.Helper()
	s, err := SectionsOf(unwindtest.Image(t, path, bias))
	require.NoError(t, err)
	return s
}

// Short names for those of [unwindtest].
type words = unwindtest.Words

var (
	run       = unwindtest.Run
	address   = unwindtest.Address
	le        = unwindtest.LE
	entry     = unwindtest.Entry
	simpleCIE = unwindtest.SimpleCIE
	simpleFDE = unwindtest.SimpleFDE
	seed      = unwindtest.Seed
)

const simpleAddr = unwindtest.SimpleAddr
