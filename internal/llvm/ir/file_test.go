package ir

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestReadsBitcode requires that bitcode of every release reads like its text.
func TestReadsBitcode(t *testing.T) {
	for _, v := range versions {
		text := opt(t, v, filepath.Join("testdata", "common.ll"), opaque14(v)...)
		file := filepath.Join(t.TempDir(), "common.bc")
		_, errs, ok := llvm(t, v, "llvm-as", append(opaque14(v), "-o", file, filepath.Join("testdata", "common.ll"))...)
		require.True(t, ok, errs)
		m, err := ParseFile(file)
		require.NoError(t, err)
		require.NoError(t, m.Check())
		compareModules(t, file, parse(t, text), m)

		code, err := os.ReadFile(file)
		require.NoError(t, err)
		var header []byte
		for _, field := range []uint32{0x0B17C0DE, 0, 20, uint32(len(code)), 7} {
			header = binary.LittleEndian.AppendUint32(header, field)
		}
		wrapped, err := ParseFile(write(t, "wrapped.bc", string(append(header, code...))))
		require.NoError(t, err)
		compareModules(t, file, m, wrapped)
	}
}

func TestBitcodeThatCannotBeRead(t *testing.T) {
	livetest.NeedsTools(t)
	file := write(t, "broken.bc", "BC\xC0\xDEbroken")
	_, err := ParseFile(file)
	require.ErrorContains(t, err, file+" is LLVM bitcode, and no installed llvm-dis can read it: llvm-dis-22: exit status 1: ")

	t.Setenv("PATH", t.TempDir())
	_, err = ParseFile(file)
	require.EqualError(t, err, file+" is LLVM bitcode, and llvm-dis not found on the PATH: install LLVM (Debian: apt install llvm-22), or give text from llvm-dis or clang -S -emit-llvm")
}

// TestBitcodeByAnyDisassembler requires that the first llvm-dis that can read the file is used, with any of its names.
func TestBitcodeByAnyDisassembler(t *testing.T) {
	file := filepath.Join(t.TempDir(), "common.bc")
	_, errs, ok := llvm(t, 19, "llvm-as", "-o", file, filepath.Join("testdata", "common.ll"))
	require.True(t, ok, errs)
	plain, old := livetest.LLVM(t, 19, "llvm-dis"), livetest.Tool(t, "false")
	bin := t.TempDir()
	require.NoError(t, os.Symlink(old, filepath.Join(bin, "llvm-dis-16")))
	require.NoError(t, os.Symlink(plain, filepath.Join(bin, "llvm-dis")))
	t.Setenv("PATH", bin)
	m, err := ParseFile(file)
	require.NoError(t, err)
	require.NoError(t, m.Check())
}

func TestOutputOfADisassemblerIsBounded(t *testing.T) {
	b := bounded{limit: 5}
	_, err := io.Copy(&b, strings.NewReader("12345"))
	require.NoError(t, err)
	_, err = io.Copy(&b, strings.NewReader("6"))
	require.ErrorIs(t, err, errTooLarge)
	require.True(t, b.full)
	require.Equal(t, "12345", b.buf.String())
}
