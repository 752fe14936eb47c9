package livetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// This runs every configuration that the documentation of the place of the stack map section names.
func TestLli(t *testing.T) {
	Slow(t)
	programs := map[int][]string{
		14: {"jit_pp.ll", "jit_sp.ll"}, // statepoints of 14 want typed pointers
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

// What lli dumps for perf goes to the test's files. perf's convention is that the dump is mapped.
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

// These are the three other endings of the host: two signals that kill it, and one that keeps it running.
func TestHostEndings(t *testing.T) {
	for how, signal := range map[string]syscall.Signal{"trap": syscall.SIGTRAP, "abort": syscall.SIGABRT} {
		p := Host(t, 19, "mcjit", how)
		require.ErrorContains(t, p.Wait(), signal.String())
		require.False(t, p.Alive())
	}
	p := Host(t, 19, "mcjit", "loop")
	time.Sleep(20 * time.Millisecond) // in which it goes on; a slow machine finds less, and nothing wrong
	require.True(t, p.Alive())
	require.False(t, p.paused())
	p.Kill()
	require.False(t, p.Alive())
}

// A changed input must not find the old output, and an unchanged one must not be built again.
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
	source = filepath.Join(t.TempDir(), "answer.c") // another place, of which nothing is in what is made
	moved, madeMoved := compile(1)
	require.Equal(t, first, moved)
	require.Equal(t, made, madeMoved)
}
