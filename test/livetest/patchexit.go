package livetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// PatchExitCommand returns the command of testdata/programs/patchexit.c with arguments. The program overwrites a site of patchexit.ll or of another
// module with the same names. how is aot (ahead of time, in a position-independent executable), or a kind of [Lli].
func PatchExitCommand(t testing.TB, version int, how, module string, args ...string) *exec.Cmd {
	t.Helper()
	return patcher(t, version, how, "patchexit.c", module, nil, args...)
}

// PatchExit starts the program and returns when it waits in pause.
func PatchExit(t testing.TB, version int, how, module string, args ...string) *Process {
	t.Helper()
	p := start(t, PatchExitCommand(t, version, how, module, args...), inPause)
	p.IR = IR(t, version, module)
	return p
}

// AwaitPauseAgain waits until the program has printed "ready" the given number of times and waits in pause.
func (p *Process) AwaitPauseAgain(t testing.TB, times int) {
	t.Helper()
	p.await(t, "it prints ready again", func() bool { return strings.Count(p.Output(), "ready\n") >= times })
	p.AwaitPause(t)
}

// EveryPatchExit runs a test for each release and for each way to run the program. With FIDELITY=all it runs each combination.
func EveryPatchExit(t *testing.T, check func(t *testing.T, version int, how string)) {
	t.Helper()
	for v, version := range []int{14, 19, 22} {
		for h, how := range []string{"aot", "mcjit", "orc"} {
			if !Whole() && (v+h)%3 != 0 {
				continue // the selected cases cover each release and each way
			}
			t.Run(fmt.Sprintf("%s %d", how, version), func(t *testing.T) { check(t, version, how) })
		}
	}
}
