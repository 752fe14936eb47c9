package ptrace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestModules requires the address at which the kernel mapped each module of a live process. The expected address is computed from the process's
// symbols, nm and the start of the mapping.
func TestModules(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1")
	target := capture(t, p.PID, Options{})
	path := livetest.CBinary(t, "threads.c")
	at := symbols(t, path)
	m := target.Modules[0]
	require.Equal(t, path, m.Path)
	require.NotNil(t, m.Image, m.Why)
	require.Equal(t, m.maps[0].Start, m.Image.Bias)
	sym, ok := target.FindSymbol("main")
	require.True(t, ok)
	require.Equal(t, at["main"]+m.Image.Bias, sym.Addr)
	require.Same(t, m, target.ModuleAt(sym.Addr))
	// Code is read from the file, and equals memory.
	code := make([]byte, 64)
	require.NoError(t, target.ReadMemory(code, sym.Addr))
	require.Equal(t, peek(t, p.PID, sym.Addr, 64), code)
	// Data was not copied, and must not be read from the file.
	require.Error(t, target.ReadMemory(code, at["running"]+m.Image.Bias))
	names := map[string]bool{}
	for _, m := range target.Modules {
		require.NotNil(t, m.Image, "%s: %s", m.Path, m.Why)
		names[filepath.Base(m.Path)] = true
	}
	require.True(t, names["libc.so.6"] && names["ld-linux-x86-64.so.2"] && names["[vdso]"], "%v", names)
	require.Nil(t, target.ModuleAt(0))
	_, ok = target.Mapping(0)
	require.False(t, ok)
	_, ok = target.FindSymbol("no such symbol")
	require.False(t, ok)
}

// TestOddMappings requires that modules, symbols and code are correct for the unusual mappings that odd.c creates.
func TestOddMappings(t *testing.T) {
	p := program(t, "odd.c", nil)
	var target *Target
	done := make(chan struct{})
	go func() {
		defer close(done)
		target = capture(t, p.PID, Options{})
	}()
	select {
	case <-done:
	case <-time.After(livetest.Patience):
		require.Fail(t, "it hangs, perhaps in opening the pipe")
	}
	self := target.Modules[0]
	require.Equal(t, executable(t, "odd.c"), self.Path)
	require.Equal(t, machine.Addr(0x10000000), self.maps[0].Start, "the copy comes first")
	require.NotNil(t, self.Image)
	sym, ok := self.Image.Lookup("main")
	require.True(t, ok)
	m, ok := target.Mapping(sym.Addr)
	require.True(t, ok)
	require.True(t, m.Exec, "main is found in the copy")
	require.Len(t, target.Registries, 1)
	require.Empty(t, target.Registries[0].Broken)
	require.Greater(t, target.Registries[0].Descriptor, machine.Addr(0x20000000))

	// The code in the memfd was copied only around the frame; the rest is unavailable.
	require.True(t, target.HasJITCode())
	pc, err := target.Threads()[0].Registers.Addr(machine.AMD64.PC)
	require.NoError(t, err)
	jit := target.ModuleAt(pc)
	require.NotNil(t, jit)
	require.Nil(t, jit.Image)
	b := make([]byte, 7)
	require.NoError(t, target.ReadMemory(b, pc-7))
	require.Equal(t, []byte{0xb8, 34, 0, 0, 0, 0x0f, 0x05}, b)
	require.ErrorContains(t, target.ReadMemory(b, pc+6<<20), "/memfd:jit (deleted) cannot be read")

	files := 0
	for _, m := range target.Modules {
		if strings.HasSuffix(m.Path, "/pipe (deleted)") {
			files++
			require.Nil(t, m.Image)
		}
	}
	require.Equal(t, 1, files)
}

// TestReplacedExecutable requires that, if a program's file was replaced after its start, the old file is read.
func TestReplacedExecutable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	copyFile := func(from string) {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".new", b, 0o755))
		require.NoError(t, os.Rename(path+".new", path))
	}
	copyFile(livetest.CBinary(t, "threads.c"))
	cmd := exec.Command(path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_, err = out.Read(make([]byte, 6))
	require.NoError(t, err)
	copyFile(livetest.CBinary(t, "nojit.c"))
	target := capture(t, cmd.Process.Pid, Options{})
	m := target.Modules[0]
	require.Equal(t, path+" (deleted)", m.Path)
	require.NotNil(t, m.Image, m.Why)
	_, ok := m.Image.Lookup("churner")
	require.True(t, ok, "a function of the old program")
}
