package livetest

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStub requires that a program stops each time that it reaches a breakpoint, and that a core can be written at a stop.
func TestStub(t *testing.T) {
	source := filepath.Join(t.TempDir(), "thrice.c")
	require.NoError(t, os.WriteFile(source, []byte(`__attribute__((noinline)) int work(int n) { return n + 1; }
int main(int argc, char **argv) { volatile int n = argc; for (int k = 0; k < 3; k++) n = work(n); return 0; }
`), 0o600))
	for n := range Crosses {
		c := &Crosses[n]
		if c.Arch == "ppc64" { // a function's symbol is the address of a descriptor
			continue
		}
		t.Run(c.Arch, func(t *testing.T) {
			program := c.Build(t, []string{"-O1", "-static"}, source)
			work := symbol(t, program, "work")
			s := c.Stub(t, program)
			defer s.Close()
			s.Break(work)
			for range 3 {
				pc, stopped := s.Continue()
				require.True(t, stopped)
				require.Equal(t, work, pc)
			}
			_, stopped := s.Continue()
			require.False(t, stopped)

			s = c.Stub(t, program)
			s.Break(work)
			_, stopped = s.Continue()
			require.True(t, stopped)
			core, err := elf.Open(s.Core())
			require.NoError(t, err)
			defer core.Close()
			require.Equal(t, elf.ET_CORE, core.Type)
		})
	}
}

// symbol returns the address of a symbol of a static program.
func symbol(t *testing.T, program, name string) uint64 {
	t.Helper()
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	list, err := f.Symbols()
	require.NoError(t, err)
	for _, s := range list {
		if s.Name == name {
			return s.Value
		}
	}
	require.FailNow(t, "no such symbol", name)
	return 0
}
