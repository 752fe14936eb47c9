package ptrace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// seenIn returns a description of a core's modules: their addresses, and the contents of their symbol tables.
func seenIn(t testing.TB, path string, files *ModuleFiles) []string {
	t.Helper()
	core, err := OpenCore(path, CoreOptions{Files: files})
	require.NoError(t, err)
	defer core.Close()
	var all []string
	for _, m := range core.Modules {
		line := fmt.Sprintf("%s %q %q %q", m.Path, m.Why, m.Unverified, m.MapsWhy)
		if m.Image != nil {
			line += fmt.Sprintf(" %v", m.Image.Bias)
			for _, name := range []string{"pause", "main", "__jit_debug_descriptor", "_start"} {
				sym, ok := m.Image.Lookup(name)
				inside, found := m.Image.SymbolAt(sym.Addr + 1)
				line += fmt.Sprintf(" %v %v %v %v", sym, ok, inside, found)
				if ok {
					starting, _ := m.Image.SymbolStarting(sym.Addr)
					line += fmt.Sprint(" ", starting)
				}
			}
		}
		all = append(all, line)
	}
	return all
}

// TestModuleFiles requires that files kept open for the next core give the same results as newly opened files, at any module addresses, and with
// several cores open at once.
func TestModuleFiles(t *testing.T) {
	livetest.Slow(t)
	var cores []string
	for _, version := range []int{19, 19, 22} {
		cores = append(cores, ownCore(t, livetest.Lli(t, version, "deoptimize.ll", "mcjit")))
	}
	cores = append(cores, ownCore(t, livetest.Linked(t, 19, "deoptimize.ll", "-pie")))
	var want [][]string
	for _, path := range cores {
		want = append(want, seenIn(t, path, nil))
	}
	require.NotEqual(t, want[0], want[1], "they lie elsewhere")
	files := &ModuleFiles{}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for n := range 6 {
				k := (n + worker) % len(cores)
				require.Equal(t, want[k], seenIn(t, cores[k], files))
			}
		})
	}
	group.Wait()

	before := opened(t)
	require.NotEmpty(t, files.idle)
	for k := range cores {
		require.Equal(t, want[k], seenIn(t, cores[k], files))
	}
	require.Equal(t, before, opened(t), "no file was opened anew")
	seen := map[string]bool{}
	for _, o := range files.idle {
		seen[o.path] = true
	}
	require.Greater(t, len(seen), 20)
	files.Close()
	require.Less(t, opened(t), before-20)
	require.Equal(t, want[0], seenIn(t, cores[0], files), "what is closed keeps nothing")
	require.Empty(t, files.idle)
}

// TestModuleFilesThatChange requires that a changed file is opened again.
func TestModuleFilesThatChange(t *testing.T) {
	binary := livetest.CBinary(t, "nojit.c", "-no-pie")
	program := filepath.Join(t.TempDir(), "program")
	content, err := os.ReadFile(binary)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, content, 0o755))
	core := ownCore(t, livetest.Program(t, program))
	files := &ModuleFiles{}
	defer files.Close()
	look := func() (found string) {
		for _, line := range seenIn(t, core, files) {
			if strings.HasPrefix(line, program+" ") {
				found = line
			}
		}
		return found
	}
	same := look()
	require.Contains(t, same, "{main 0x")
	require.Equal(t, same, look())
	other, err := os.ReadFile(livetest.CBinary(t, "threads.c", "-no-pie"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(program)) // a file that a process executes cannot be overwritten
	require.NoError(t, os.WriteFile(program, other, 0o755))
	require.Contains(t, look(), "the file there now is a different one: ")
	require.NoError(t, os.Remove(program))
	require.Contains(t, look(), "no such file or directory")
	require.NoError(t, os.WriteFile(program, content, 0o755))
	require.NoError(t, os.Chtimes(program, time.Time{}, time.Unix(1e9, 0)))
	require.Equal(t, same, look())
}

// opened returns the number of files that this process has open.
func opened(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// TestCoreObjects requires that the memory for the objects of each core can be limited.
func TestCoreObjects(t *testing.T) {
	path := ownCore(t, livetest.Lli(t, 19, "deoptimize.ll", "mcjit"))
	core, err := OpenCore(path, CoreOptions{Objects: 1 << 30})
	require.NoError(t, err)
	defer core.Close()
	e := core.Registries[0].Entries[0]
	require.Empty(t, e.Bad)
	refused := fmt.Sprintf("it needs %d bytes after the 0 of the objects before it; the limit for all objects is %d", e.Size, e.Size-1)
	for room, want := range map[uint64]string{e.Size: "", e.Size - 1: refused} {
		core, err := OpenCore(path, CoreOptions{Objects: room})
		require.NoError(t, err)
		defer core.Close()
		require.Equal(t, want, core.Registries[0].Entries[0].Bad)
	}
}
