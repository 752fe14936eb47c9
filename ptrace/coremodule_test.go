package ptrace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestCoreFileIdentity requires that the current file is compared with the part of the mapped file that is in the core.
func TestCoreFileIdentity(t *testing.T) {
	dir := t.TempDir()
	build := func(source string, flags ...string) []byte {
		b, err := os.ReadFile(livetest.CBinary(t, source, append(flags, "-no-pie")...))
		require.NoError(t, err)
		return b
	}
	with, other := build("nojit.c"), build("threads.c")
	without, otherWithout := build("nojit.c", "-Wl,--build-id=none"), build("threads.c", "-Wl,--build-id=none")
	text := []byte("a text\n")
	for _, c := range []struct {
		name       string
		mapped     []byte // the first page in the core
		disk       []byte
		path       string
		why        string
		unverified string
	}{
		{"the same", with[:4096], with, "/same", "", ""},
		{"stripped since", with[:4096], append(bytes.Clone(with), 1, 2, 3), "/longer", "", ""},
		{"another", with[:4096], other, "/another", `^the file there now is a different one: its build id is [0-9a-f]{40}, but that in the core is [0-9a-f]{40}$`, ""},
		{"not held", nil, with, "/unheld", "", "the core does not contain the beginning of the mapped file"},
		{"headers alone", with[:700], with, "/headers", "", "the core does not contain its build id; its headers are the same"},
		{"other headers alone", with[:700], other, "/otherheaders", "^the file there now is a different one: its headers differ from those in the core$", ""},
		{"no build id", without[:4096], without, "/without", "", "it has no build id; its headers are the same"},
		{"another without", without[:4096], otherWithout, "/otherwithout", "^the file there now is a different one: its headers differ from those in the core$", ""},
		{"build id lost", with[:4096], without, "/lost", "^the file there now is a different one: its headers differ from those in the core$", ""},
		{"a text in the core", append(text, make([]byte, 100)...), with, "/text", "^the file there now is a different one: in the core it is no ELF file$", ""},
		{"a text now", with[:4096], text, "/textnow", "^no ELF file$", ""},
		{"empty now", with[:4096], []byte{}, "/empty", "^the file there now is empty$", ""},
		{"gone", with[:4096], nil, "/gone", "^cannot be opened here: no such file or directory$", ""},
		{"deleted, and there", with[:4096], with, "/deleted (deleted)", "", ""},
		{"deleted, and not to be told", nil, with, "/deleted2 (deleted)", "^it was deleted, and it is unknown whether the file there now is the same: ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.path)
			if c.disk != nil {
				require.NoError(t, os.WriteFile(strings.TrimSuffix(path, deletedSuffix), c.disk, 0o755))
			}
			img := &coreImage{order: binary.LittleEndian, machine: elf.EM_X86_64, unit: 1,
				files: []fileRow{{0x400000, 0x401000, 0, path}, {0x401000, 0x402000, 0x1000, path}}}
			img.load(0x400000, elf.PF_R, c.mapped, 0x1000)
			img.load(0x401000, elf.PF_R|elf.PF_X, nil, 0x1000)
			img.load(0x10000000, elf.PF_R|elf.PF_W, make([]byte, 16), 0x1000)
			target := readBytes(t, img.bytes())
			m := target.Modules[0]
			require.Equal(t, path, m.Path)
			require.Equal(t, c.unverified, m.Unverified)
			err := target.ReadMemory(make([]byte, 16), 0x401000)
			if c.why == "" {
				require.NotNil(t, m.Image, m.Why)
				require.NoError(t, err)
				return
			}
			require.Regexp(t, c.why, m.Why)
			require.Nil(t, m.Image)
			require.EqualError(t, err, "16 bytes at 0x401000: not in the core, and "+path+" cannot be used: "+m.Why+"; give its location with --sysroot or --exe")
		})
	}
	// The file is shorter than the mapping, or is mapped twice.
	path := filepath.Join(dir, "short")
	require.NoError(t, os.WriteFile(path, with[:8000], 0o755))
	require.NoError(t, os.Link(path, path+"2"))
	img := &coreImage{order: binary.LittleEndian, machine: elf.EM_X86_64, unit: 4096, files: []fileRow{
		{0x400000, 0x401000, 2, path}, {0x500000, 0x501000, 0, path + "2"}, {0x600000, 0x601000, 0, "relative"},
		{0x700000, 0x701000, 0, "/dev/null"}, {0x800000, 0x801000, 0, dir}}}
	img.load(0x400000, elf.PF_R, nil, 0x1000)
	var why []string
	for _, m := range readBytes(t, img.bytes()).Modules {
		why = append(why, m.Why)
	}
	require.Equal(t, []string{
		"the file there now is a different one: it has only 8000 bytes, but offset 8192 was mapped", "the same file as " + path, "its name is not a path",
		"cannot be opened here: not a regular file", "cannot be opened here: not a regular file"}, why)
}
