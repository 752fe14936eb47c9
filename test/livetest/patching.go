package livetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// PatchingCommand returns the command of testdata/programs/patching.c, which documents its arguments, compiled ahead of time ("aot") or under lli of
// a version (one of the kinds of [Lli]). It patches the sites of patching.ll.
func PatchingCommand(t testing.TB, version int, how string, args ...any) *exec.Cmd {
	t.Helper()
	words := strings.Fields(fmt.Sprintln(args...))
	return patcher(t, version, how, "patching.c", "patching.ll", []string{"-O2"}, words...)
}
