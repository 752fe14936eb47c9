package unwind

import (
	"example.com/reframe/test/livetest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStackOfConstructor requires that the stack in a constructor of a library ends at the startup code of the dynamic linker.
func TestStackOfConstructor(t *testing.T) {
	dir := t.TempDir()
	library, program := filepath.Join(dir, "libstops.so"), filepath.Join(dir, "program")
	for name, text := range map[string]string{
		"stops.c":   "int stopped; __attribute__((constructor)) static void stop(void) { __asm__ volatile(\"int3\"); stopped = 1; }\n",
		"program.c": "extern int stopped;\nint main(void) { return stopped; }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	livetest.Make(t, "gcc", "-O2", "-shared", "-fPIC", "-o", library, filepath.Join(dir, "stops.c"))
	run(t, livetest.Tool(t, "gcc"), "-O2", "-fPIE", "-pie", "-o", program, filepath.Join(dir, "program.c"), library, "-Wl,-rpath,"+dir)
	want, c := underGDB(t, program)
	s := stop{want, c}.walk()
	require.True(t, s.End.Complete, s.End.Reason)
	last := len(s.Frames) - 1
	require.Equal(t, "_dl_start_user", want[last].Name)
	for _, beyond := range want[last+1:] { // gdb mistakes the data that the kernel put on the stack for return addresses
		require.Empty(t, beyond.Name)
	}
	for i, f := range s.Frames {
		require.Equal(t, want[i].PC, f.PC.String())
	}
	require.Contains(t, s.End.Reason, "is the outermost: its process began in it")
}
