package ir

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// bitcodeOf assembles a module.
func bitcodeOf(t testing.TB, version int, file string, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "module.bc")
	_, errs, ok := llvm(t, version, "llvm-as", append(args, "-o", out, file)...)
	require.True(t, ok, errs)
	code, err := os.ReadFile(out)
	require.NoError(t, err)
	return code
}

// TestSplitBitcode requires that concatenated bitcode, as a linker produces it, is split at the ends of each release's modules.
func TestSplitBitcode(t *testing.T) {
	var parts [][]byte
	for _, v := range versions {
		parts = append(parts, bitcodeOf(t, v, filepath.Join("testdata", "common.ll"), opaque14(v)...))
	}
	for _, padding := range []int{0, 4, 15} {
		var all []byte
		for _, p := range parts {
			all = append(append(all, p...), make([]byte, padding)...)
		}
		got, err := SplitBitcode(all)
		require.NoError(t, err)
		require.Len(t, got, len(parts))
		for i := range parts {
			require.True(t, bytes.Equal(parts[i], got[i]), "module %d", i)
		}
		for cut := range 200 {
			got, err := SplitBitcode(all[:len(all)-padding-1-cut])
			require.ErrorContains(t, err, "the bitcode is incomplete")
			require.Len(t, got, len(parts)-1)
		}
	}
	m, err := ParseBitcode("part", parts[0])
	require.NoError(t, err)
	require.NoError(t, m.Check())
	for _, odd := range []string{"BC\xC0\xDE", "nothing", "\xDE\xC0\x17\x0B", "BC\xC0\xDE\xff\xff\xff\xff\xff\xff\xff\xff"} {
		_, err := SplitBitcode([]byte(odd))
		require.Error(t, err)
	}
	none, err := SplitBitcode(make([]byte, 100))
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestDisassemblerIsBounded requires that the memory of llvm-dis is limited.
func TestDisassemblerIsBounded(t *testing.T) {
	hungry, source := filepath.Join(t.TempDir(), "llvm-dis"), filepath.Join(t.TempDir(), "hungry.c")
	code := "#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n  if (!malloc(5ul << 30)) return fputs(\"no memory\\n\", stderr), 1;\n  puts(\"; a module\");\n  return 0;\n}\n"
	require.NoError(t, os.WriteFile(source, []byte(code), 0o600))
	livetest.Make(t, livetest.Tool(t, "gcc"), "-O0", source, "-o", hungry)
	_, err := runDisassembler(hungry, []byte(magic))
	require.ErrorContains(t, err, "no memory")
}

func FuzzSplitBitcode(f *testing.F) {
	f.Add(bitcodeOf(f, 19, filepath.Join("testdata", "common.ll")))
	f.Add([]byte("\xDE\xC0\x17\x0B\x00\x00\x00\x00\x14\x00\x00\x00\x04\x00\x00\x00\x07\x00\x00\x00BC\xC0\xDE"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, _ := SplitBitcode(b)
		total := 0
		for _, p := range parts {
			require.NotEmpty(t, p)
			total += len(p)
		}
		require.LessOrEqual(t, total, len(b))
	})
}
