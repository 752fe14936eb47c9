package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// For a file of the wrong kind the error says what it is, and which verb or flag takes it.
func TestWrongKindOfFile(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_sp.ll", "orc")
	object := livetest.Object(t, 19, "jit_sp.ll")
	core := clitest.RecordedCore(t, "-p", clitest.PID(p))
	bitcode := clitest.TempFile(t, "module.bc", clitest.RunTool(t, "llvm-as-19", p.IR, "-o", "-"))
	self, err := os.Executable()
	require.NoError(t, err)
	const maps, ir, look = "reframe maps FILE reads its stack maps, and with --check holds them against the rules", "--ir FILE gives it, and reframe lint FILE looks at its sites", "reframe frames FILE looks at it"
	const write = "; llvm-dis and clang -S -emit-llvm write IR"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lint", object}, object + ": an ELF object, and no IR; " + maps + write},
		{[]string{"lint", core}, core + ": a core, and no IR; " + look + write},
		{[]string{"lint", self}, self + ": an ELF program or library, and no IR; " + maps + write},
		{[]string{"lint", clitest.DeoptimizeLayout(t)}, clitest.DeoptimizeLayout(t) + ": JSON, and no IR; --layout FILE gives a layout" + write},
		{[]string{"run", object}, "an ELF object, and no IR; " + maps},
		{[]string{"frames", clitest.PID(p), "--ir", object}, "an ELF object, and no IR; " + maps},
		{[]string{"verify", clitest.PID(p), "--ir", core}, "a core, and no IR; " + look},
		{[]string{"frames", p.IR}, "not an ELF core: IR: " + ir},
		{[]string{"frames", bitcode}, "not an ELF core: LLVM bitcode: " + ir},
		{[]string{"frames", clitest.DeoptimizeLayout(t)}, "not an ELF core: JSON: --layout FILE gives a layout"},
		{[]string{"resume", object}, "not an ELF core: an unlinked object: reframe maps FILE reads the stack maps of a file"},
		{[]string{"maps", p.IR}, "not an object file: it is IR; " + ir},
		{[]string{"maps", bitcode}, "not an object file: it is LLVM bitcode; " + ir},
		{[]string{"maps", clitest.DeoptimizeLayout(t)}, "not an object file: it is JSON; --layout FILE gives a layout"},
	} {
		clitest.Run(t, c.args...).FailsEmpty(t, 2, c.want)
	}
	for file, want := range map[string]string{p.IR: "IR, and no layout; " + ir, object: "an ELF object, and no layout; " + maps} { // frames continues without the layout
		r := clitest.Run(t, "frames", clitest.PID(p), "--layout", file)
		require.Equal(t, 1, r.Code, r.Stderr)
		require.True(t, strings.HasPrefix(r.Stderr, "reframe: "+file+": "+want), r.Stderr)
		require.Contains(t, r.Stdout, "record 2882400000")
	}
	for file, want := range map[string]string{object: "an ELF object, and no script; " + maps, p.IR: "IR, and no script; " + ir, core: "a core, and no script; --cores looks at cores", bitcode: "LLVM bitcode, and no script; " + ir} {
		r := clitest.Run(t, "replay", file)
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stdout, "  "+want+"\n")
	}
}
