package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// program is a program of the fidelity suite that LLVM's interpreter can also run. That interpreter does not support variadic functions, and crashes
// on callbacks of the C library, which excludes Lua and cmark.
type program struct {
	name, pack string
	files      []string
	without    string // base names of files that the program does not include
	flags      []string
	fed        bool // the program reads standard input
	args       []string
}

var programs = []program{
	{name: "bzip2", pack: "bzip2", fed: true, args: []string{"-6"},
		files: []string{"blocksort.c", "huffman.c", "crctable.c", "randtable.c", "compress.c", "decompress.c", "bzlib.c", "bzip2.c"}},
	{name: "minigzip", pack: "zlib", fed: true, args: []string{"-6"}, files: []string{"*.c", "test/minigzip.c"},
		flags: []string{"-DHAVE_UNISTD_H", "-DNO_snprintf", "-DNO_vsnprintf", "-include", "test/fidelity/testdata/zlib/cleared.h"}},
	{name: "zlib-example", pack: "zlib", files: []string{"*.c", "test/example.c"},
		without: "gzclose.c gzlib.c gzread.c gzwrite.c compress.c uncompr.c", flags: []string{"-DZ_SOLO"}},
}

// programInput is the number of bytes of Lua's sources that the compressors read.
const programInput = 150_000

// programModule compiles a program to a module that LLVM's interpreter can run: with -O1, which generates no vectors, and without fused operations.
func (b *bench) programModule(p program) string {
	dir := livetest.DebianSource(b, p.pack)
	var files []string
	for _, pattern := range p.files {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(b, err)
		require.NotEmpty(b, matches, "%s of package %s", pattern, p.pack)
		for _, file := range matches {
			if !strings.Contains(" "+p.without+" ", " "+filepath.Base(file)+" ") {
				files = append(files, file)
			}
		}
	}
	flags := append([]string{"-O1", "-ffp-contract=off", "-w", "-I", dir}, p.flags...)
	text, err := os.ReadFile(livetest.CModule(b, 19, flags, files...))
	require.NoError(b, err)
	path := filepath.Join(b.TempDir(), p.name+".ll")
	require.NoError(b, os.WriteFile(path, []byte(withoutIntrinsics(string(text))), 0o600))
	return path
}

// input returns the input of the compressors.
func (b *bench) input() []byte {
	files, err := filepath.Glob(filepath.Join(livetest.DebianSource(b, "lua5.4"), "src", "*.c"))
	require.NoError(b, err)
	var text bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(b, err)
		text.Write(content)
	}
	return text.Next(programInput)
}
