package ptrace

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/test/livetest"
)

// TestCompressedCore requires that a core which the program zstd compressed is read like the original, and that zstd decompresses cores that this
// package compressed.
func TestCompressedCore(t *testing.T) {
	livetest.Slow(t)
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	for _, memory := range []CoreMemory{Minimal, All} { // one is decompressed into memory, the other into a file
		target, err := Capture(p.PID, Options{Record: true, Hold: true})
		require.NoError(t, err)
		dir := t.TempDir()
		plain, ours, theirs := filepath.Join(dir, "core"), filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
		_, err = target.WriteCore(context.Background(), ours, RecordOptions{Memory: memory, Compress: true})
		require.NoError(t, err)
		target.Close()
		out, err := exec.Command(livetest.Tool(t, "zstd"), "-q", "-d", "-o", plain, ours).CombinedOutput()
		require.NoError(t, err, "%s", out)
		out, err = exec.Command(livetest.Tool(t, "zstd"), "-q", "--long=27", "-1", "-o", theirs, plain).CombinedOutput()
		require.NoError(t, err, "%s", out)
		want := openCore(t, plain)
		for _, path := range []string{ours, theirs} {
			got := openCore(t, path)
			require.Equal(t, registersOf(want.threads[0]), registersOf(got.threads[0]))
			require.Equal(t, want.maps, got.maps)
			for _, r := range want.maps {
				for at := r.Start; at < r.End && at < r.Start+1<<20; at += elfcore.Page {
					a, b := make([]byte, elfcore.Page), make([]byte, elfcore.Page)
					n, err := want.source.readUpTo(a, at)
					m, err2 := got.source.readUpTo(b, at)
					require.Equal(t, []any{n, err, a}, []any{m, err2, b})
				}
			}
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 3, "what was in between is gone")
	}
}

// TestCompressedNonsense requires an error for compressed files that are truncated or do not contain a core.
func TestCompressedNonsense(t *testing.T) {
	compress := func(b []byte) []byte {
		var out bytes.Buffer
		z, err := zstd.NewWriter(&out)
		require.NoError(t, err)
		_, err = z.Write(b)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return out.Bytes()
	}
	large := bytes.Repeat([]byte("large and dull "), 2<<20) // 30 MiB
	short := compress(large)
	for name, c := range map[string]struct {
		data []byte
		Want string
	}{
		"no core":             {compress([]byte("text")), "not an ELF core: no ELF file"},
		"empty":               {compress(nil), "not an ELF core: it is empty"},
		"large and no core":   {short, "not an ELF core: no ELF file"},
		"cut":                 {short[:len(short)/2], "cannot be decompressed: "},
		"cut, small":          {compress(large[:1000])[:20], "cannot be decompressed: "},
		"compressed twice":    {compress(short), "not an ELF core: no ELF file"},
		"the beginning alone": {[]byte("\x28\xb5\x2f\xfd"), "cannot be decompressed: "},
	} {
		path := filepath.Join(t.TempDir(), "core")
		require.NoError(t, os.WriteFile(path, c.data, 0o600))
		_, err := OpenCore(path, CoreOptions{})
		require.ErrorContains(t, err, path+": "+c.Want, name)
	}
}
