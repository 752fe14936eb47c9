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
	source, flags := Testdata(t, "programs", "patching.c"), []string{"-O1", "-Wall", "-Wextra", "-Werror", "-pthread"}
	if kind, jit := lliKinds[how]; jit {
		host := Compiled(t, "gcc", source, append(flags, "-fPIC", "-shared")...)
		line := append([]string{"-load=" + host}, kind...)
		if version == 14 {
			line = append(line, "-opaque-pointers")
		}
		cmd := exec.Command(LLVM(t, version, "lli"), append(append(line, IR(t, version, "patching.ll")), words...)...)
		cmd.Env = append(cmd.Environ(), "JITDUMPDIR="+t.TempDir()) // MCJIT's perf listener leaves a file behind
		return cmd
	}
	object := PICObject(t, version, "patching.ll", "-O2")
	return exec.Command(Link(t, "patching", []string{"-pthread", "-Wl,-z,notext"}, object, Compiled(t, "gcc", source, append(flags, "-c")...)), words...)
}
