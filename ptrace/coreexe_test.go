package ptrace

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestCoreWithoutNames reads a core that names no files, such as one of QEMU. With --exe, memory that the core omits must be read from the program,
// and the program's sections must be found.
func TestCoreWithoutNames(t *testing.T) {
	for _, c := range livetest.Crosses {
		if !c.WritesCores() {
			continue
		}
		for _, flag := range []string{"-static", "-static-pie"} {
			if flag == "-static-pie" && c.Arch != "arm64" {
				continue // Debian's C libraries have no start-up code for this architecture
			}
			t.Run(c.Arch+flag, func(t *testing.T) {
				program := c.Build(t, []string{flag, "-O1"}, "testdata/crash.c")
				path := c.Core(t, program)
				without := openCore(t, path)
				require.Empty(t, without.Modules)
				pc, err := without.Threads()[0].Registers.Addr(without.Arch().PC)
				require.NoError(t, err)
				require.ErrorContains(t, without.ReadMemory(make([]byte, 8), pc), "not in the core")

				core, err := OpenCore(path, CoreOptions{Exe: program})
				require.NoError(t, err)
				t.Cleanup(core.Close)
				require.Len(t, core.Modules, 1)
				m := core.Modules[0]
				require.Equal(t, program, m.Path)
				require.Empty(t, m.Why)
				require.NotNil(t, m.Image)
				file, err := elf.Open(program)
				require.NoError(t, err)
				defer file.Close()
				require.Equal(t, file.Type == elf.ET_DYN, m.Image.Bias != 0)
				text := file.Section(".text")
				want, err := text.Data()
				require.NoError(t, err)
				got := make([]byte, len(want))
				require.NoError(t, core.ReadMemory(got, machine.Addr(text.Addr)+m.Image.Bias))
				require.Equal(t, want, got)
				row, ok := core.Mapping(pc)
				require.True(t, ok)
				require.True(t, row.Exec)
				require.Equal(t, program, row.Path)

				other := c.Build(t, []string{flag, "-O1", "-DOTHER"}, "testdata/crash.c")
				if _, err := OpenCore(path, CoreOptions{Exe: other}); err != nil {
					require.ErrorContains(t, err, "it is another program")
				}
			})
		}
	}
}

// TestCoreOfMovedProgram requires that Exe replaces the path of a core's program.
func TestCoreOfMovedProgram(t *testing.T) {
	p := livetest.Linked(t, 19, "deoptimize.ll", "-pie")
	path := livetest.Gcore(t, p)
	named := openCore(t, path)
	b, err := os.ReadFile(named.Modules[0].Path)
	require.NoError(t, err)
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.WriteFile(moved, b, 0o600))
	core, err := OpenCore(path, CoreOptions{Exe: moved})
	require.NoError(t, err)
	t.Cleanup(core.Close)
	require.Equal(t, named.Modules[0].Path, core.Modules[0].Path, "it is called what it was")
	require.Equal(t, named.Modules[0].StackMaps, core.Modules[0].StackMaps)
	require.Equal(t, named.Modules[0].Image.Bias, core.Modules[0].Image.Bias)

	for exe, want := range map[string]string{"/nowhere/at/all": "no such file or directory", t.TempDir(): "not a regular file", livetest.CBinary(t, "nojit.c"): "it is a different file: its build id is"} {
		_, err = OpenCore(path, CoreOptions{Exe: exe})
		require.ErrorContains(t, err, exe)
		require.ErrorContains(t, err, want)
	}
}
