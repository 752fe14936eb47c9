package livetest

import (
	"fmt"
	"testing"
)

// Tables starts testdata/programs/vmtables.c with a seed: a program that describes the exits of vmtables.ll in its memory, and logs what it describes.
// how is aot, or a kind of [Lli].
func Tables(t testing.TB, version int, how string, seed int) *Process {
	t.Helper()
	p := start(t, patcher(t, version, how, "vmtables.c", "vmtables.ll", nil, fmt.Sprint(seed)), inPause)
	p.IR = IR(t, version, "vmtables.ll")
	return p
}
