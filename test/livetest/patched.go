package livetest

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// patcher returns the command of a program that patches the code of a module while the code runs. source is a C file of testdata/programs. If how is
// "aot", the program is linked with the module ahead of time into a position-independent executable; llc holds flags for llc. Otherwise lli loads
// both, and how is a kind of [Lli].
func patcher(t testing.TB, version int, how, source, module string, llc []string, args ...string) *exec.Cmd {
	t.Helper()
	path, flags := Testdata(t, "programs", source), []string{"-O1", "-pthread", "-Wall", "-Wextra", "-Werror"}
	if _, jit := lliKinds[how]; jit {
		cmd := lliCommand(t, version, IR(t, version, module), how, "-load="+Compiled(t, "gcc", path, append(flags, "-fPIC", "-shared")...))
		cmd.Args = append(cmd.Args, args...)
		return cmd
	}
	require.Equal(t, "aot", how)
	host := Compiled(t, "gcc", path, append(flags, "-c")...)
	return exec.Command(Link(t, source[:len(source)-len(".c")], []string{"-pthread", "-Wl,-z,notext"}, PICObject(t, version, module, llc...), host), args...)
}
