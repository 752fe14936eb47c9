package livetest

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// patcher returns the command of a program that patches the code of a module while it runs. The program is a C source of testdata/programs. With how
// "aot" it is linked with the module ahead of time, in a position-independent executable, and llc holds flags for llc. Otherwise lli loads it with
// the module; how is a kind of [Lli].
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
