package livetest

import (
	"os/exec"
	"strings"
	"testing"
)

// PatchExitCommand is testdata/programs/patchexit.c with arguments, which overwrites a site of patchexit.ll or of another module
// with the same names. How it runs is aot, ahead of time in an executable that can lie anywhere, or one of the kinds of [Lli].
func PatchExitCommand(t testing.TB, version int, how, module string, args ...string) *exec.Cmd {
	t.Helper()
	source := Testdata(t, "programs", "patchexit.c")
	flags := []string{"-O1", "-Wall", "-Wextra", "-Werror"}
	kind, jit := lliKinds[how]
	if !jit {
		host := Compiled(t, "gcc", source, append(flags, "-c")...)
		return exec.Command(Link(t, "patchexit", []string{"-Wl,-z,notext"}, PICObject(t, version, module), host), args...)
	}
	host := Compiled(t, "gcc", source, append(flags, "-fPIC", "-shared")...)
	line := append(append([]string{}, kind...), "-load="+host)
	if version == 14 {
		line = append(line, "-opaque-pointers")
	}
	cmd := exec.Command(LLVM(t, version, "lli"), append(append(line, IR(t, version, module)), args...)...)
	cmd.Env = append(cmd.Environ(), "JITDUMPDIR="+t.TempDir()) // MCJIT's perf listener leaves a file behind
	return cmd
}

// PatchExit starts the program and returns once it waits in pause.
func PatchExit(t testing.TB, version int, how, module string, args ...string) *Process {
	t.Helper()
	p := start(t, PatchExitCommand(t, version, how, module, args...), inPause)
	p.IR = IR(t, version, module)
	return p
}

// AwaitPauseAgain waits until the program has printed "ready" so many times, and waits in pause.
func (p *Process) AwaitPauseAgain(t testing.TB, times int) {
	t.Helper()
	p.await(t, "it prints ready again", func() bool { return strings.Count(p.Output(), "ready\n") >= times })
	p.AwaitPause(t)
}
