package ptrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestMinimalCoreLeavesOutTheEnvironment requires that a minimal core contains the environment of a process only on request. It must contain the
// complete stacks in both cases.
func TestMinimalCoreLeavesOutTheEnvironment(t *testing.T) {
	secret := "correct-horse-battery-staple"
	t.Setenv("REFRAME_TEST_TOKEN", secret)
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	stacks := map[bool][][]byte{}
	for _, kept := range []bool{false, true} {
		target, err := Capture(p.PID, Options{Record: true})
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "core")
		_, err = target.WriteCore(t.Context(), path, RecordOptions{Memory: Minimal, Environment: kept})
		require.NoError(t, err)
		target.Close()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, kept, bytes.Contains(content, []byte(secret)))
		core := openCore(t, path)
		for _, th := range core.threads {
			sp, err := th.Registers.Addr(core.arch.SP)
			require.NoError(t, err)
			stack := make([]byte, 512)
			require.NoError(t, core.ReadMemory(stack, sp))
			stacks[kept] = append(stacks[kept], stack)
		}
	}
	require.Equal(t, stacks[true], stacks[false])
}

// TestSmallCoreOfACoreLeavesOutTheEnvironment requires that a small core, made from a core that gdb or this package wrote, contains the environment
// and the strings of the auxiliary vector only on request. It must contain the arguments and the stack in any case.
func TestSmallCoreOfACoreLeavesOutTheEnvironment(t *testing.T) {
	secret := "correct-horse-battery-staple"
	t.Setenv("REFRAME_TEST_TOKEN", secret)
	p := program(t, "secrets.c", []string{"-g"}, "an-argument-of-it")
	random := make([]byte, 16)
	auxv := []byte(procFile(t, "%d/auxv", p.PID))
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	require.NoError(t, err)
	defer mem.Close()
	for ; len(auxv) > 0; auxv = auxv[16:] {
		if binary.LittleEndian.Uint64(auxv) == 25 { // AT_RANDOM
			_, err := mem.ReadAt(random, int64(binary.LittleEndian.Uint64(auxv[8:])))
			require.NoError(t, err)
		}
	}
	for writer, large := range map[string]string{"gcore": livetest.Gcore(t, p), "record": ownCore(t, p)} {
		for _, kept := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "core")
			out, err := openCore(t, large).WriteCore(t.Context(), path, RecordOptions{Memory: Minimal, Environment: kept})
			require.NoError(t, err)
			require.Equal(t, map[bool]CoreEnvironment{false: EnvironmentLeftOut, true: EnvironmentKept}[kept], out.Environment)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, kept, bytes.Contains(content, []byte(secret)), writer)
			require.Equal(t, kept, bytes.Contains(content, random), writer)
			require.True(t, bytes.Contains(content, []byte("\x00an-argument-of-it\x00")), writer)
		}
	}
}
