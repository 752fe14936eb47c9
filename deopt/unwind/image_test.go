package unwind

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
)

// run runs a tool that a test needs, and returns what it prints.
func run(t *testing.T, name string, args ...string) []byte {
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
func shared(t *testing.T, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.so")
	run(t, "gcc", append([]string{"-shared", "-fPIC", "-nostdlib", "-o", out}, args...)...)
	return out
}

// newest returns the last file that a pattern matches.
func newest(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, "no %s", pattern)
	return files[len(files)-1]
}

// sectionsOf takes the unwind sections out of an ELF file that is loaded at bias.
func sectionsOf(t *testing.T, path string, bias machine.Addr) Sections {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	image, err := elf.NewFile(file)
	require.NoError(t, err)
	section := func(name string) Section {
		s := image.Section(name)
		require.NotNil(t, s, "%s has no %s", path, name)
		data, err := s.Data()
		require.NoError(t, err)
		return Section{Addr: machine.Addr(s.Addr) + bias, Data: bytes.NewReader(data), Size: int64(s.Size)}
	}
	return Sections{Arch: machine.AMD64, EHFrame: section(".eh_frame"), EHFrameHdr: section(".eh_frame_hdr")}
}
