package livetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// PatchingCommand is testdata/programs/patching.c, with arguments of which it says what they mean, compiled ahead of time ("aot") or under lli
// of LLVM 19 (one of the kinds of [Lli]). It patches the sites of patching.ll.
func PatchingCommand(t testing.TB, how string, args ...any) *exec.Cmd {
	t.Helper()
	words := strings.Fields(fmt.Sprintln(args...))
	source, flags := Testdata(t, "programs", "patching.c"), []string{"-O1", "-Wall", "-Wextra", "-Werror", "-pthread"}
	if kind, jit := lliKinds[how]; jit {
		host := Compiled(t, "gcc", source, append(flags, "-fPIC", "-shared")...)
		return exec.Command(LLVM(t, 19, "lli"), append(append(append([]string{}, kind...), "-load="+host, IR(t, 19, "patching.ll")), words...)...)
	}
	object := PICObject(t, 19, "patching.ll", "-O2")
	return exec.Command(Link(t, "patching", []string{"-pthread", "-Wl,-z,notext"}, object, Compiled(t, "gcc", source, append(flags, "-c")...)), words...)
}
