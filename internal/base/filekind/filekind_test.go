package filekind

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOf uses the beginnings of files as common programs write them.
func TestOf(t *testing.T) {
	t.Parallel()
	elf := func(data, low, high byte) string {
		return "\x7fELF\x02" + string([]byte{data}) + "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00" + string([]byte{low, high})
	}
	for text, want := range map[string]string{
		elf(1, 4, 0):                       "a core",
		elf(2, 0, 4):                       "a core",
		elf(1, 1, 0):                       "an ELF object",
		elf(2, 0, 1):                       "an ELF object",
		elf(1, 2, 0):                       "an ELF program or library",
		elf(1, 3, 0):                       "an ELF program or library",
		"\x7fELF\x02\x01":                  "a truncated ELF file",
		"BC\xc0\xde\x35\x14":               "LLVM bitcode",
		"; ModuleID = 'x'\n":               "IR",
		"; a comment\ndefine i64 @f() {\n": "IR",
		"@g = global i64 1\n":              "IR",
		"{\"schema\": \"x\"}":              "JSON",
		"\n [1]":                           "JSON",
		"core a.core\n-- a.txt --\n":       "a replay script",
		"one\x00two":                       "binary data",
		"!<arch>\nx.o/":                    "an archive",
		"MZ\x90\x00":                       "a Windows program",
		"#!/bin/sh\necho\n":                "",
		"":                                 "",
		" \n":                              "",
	} {
		kind, ok := Of([]byte(text))
		require.Equal(t, want, kind.What, "%q", text)
		require.Equal(t, want != "", ok)
	}
	require.Equal(t, "expected IR, got a core; reframe frames FILE reads it", Kind{"a core", "reframe frames FILE reads it"}.Instead("IR"))
	require.Equal(t, "expected IR, got binary data", Kind{"binary data", ""}.Instead("IR"))
	_, ok := OfFile(t.TempDir())
	require.False(t, ok)
	_, ok = OfFile("/nosuch")
	require.False(t, ok)
	kind, ok := OfFile("/proc/self/exe")
	require.True(t, ok)
	require.Equal(t, "an ELF program or library", kind.What)
}
