package fidelity_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/test/livetest"
)

// A source is a program of a Debian source package, which scripts/sources.sh has fetched.
type source struct {
	pack    string   // name of the package
	files   []string // patterns of files in the package
	without []string // base names of files that the program does not include
	own     []string // additional files in testdata
	flags   []string // for clang
}

var sources = map[string]source{
	"minigzip": {
		pack:  "zlib",
		files: []string{"*.c", "test/minigzip.c"},
		flags: []string{"-DHAVE_UNISTD_H", "-include", "testdata/zlib/cleared.h"},
	},
	// The program has its own memcpy and similar functions, and its own allocator, instead of the C library's.
	"zlib-example": {
		pack:    "zlib",
		files:   []string{"*.c", "test/example.c"},
		without: []string{"gzclose.c", "gzlib.c", "gzread.c", "gzwrite.c", "compress.c", "uncompr.c"},
		flags:   []string{"-DZ_SOLO"},
	},
	"bzip2": {
		pack:  "bzip2",
		files: []string{"blocksort.c", "huffman.c", "crctable.c", "randtable.c", "compress.c", "decompress.c", "bzlib.c", "bzip2.c"},
	},
	// Lua raises errors with longjmp. By default the seed of its hashes depends on the time and on an address.
	"lua": {
		pack:    "lua5.4",
		files:   []string{"src/*.c"},
		without: []string{"luac.c"},
		flags:   []string{"-Dluai_makeseed(L)=1", "-Itestdata/lua"},
	},
	// cmark's cmake generates three headers, which are in testdata/cmark.
	"cmark": {
		pack:  "cmark",
		files: []string{"src/*.c"},
		flags: []string{"-Itestdata/cmark"},
	},
}

// module compiles the program to a module.
func (s source) module(t *testing.T, v variant) string {
	t.Helper()
	dir := livetest.DebianSource(t, s.pack)
	files := slices.Clone(s.own)
	for _, pattern := range s.files {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, matches, "%s of package %s", pattern, s.pack)
		for _, file := range matches {
			if !strings.Contains(" "+strings.Join(s.without, " ")+" ", " "+filepath.Base(file)+" ") {
				files = append(files, file)
			}
		}
	}
	flags := append([]string{v.level, "-w", "-I", dir}, s.flags...)
	return livetest.CModule(t, v.release, flags, files...)
}

// sourceVariants returns the builds that run the small inputs. With FIDELITY=all these also run the large inputs.
func sourceVariants() []variant {
	if !all {
		return []variant{{14, "-O0"}, {19, "-O2"}}
	}
	return []variant{{14, "-O0"}, {14, "-O2"}, {19, "-O0"}, {19, "-O2"}}
}

// compared runs a program on an input in the interpreter and as native code. It requires the same result, and returns the output.
func compared(t *testing.T, s source, v variant, stdin []byte, args ...string) []byte {
	t.Helper()
	module := s.module(t, v)
	want := native(t, stdin, livetest.ModuleBinary(t, v.release, module), args...)
	require.Equal(t, want, interpreted(t, module, stdin, append([]string{"program"}, args...)...))
	require.Zero(t, want.Status, "%s", want.Errors)
	require.Empty(t, want.Errors)
	return []byte(want.Output)
}

// input returns bytes to compress: Lua's sources, which compress well, and then as many random bytes as an object file has.
func input(t *testing.T, size int) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(livetest.DebianSource(t, "lua5.4"), "src", "*.c"))
	require.NoError(t, err)
	var text []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text = append(text, content...)
	}
	text = text[:min(len(text), size*3/4)]
	noise := uint32(1)
	for len(text) < size {
		noise ^= noise << 13 // xorshift
		noise ^= noise >> 17
		noise ^= noise << 5
		text = append(text, byte(noise))
	}
	return text
}

func TestCompressionIsAsNative(t *testing.T) {
	livetest.Slow(t)
	size := 8 << 10
	if all {
		size = 400 << 10
	}
	for _, c := range []struct {
		program string
		levels  []string
	}{
		{"minigzip", []string{"-1", "-6", "-9", "-h", "-f", "-r"}},
		{"bzip2", []string{"-1", "-9"}},
	} {
		for _, v := range sourceVariants() {
			t.Run(c.program+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				plain := input(t, size)
				for _, level := range c.levels {
					packed := compared(t, sources[c.program], v, plain, level)
					require.Less(t, len(packed), len(plain))
					require.Equal(t, plain, compared(t, sources[c.program], v, packed, "-d"), "%s", level)
				}
			})
		}
	}
}

// TestZlibBranchesOnWhatWasNeverStored requires that the interpreter reports an uninitialized value in unmodified minigzip. With -1 minigzip does not
// initialize all hash chains, and clang at -O0 does not optimize the values away.
func TestZlibBranchesOnWhatWasNeverStored(t *testing.T) {
	minigzip := sources["minigzip"]
	minigzip.flags = minigzip.flags[:1]
	module := minigzip.module(t, variant{19, "-O0"})
	_, err := run(t, module, input(t, 400<<10), 100e9, "program", "-1")
	var stopped *interp.RunError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, interp.KindUndef, stopped.Kind)
	require.Equal(t, "slide_hash", stopped.Func)
}

func TestZlibExampleIsAsNative(t *testing.T) {
	for _, v := range sourceVariants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			compared(t, sources["zlib-example"], v, nil)
		})
	}
}

// TestLuaScriptsAreAsNative requires that Lua, interpreted and native, has the same output for the scripts of testdata/lua. A script takes its sizes
// from globals if they are set.
func TestLuaScriptsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	scripts, err := filepath.Glob("testdata/lua/*.lua")
	require.NoError(t, err)
	require.Len(t, scripts, 5)
	for _, script := range scripts {
		for _, v := range sourceVariants() {
			t.Run(filepath.Base(script)+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(script)
				require.NoError(t, err)
				if all {
					text = append([]byte("N, F, G, STEPS = 50000, 22, 20000, 2000\n"), text...)
				}
				compared(t, sources["lua"], v, text, "-")
			})
		}
	}
}

// TestMarkdownIsAsNative requires that cmark, interpreted and native, converts its README to the same bytes, and with FIDELITY=all also the
// specification of CommonMark.
func TestMarkdownIsAsNative(t *testing.T) {
	livetest.Slow(t)
	name := "README.md"
	if all {
		name = "test/spec.txt"
	}
	for _, v := range sourceVariants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(livetest.DebianSource(t, "cmark"), name))
			require.NoError(t, err)
			for _, format := range []string{"html", "xml", "man", "latex", "commonmark"} {
				require.NotEmpty(t, compared(t, sources["cmark"], v, text, "--to", format, "--smart"))
			}
		})
	}
}
