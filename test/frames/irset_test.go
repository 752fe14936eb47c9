package frames_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestIRInAFolder requires that, in a folder with all modules that a JIT has dumped, reframe uses the module whose functions and records are those of
// the process.
func TestIRInAFolder(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	dir := t.TempDir()
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for n := range 300 {
		put(fmt.Sprintf("dump%03d.ll", n), strings.NewReplacer("@sum", fmt.Sprintf("@other%d", n), "@main", fmt.Sprintf("@begin%d", n)).Replace(string(source)))
	}
	earlier := strings.Replace(string(source), `[ "deopt"(i32 3, `, `[ "deopt"(i32 4, `, 1)
	require.NotEqual(t, string(source), earlier)
	put("earlier.ll", earlier) // the record has another constant
	put("half.ll", string(source)[:len(source)/2])
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-as"), "-o", filepath.Join(dir, "the.bc"), livetest.Testdata(t, "programs", "deoptimize.ll")).CombinedOutput()
	require.NoError(t, err, string(out))

	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", dir)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `%acc +i64 +5525 `, r.Stdout)
	require.Contains(t, r.Stderr, "half.ll:")
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", filepath.Join(dir, "t*.bc"))
	require.Regexp(t, `%acc +i64 +5525 `, r.Stdout, r.Stderr)

	// If two versions match, reframe must not guess: it shows what both share, and names both files.
	put("the2.ll", strings.Replace(string(source), "mul i64 %i, %i", "mul i64 %i, 3", 1))
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", dir)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `%acc +i64 +5525 `, r.Stdout)
	require.Contains(t, strings.Join(strings.Fields(r.Stdout), " "), "2 sites of "+filepath.Join(dir, "the.bc")+", "+filepath.Join(dir, "the2.ll")+" match this record, and they agree on 3 names and 4 types of 4 values")

	// A module that is only an earlier version gives no names, but the frames are still shown.
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", filepath.Join(dir, "earl*.ll"))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "loc2")
	require.Contains(t, r.Stdout, "earlier.ll is not what was compiled")
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", filepath.Join(dir, "earlier.ll"))
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "loc2")
	require.Contains(t, r.Stderr, "earlier.ll is not what was compiled")
}

// TestIRInTheProcess requires that a module is used that a JIT compiler has stored in its object, as clang -fembed-bitcode does.
func TestIRInTheProcess(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	program := livetest.Testdata(t, "programs", "deoptimize.ll")
	bitcode, err := exec.Command(livetest.LLVM(t, 19, "llvm-as"), "-o", "-", program).Output()
	require.NoError(t, err)
	source, err := os.ReadFile(program)
	require.NoError(t, err)
	embed := func(code []byte) string {
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n@llvm.embedded.module = private constant [%d x i8] c\"", source, len(code))
		for _, c := range code {
			fmt.Fprintf(&b, "\\%02x", c)
		}
		b.WriteString("\", section \".llvmbc\", align 1\n@llvm.compiler.used = appending global [1 x ptr] [ptr @llvm.embedded.module], section \"llvm.metadata\"\n")
		return clitest.TempFile(t, "embedded.ll", b.String())
	}
	p := livetest.Lli(t, 19, embed(bitcode), "mcjit")
	for _, verb := range []string{"frames", "explain"} {
		r := clitest.Run(t, verb, "-p", clitest.PID(p), "--ir", "process", "--layout", clitest.DeoptimizeLayout(t))
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Regexp(t, `%acc +i64 +5525 `, r.Stdout, verb)
	}
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", "process", "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "332833500")

	hostile := livetest.Lli(t, 19, embed([]byte("BC\xc0\xde\x35\x14\x00\x00\x05\x00\x00\x00garbage")), "mcjit")
	clitest.Run(t, "frames", "-p", clitest.PID(hostile), "--ir", "process").FailsEmpty(t, 2, "JIT object 1, .llvmbc: at byte 0 the bitcode is incomplete")
	none := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	clitest.Run(t, "frames", "-p", clitest.PID(none), "--ir", "process").FailsEmpty(t, 2, "has a section .llvmbc")
	clitest.Run(t, "trace", "-p", clitest.PID(none), "--ir", "process").FailsEmpty(t, 64, "--ir process requires frames, resume or explain")
}
