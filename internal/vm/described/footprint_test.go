package described

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// maxFootprint bounds the allocated bytes for each byte of a target's description.
const maxFootprint = 8

// TestFootprint requires that the IR of many tiny functions, plain and compressed, takes at most maxFootprint times the size of its text, with all that is
// allocated in between.
func TestFootprint(t *testing.T) {
	const functions = 100_000
	var text bytes.Buffer
	for n := range functions {
		fmt.Fprintf(&text, "define i64 @function_number_%d(i64 %%a, i64 %%b) {\nentry:\n  %%c = add i64 %%a, %%b\n  ret i64 %%c\n}\n", n)
	}
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for name, section := range map[string][]byte{"plain": text.Bytes(), "zstd": encoder.EncodeAll(text.Bytes(), nil)} {
		t.Run(name, func(t *testing.T) {
			img := describing(t, section)
			d := &Description{}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d.Add("it", img, false, true)
			runtime.ReadMemStats(&after)
			require.Empty(t, d.Notes)
			require.Len(t, d.Modules[0].Funcs, functions)
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(maxFootprint*text.Len()))
		})
	}
}

// describing returns an image whose section .reframe.ir has a content.
func describing(t *testing.T, content []byte) *object.Image {
	t.Helper()
	section := filepath.Join(t.TempDir(), "section")
	require.NoError(t, os.WriteFile(section, content, 0o600))
	bare := livetest.Made(t, livetest.LLVM(t, 19, "llc"), "bare.o", "-filetype=obj", livetest.Module(t, "@x = global i8 0\n"))
	path := filepath.Join(t.TempDir(), "described.o")
	out, err := exec.Command(livetest.Tool(t, "objcopy"), "--add-section", ".reframe.ir="+section, bare, path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	img, err := object.New(path, bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	return img
}
