//go:build linux

package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestTrapCode requires that the machine code of each architecture equals its source, assembled by clang.
func TestTrapCode(t *testing.T) {
	for arch, target := range map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"} {
		object, binary := filepath.Join(t.TempDir(), "o"), filepath.Join(t.TempDir(), "bin")
		for _, command := range [][]string{
			{livetest.Tool(t, "clang-19"), "--target=" + target, "-c", "-o", object, filepath.Join("testdata", "trapcode_"+arch+".S")},
			{livetest.Tool(t, "llvm-objcopy-19"), "-O", "binary", "-j", ".text", object, binary},
		} {
			out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		want, err := os.ReadFile(binary)
		require.NoError(t, err)
		h, known := trapCodeFor(arch)
		require.True(t, known)
		page := append(h.at(0x7000), make([]byte, trapTable)...)[:trapTable]
		own := int(h.ownAction(0))
		copy(page[own:own+actionSize], make([]byte, actionSize)) // these bytes depend on the address
		require.Equal(t, want, page, arch)
	}
}
