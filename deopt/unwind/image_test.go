package unwind

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
	"reframe/deopt/object"
)

// run runs a tool that a test needs, and returns what it prints.
func run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", name, args, stderr.String())
	return out
}

// shared links a source of testdata into a shared object. gcc's own start-up
// code stays out of it.
func shared(t testing.TB, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.so")
	run(t, "gcc", append([]string{"-shared", "-fPIC", "-nostdlib", "-o", out}, args...)...)
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

// sectionsOf takes the unwind sections out of an ELF file that is loaded at
// bias. Those of an unlinked object are relocated to addresses of our own.
func sectionsOf(t testing.TB, path string, bias machine.Addr) Sections {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	image, err := object.New(path, bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	image.PlaceSections()
	image.Bias = bias
	section := func(name string) Section {
		s := image.Section(name)
		if s == nil {
			return Section{}
		}
		data, _, err := s.Relocated()
		require.NoError(t, err)
		return Section{Addr: s.Loaded(), Bias: bias, Data: bytes.NewReader(data), Size: int64(len(data))}
	}
	arch, err := image.Arch()
	require.NoError(t, err)
	return Sections{Arch: arch, EHFrame: section(".eh_frame"), EHFrameHdr: section(".eh_frame_hdr"), DebugFrame: section(".debug_frame")}
}
