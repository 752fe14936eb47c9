package clitest

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// ChangedObject writes a changed copy of an object and returns its path. change gets the bytes and the offset of the stack maps.
func ChangedObject(t *testing.T, object, name string, change func(b []byte, at int) []byte) string {
	t.Helper()
	b, err := os.ReadFile(object)
	require.NoError(t, err)
	if f, err := macho.Open(object); err == nil {
		defer f.Close()
		return TempFile(t, name, string(change(b, int(f.Section("__llvm_stackmaps").Offset))))
	}
	f, err := elf.Open(object)
	require.NoError(t, err)
	defer f.Close()
	return TempFile(t, name, string(change(b, int(f.Section(".llvm_stackmaps").Offset))))
}

// RunTool runs a tool and returns its output.
func RunTool(t *testing.T, tool string, args ...string) string {
	t.Helper()
	if o := slices.Index(args, "-o"); o >= 0 && args[o+1] != "-" { // writes a file, which may be in the cache
		livetest.Make(t, tool, args...)
		return ""
	}
	var stdout, stderr bytes.Buffer
	c := exec.Command(livetest.Tool(t, tool), args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	require.NoError(t, c.Run(), "%s\n%s", c, &stderr)
	return stdout.String()
}

// FilesIn returns the names of the files in a directory.
func FilesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TickValues returns the values of tick.ll's stackmap in iteration n of the first call, computed by the formula of the C version.
func TickValues(n uint64) [4]uint64 {
	acc, x, y := uint64(0), uint64(12345), uint64(1)
	for i := range n {
		next := acc*31 + x
		x ^= acc >> 7
		y = (y + i) ^ next
		acc = next
	}
	return [4]uint64{n, acc, x, y}
}

// JoinedLines joins lines that were wrapped to the width of a terminal.
func JoinedLines(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// CaptureVerbs are the verbs that inspect a process and require no other argument.
var CaptureVerbs = []string{"frames", "resume", "maps", "explain"}

// SumOfSquaresBelow1000 is the sum of the squares from 0 to 999: n(n+1)(2n+1)/6 for n = 999.
const SumOfSquaresBelow1000 = "332833500"
