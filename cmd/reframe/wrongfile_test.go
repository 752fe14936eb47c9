package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestWrongKindOfFile requires that the error for a file of the wrong type names the type, and the verb or flag that reads such files.
func TestWrongKindOfFile(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_sp.ll", "orc")
	object := livetest.Object(t, 19, "jit_sp.ll")
	core := clitest.RecordedCore(t, "-p", clitest.PID(p))
	bitcode := clitest.TempFile(t, "module.bc", clitest.RunTool(t, "llvm-as-19", p.IR, "-o", "-"))
	self, err := os.Executable()
	require.NoError(t, err)
	const maps, ir, look = "reframe maps FILE reads its stack maps, and --check checks them", "--ir FILE passes it, and reframe lint FILE checks its sites", "reframe frames FILE reads it"
	const write = "; llvm-dis and clang -S -emit-llvm write IR"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lint", object}, object + ": expected IR, got an ELF object; " + maps + write},
		{[]string{"lint", core}, core + ": expected IR, got a core; " + look + write},
		{[]string{"lint", self}, self + ": expected IR, got an ELF program or library; " + maps + write},
		{[]string{"lint", clitest.DeoptimizeLayout(t)}, clitest.DeoptimizeLayout(t) + ": expected IR, got JSON; --layout FILE passes a layout" + write},
		{[]string{"run", object}, "expected IR, got an ELF object; " + maps},
		{[]string{"frames", clitest.PID(p), "--ir", object}, "expected IR, got an ELF object; " + maps},
		{[]string{"verify", clitest.PID(p), "--ir", core}, "expected IR, got a core; " + look},
		{[]string{"frames", p.IR}, "not an ELF core: IR: " + ir},
		{[]string{"frames", bitcode}, "not an ELF core: LLVM bitcode: " + ir},
		{[]string{"frames", clitest.DeoptimizeLayout(t)}, "not an ELF core: JSON: --layout FILE passes a layout"},
		{[]string{"resume", object}, "not an ELF core: an unlinked object: reframe maps FILE reads the stack maps of a file"},
		{[]string{"maps", p.IR}, "not an object file: it is IR; " + ir},
		{[]string{"maps", bitcode}, "not an object file: it is LLVM bitcode; " + ir},
		{[]string{"maps", clitest.DeoptimizeLayout(t)}, "not an object file: it is JSON; --layout FILE passes a layout"},
	} {
		clitest.Run(t, c.args...).FailsEmpty(t, 2, c.want)
	}
	// The verb frames reports the error and continues without the layout.
	for file, want := range map[string]string{p.IR: "expected a layout, got IR; " + ir, object: "expected a layout, got an ELF object; " + maps} {
		r := clitest.Run(t, "frames", clitest.PID(p), "--layout", file)
		require.Equal(t, 1, r.Code, r.Stderr)
		require.True(t, strings.HasPrefix(r.Stderr, "reframe: "+file+": "+want), r.Stderr)
		require.Contains(t, r.Stdout, "record 2882400000")
	}
	for file, want := range map[string]string{object: "expected a script, got an ELF object; " + maps, p.IR: "expected a script, got IR; " + ir, core: "expected a script, got a core; --cores reads cores", bitcode: "expected a script, got LLVM bitcode; " + ir} {
		r := clitest.Run(t, "replay", file)
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stdout, "  "+want+"\n")
	}
}
