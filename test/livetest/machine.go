package livetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bootLimit bounds the whole run of a machine that QEMU emulates, even on a busy host.
const bootLimit = 30 * time.Minute

// BootARM64 boots Linux for arm64 in QEMU with the given files, under their names in its root directory. The first process is init, a Go program that
// is built from dir. BootARM64 returns the files of the tar archive that init prints between the lines BEGIN and END.
func BootARM64(t testing.TB, dir string, files map[string]string, script ...string) map[string][]byte {
	t.Helper()
	kernel := filepath.Join(CacheRoot(), "kernel", "arm64")
	_, err := os.Stat(kernel)
	require.NoError(t, err, "scripts/kernel.sh fetches it")
	// init is built once for all tests, because linking takes a second. The words after the script are $0, the release of Go and, from build, -o and
	// a path.
	init := build(t, recipe{
		output: "init", tool: Tool(t, "sh"),
		args:   []string{"-c", `GOOS=linux GOARCH=arm64 CGO_ENABLED=0 exec go build -C "$0" -o "$3" .`, dir, runtime.Version()},
		inputs: []string{filepath.Join(dir, "main.go")},
	})

	root := &cpio{}
	for _, name := range []string{"proc", "dev", "tmp", "out"} {
		root.add(name, 0o40755, nil)
	}
	root.addDevice("dev/console", 5, 1)
	root.addDevice("dev/null", 1, 3)
	root.add("script", 0o100644, []byte(strings.Join(script, "\n")+"\n"))
	for name, path := range files {
		root.addFile(t, name, path)
	}
	root.addFile(t, "init", init)
	initrd := filepath.Join(t.TempDir(), "initrd")
	require.NoError(t, os.WriteFile(initrd, root.bytes(), 0o644))

	ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
	defer cancel()
	// "max" alone computes pointer signatures with the architecture's algorithm, which takes most of the time (doc/dev/facts.md).
	qemu := exec.CommandContext(ctx, Tool(t, "qemu-system-aarch64"), "-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "1", "-m", "512",
		"-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", initrd,
		"-append", "console=ttyAMA0 quiet panic=-1")
	console, err := qemu.Output()
	require.NoError(t, err, "%s", console)
	_, sent, found := strings.Cut(strings.ReplaceAll(string(console), "\r", ""), "-----BEGIN-----\n")
	require.True(t, found, "%s", console)
	sent, _, found = strings.Cut(sent, "-----END-----")
	require.True(t, found, "it ended in the middle")
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(sent)))
	require.NoError(t, err)
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		out[h.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
}

// cpio is an archive in the format that Linux unpacks at boot (its Documentation/driver-api/early-userspace/buffer-format.rst).
type cpio struct {
	b     bytes.Buffer
	files uint32
}

func (c *cpio) add(name string, mode uint32, content []byte) { c.entry(name, mode, content, 0, 0) }

func (c *cpio) addDevice(name string, major, minor uint32) {
	c.entry(name, 0o20600, nil, major, minor)
}

func (c *cpio) addFile(t testing.TB, name, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	c.add(name, 0o100755, content)
}

func (c *cpio) entry(name string, mode uint32, content []byte, major, minor uint32) {
	c.files++
	const links = 1
	c.b.WriteString("070701")
	for _, v := range []uint32{c.files, mode, 0, 0, links, 0, uint32(len(content)), 0, 0, major, minor, uint32(len(name) + 1), 0} {
		fmt.Fprintf(&c.b, "%08X", v)
	}
	for _, part := range [][]byte{append([]byte(name), 0), content} {
		c.b.Write(part)
		c.b.Write(make([]byte, -c.b.Len()&3))
	}
}

// bytes completes the archive and returns it.
func (c *cpio) bytes() []byte {
	c.add("TRAILER!!!", 0, nil)
	return slices.Clone(c.b.Bytes())
}
