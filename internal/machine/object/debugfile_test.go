package object

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// openImage opens a file and reads its headers.
func openImage(t *testing.T, path string) *Image {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	img, err := New(path, bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	return img
}

func done(t *testing.T, tool string, args ...string) string {
	t.Helper()
	out, err := exec.Command(livetest.Tool(t, tool), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestBuildID requires the build id that readelf prints.
func TestBuildID(t *testing.T) {
	for _, flag := range []string{"-Wl,--build-id=sha1", "-Wl,--build-id=md5", "-Wl,--build-id=uuid", "-Wl,--build-id=none"} {
		program := livetest.CBinary(t, "nojit.c", flag)
		want := ""
		if m := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindStringSubmatch(done(t, "readelf", "-n", program)); m != nil {
			want = m[1]
		}
		require.Equal(t, want, hex.EncodeToString(openImage(t, program).BuildID()), flag)
	}
}

// TestDebugFrom requires that a stripped program with its separate file has its original symbols, for each tool that separates symbols. It must not
// use the symbols of another program's file.
func TestDebugFrom(t *testing.T) {
	dir := t.TempDir()
	whole := livetest.CBinary(t, "threads.c", "-g")
	other := livetest.CBinary(t, "nojit.c", "-g")
	path := func(name string) string { return filepath.Join(dir, name) }
	done(t, "strip", "-o", path("stripped"), whole)
	done(t, "objcopy", "--only-keep-debug", whole, path("debug"))
	done(t, "eu-strip", "-f", path("eu-debug"), "-o", path("eu-stripped"), whole)
	done(t, "llvm-strip-19", "--strip-all", "-o", path("llvm-stripped"), whole)
	done(t, "llvm-objcopy-19", "--only-keep-debug", whole, path("llvm-debug"))
	done(t, "objcopy", "--only-keep-debug", "--compress-debug-sections=zlib", whole, path("packed"))
	done(t, "objcopy", "--remove-section=.note.gnu.build-id", whole, path("anonymous"))

	want := openImage(t, whole)
	want.Bias = 0x10000
	var addrs []machine.Addr
	for _, s := range want.sorted() {
		addrs = append(addrs, s.addr)
	}
	require.Greater(t, len(addrs), 20)
	for _, c := range []struct {
		stripped, debug string
		whole           bool
	}{
		{"stripped", path("debug"), true}, {"eu-stripped", path("eu-debug"), true}, {"llvm-stripped", path("llvm-debug"), true},
		{"stripped", path("llvm-debug"), true}, {"stripped", path("packed"), true}, {"stripped", whole, true},
		{"stripped", other, false}, {"stripped", path("anonymous"), false}, {"stripped", path("stripped"), false},
	} {
		img := openImage(t, path(c.stripped))
		img.Bias = 0x10000
		var asked [][]byte
		img.DebugFrom(func(id []byte) *Image {
			asked = append(asked, id)
			return openImage(t, c.debug)
		})
		require.Empty(t, asked, "before a symbol is asked for")
		sym, ok := img.Lookup("main")
		require.Equal(t, c.whole, ok, "%s, %s", c.stripped, c.debug)
		require.Equal(t, [][]byte{want.BuildID()}, asked)
		if !c.whole {
			continue
		}
		at, ok := want.Lookup("main")
		require.True(t, ok)
		require.Equal(t, at, sym)
		for _, a := range addrs {
			// Linker-defined symbols, such as _edata, may be in different sections.
			if want.CodeAt(a) == nil {
				continue
			}
			require.Equal(t, want.SymbolsStarting(a), img.SymbolsStarting(a))
			one, ok := want.SymbolAt(a + 1)
			two, same := img.SymbolAt(a + 1)
			require.Equal(t, ok, same)
			require.Equal(t, one, two)
		}
	}

	// An image with symbols does not open another file.
	img := openImage(t, whole)
	img.DebugFrom(func([]byte) *Image { panic("asked") })
	_, ok := img.Lookup("main")
	require.True(t, ok)
	// The separate file may be missing.
	img = openImage(t, path("stripped"))
	img.DebugFrom(func([]byte) *Image { return nil })
	_, ok = img.Lookup("main")
	require.False(t, ok)
}
