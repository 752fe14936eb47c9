package livetest

import (
	"fmt"
	"testing"
)

// Tables starts testdata/programs/vmtables.c with a seed. The program writes descriptions of the exits of vmtables.ll into its memory, and logs them.
// how is aot (compiled ahead of time), or a kind of [Lli].
func Tables(t testing.TB, version int, how string, seed int) *Process {
	t.Helper()
	p := start(t, patcher(t, version, how, "vmtables.c", "vmtables.ll", nil, fmt.Sprint(seed)), inPause)
	p.IR = IR(t, version, "vmtables.ll")
	return p
}
