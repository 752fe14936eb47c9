package trapcode

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestCode requires that the machine code of each architecture equals its source, assembled by clang.
func TestCode(t *testing.T) {
	for arch, target := range map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"} {
		object, binary := filepath.Join(t.TempDir(), "o"), filepath.Join(t.TempDir(), "bin")
		for _, command := range [][]string{
			{livetest.Tool(t, "clang-19"), "--target=" + target, "-c", "-o", object, filepath.Join("testdata", arch+".S")},
			{livetest.Tool(t, "llvm-objcopy-19"), "-O", "binary", "-j", ".text", object, binary},
		} {
			out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		want, err := os.ReadFile(binary)
		require.NoError(t, err)
		h, known := For(arch)
		require.True(t, known)
		page := append(h.At(0x7000), make([]byte, Table)...)[:Table]
		own := int(h.Own(0))
		copy(page[own:own+actionSize], make([]byte, actionSize)) // it depends on the address
		require.Equal(t, want, page, arch)
	}
}
