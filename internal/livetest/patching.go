package livetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// PatchingCommand is testdata/programs/patching.c, with arguments of which it says what they mean, compiled ahead of time ("aot") or under lli
// of a version (one of the kinds of [Lli]). It patches the sites of patching.ll.
func PatchingCommand(t testing.TB, version int, how string, args ...any) *exec.Cmd {
	t.Helper()
	words := strings.Fields(fmt.Sprintln(args...))
	return patcher(t, version, how, "patching.c", "patching.ll", []string{"-O2"}, words...)
}
