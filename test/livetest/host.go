package livetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Host runs host_mod.ll in jit_host.c, a program of the LLVM C API, built against an LLVM release (14 or 19). The modes are
//
//	mcjit   MCJIT
//	orc     LLJIT with its defaults: JIT objects are not registered
//	orcrt   LLJIT on RuntimeDyld, not registered
//	orcgdb  LLJIT on RuntimeDyld, with the GDB registration listener
//	orcperf LLJIT on RuntimeDyld, not registered, with the listener that writes a jitdump for perf
//	orcdbg  LLJIT on JITLink, with LLVMOrcLLJITEnableDebugSupport (19 only)
//
// how selects what the function that the JIT code calls does: block (in pause), trap (raise SIGTRAP), abort or loop (spin). With block, Host returns
// when the program waits in pause. Otherwise it returns when the program has printed "ready"; the program may have ended by then.
func Host(t testing.TB, version int, mode, how string) *Process {
	t.Helper()
	require.Contains(t, []string{"mcjit", "orc", "orcrt", "orcgdb", "orcperf", "orcdbg"}, mode)
	require.Contains(t, []string{"block", "trap", "abort", "loop"}, how)
	require.False(t, mode == "orcdbg" && version < 19, "LLVM %d has no LLVMOrcLLJITEnableDebugSupport", version)
	ir := Testdata(t, "programs", "host_mod.ll")
	rest := onItsWay
	if how == "block" {
		rest = inPause
	}
	p := start(t, exec.Command(hostBinary(t, version), mode, ir, how), rest)
	p.IR = ir
	return p
}

func hostBinary(t testing.TB, version int) string {
	t.Helper()
	config := exec.Command(LLVM(t, version, "llvm-config"),
		"--cflags", "--ldflags", "--libs", "core", "orcjit", "mcjit", "native", "irreader")
	flags, err := config.Output()
	require.NoError(t, err, "%s", config)
	opaque := 0
	if version == 14 {
		opaque = 1 // required in 14; the flag does not exist since 17
	}
	source := Testdata(t, "programs", "jit_host.c")
	return build(t, recipe{
		output: fmt.Sprintf("jit_host-llvm%d", version),
		tool:   Tool(t, "gcc"),
		args:   append([]string{fmt.Sprintf("-DLLVM_OPAQUE=%d", opaque), source}, strings.Fields(string(flags))...),
		inputs: []string{source},
	})
}
