package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLli requires that lli runs in every configuration that the documentation names for finding the stack map section.
func TestLli(t *testing.T) {
	Slow(t)
	programs := map[int][]string{
		14: {"jit_pp.ll", "jit_sp.ll"}, // statepoints of LLVM 14 require typed pointers
		16: {"jit_pp.ll", "jit_sp.ll", "deoptimize.ll"},
		19: {"jit_pp.ll", "jit_sp.ll", "deoptimize.ll"},
		22: {"jit_pp.ll", "jit_sp.ll", "deoptimize.ll"},
	}
	for version, names := range programs {
		for _, name := range names {
			for kind := range lliKinds {
				t.Run(fmt.Sprintf("%d/%s/%s", version, name, kind), func(t *testing.T) {
					p := Lli(t, version, name, kind)
					require.True(t, p.Alive())
					require.True(t, p.paused())
					require.Equal(t, "ready\n", p.Output())
					text, err := os.ReadFile(p.IR)
					require.NoError(t, err)
					require.Equal(t, name != "jit_pp.ll", strings.Contains(string(text), "gc.statepoint"))
				})
			}
		}
	}
}

// TestDumpIsRemoved requires that lli writes its dumps for perf into the test's directory, and maps them, as perf requires.
func TestDumpIsRemoved(t *testing.T) {
	for _, version := range []int{14, 16, 19, 22} {
		p := Lli(t, version, "jit_pp.ll", "mcjit")
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
		require.NoError(t, err)
		require.Contains(t, string(maps), " "+p.cmd.Dir+"/.debug/jit/", "LLVM %d", version)
	}
}

func TestHost(t *testing.T) {
	libraries := map[int]string{14: "/libLLVM-14.so", 19: "/libLLVM.so.19"}
	modes := map[int][]string{
		14: {"mcjit", "orc", "orcrt", "orcgdb", "orcperf"},
		19: {"mcjit", "orc", "orcrt", "orcgdb", "orcperf", "orcdbg"},
	}
	for version, names := range modes {
		for _, mode := range names {
			t.Run(fmt.Sprintf("%d/%s", version, mode), func(t *testing.T) {
				p := Host(t, version, mode, "block")
				require.True(t, p.paused())
				require.Contains(t, p.Output(), fmt.Sprintf("pid %d jf @0x", p.PID))
				maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
				require.NoError(t, err)
				require.True(t, strings.Contains(string(maps), libraries[version]))
			})
		}
	}
}

// TestHostEndings requires that the host ends or runs as its mode says: by SIGTRAP, by SIGABRT, or in an endless loop.
func TestHostEndings(t *testing.T) {
	for how, signal := range map[string]syscall.Signal{"trap": syscall.SIGTRAP, "abort": syscall.SIGABRT} {
		p := Host(t, 19, "mcjit", how)
		require.ErrorContains(t, p.Wait(), signal.String())
		require.False(t, p.Alive())
	}
	p := Host(t, 19, "mcjit", "loop")
	time.Sleep(20 * time.Millisecond) // gives the process time to run; on a slow machine the test checks less, but never fails wrongly
	require.True(t, p.Alive())
	require.False(t, p.paused())
	p.Kill()
	require.False(t, p.Alive())
}

// TestBuildIsKeyedByContent requires that a file is built again if its input has changed, and only then.
func TestBuildIsKeyedByContent(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source := filepath.Join(t.TempDir(), "answer.c")
	compile := func(status int) (string, time.Time) {
		require.NoError(t, os.WriteFile(source, fmt.Appendf(nil, "int main(void) { return %d; }", status), 0o644))
		out := build(t, recipe{output: "answer", tool: Tool(t, "gcc"), args: []string{source}, inputs: []string{source}})
		info, err := os.Stat(out)
		require.NoError(t, err)
		return out, info.ModTime()
	}
	first, made := compile(1)
	again, madeAgain := compile(1)
	require.Equal(t, first, again)
	require.Equal(t, made, madeAgain)
	other, _ := compile(2)
	require.NotEqual(t, first, other)
	source = filepath.Join(t.TempDir(), "answer.c") // the path does not influence the output
	moved, madeMoved := compile(1)
	require.Equal(t, first, moved)
	require.Equal(t, made, madeMoved)
}

// TestClonesShareBuilds requires that a file that another clone has built is used, unless it may contain the path of that clone.
func TestClonesShareBuilds(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	compile := func(flags ...string) string {
		clone := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(clone, "go.mod"), nil, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(clone, "status.h"), []byte("#define STATUS 3\n"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(clone, "answer.c"), []byte("#include <status.h>\nint main(void) { return STATUS; }"), 0o644))
		t.Chdir(clone)
		return Made(t, "gcc", "program", append(flags, "-I"+clone+"/", filepath.Join(clone, "answer.c"))...)
	}
	require.Equal(t, compile(), compile())
	require.NotEqual(t, compile("-g"), compile("-g"))
}

// TestPrune requires that scripts/prune.sh removes only files that tests have not used for a long time.
func TestPrune(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	compile := func(status int) string {
		source := filepath.Join(t.TempDir(), "answer.c")
		require.NoError(t, os.WriteFile(source, fmt.Appendf(nil, "int main(void) { return %d; }", status), 0o644))
		return build(t, recipe{output: "answer", tool: Tool(t, "gcc"), args: []string{source}, inputs: []string{source}})
	}
	source := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(source, []byte("text"), 0o644))
	unused, usedAgain := compile(1), compile(2)
	Printed(t, "cat", source)
	answers, err := filepath.Glob(filepath.Join(CacheRoot(), "*", "answer"))
	require.NoError(t, err)
	require.Len(t, answers, 3)
	sources := filepath.Join(CacheRoot(), "sources")
	require.NoError(t, os.Mkdir(sources, 0o755))
	old := time.Now().Add(-20 * 24 * time.Hour) // a time in the past, so the test does not wait
	for _, file := range append(answers, filepath.Join(sources, "zlib")) {
		require.NoError(t, os.Chtimes(filepath.Dir(file), old, old))
	}
	require.Equal(t, usedAgain, compile(2))
	Printed(t, "cat", source)
	out, err := exec.Command(filepath.Join(moduleRoot(t), "scripts", "prune.sh")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, out)
	require.NoFileExists(t, unused)
	require.FileExists(t, usedAgain)
	require.DirExists(t, sources)
	left, err := filepath.Glob(filepath.Join(CacheRoot(), "*", "answer"))
	require.NoError(t, err)
	require.Len(t, left, 2)
}
