package livetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// PatchingCommand returns the command of testdata/programs/patching.c, which patches the sites of patching.ll. The program is compiled ahead of time
// ("aot"), or lli of a version runs it (how is a kind of [Lli]). patching.c documents the arguments.
func PatchingCommand(t testing.TB, version int, how string, args ...any) *exec.Cmd {
	t.Helper()
	words := strings.Fields(fmt.Sprintln(args...))
	return patcher(t, version, how, "patching.c", "patching.ll", []string{"-O2"}, words...)
}
