package trace_test

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
	"example.com/reframe/test/tinyvmtest"
)

// TestTraceOfSelfDescription requires that trace reads the IR and the layout that a JIT registers, at the time of the registration, so that frames of
// its virtual machine need no flag.
func TestTraceOfSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	program := livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	for _, llvm := range livetest.ShareOf(tinyvmtest.Versions, t.Name()) {
		command := []string{"--", tinyvmtest.Binary(t, llvm), "--fuel", tinyvmtest.Fuel, program}
		r := clitest.Run(t, append([]string{"trace", "--site", "deoptimize"}, command...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Equal(t, 1, strings.Count(r.Stderr, "reframe: note: using the layout and IR found in the process (--no-self-description to ignore them)\n"))
		require.NotContains(t, r.Stderr, "no VM frames")
		require.Contains(t, r.Stderr, "  Point.sum @ 9, reexecute local[0]=object(0) ", "LLVM %d", llvm)
		// Without the description the kind of a record is unknown.
		r = clitest.Run(t, append([]string{"trace", "--no-self-description"}, command...)...)
		require.Contains(t, r.Stderr, "  Math.step#1+")
		require.NotContains(t, r.Stderr, "found in the process")
		require.NotContains(t, r.Stderr, "Point.sum @")
	}
}

// TestStopAtOfSelfDescription requires that a condition on values of the virtual machine's frames, or of the IR, also needs no flag. The exits of
// points.tvm are those of TestTraceOfSelfDescription: 1452826824 * 3 overflows, and from then on the number is tripled each time.
func TestStopAtOfSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	program := livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	for _, llvm := range livetest.ShareOf(tinyvmtest.Versions, t.Name()) {
		command := []string{"--", tinyvmtest.Binary(t, llvm), "--fuel", tinyvmtest.Fuel, program}
		for _, c := range livetest.ShareOf([][2]string{
			{"stack[1] > 2e10", " stack[1]         f64    3.92263245e+10 "},
			{"local[1] == 200 && stack[1] == 197", " local[1]         i32    200 "},
			{"%depth == 2 && stack[1] > 1e11", " stack[1]         f64    1.17678973522e+11 "},
		}, t.Name(), "condition") {
			condition, want := c[0], c[1]
			about := fmt.Sprintf("LLVM %d: %s", llvm, condition)
			r := clitest.Run(t, append([]string{"trace", "--stop-at", condition}, command...)...)
			require.Equal(t, 0, r.Code, about+r.Stderr)
			require.Contains(t, r.Stderr, "; stopped at "+condition+"\n", about)
			require.Contains(t, r.Stderr, want, about)
			core := filepath.Join(t.TempDir(), "core")
			r = clitest.Run(t, append([]string{"record", "-o", core, "--stop-at", condition}, command...)...)
			require.Equal(t, 0, r.Code, about+r.Stderr)
			r = clitest.Run(t, "frames", "--core", core)
			require.Contains(t, r.Stdout, want, about)
		}
	}
}

// TestVerifyAndStressOfSelfDescription requires that verify and stress use the IR that a program registers. From the entry of a method the IR
// computes the same as native code. At a guard that fails the method ends in the VM's own code, which has no IR.
func TestVerifyAndStressOfSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	program := livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	for _, llvm := range livetest.ShareOf(tinyvmtest.Versions, t.Name()) {
		command := []string{"--", tinyvmtest.Binary(t, llvm), "--fuel", tinyvmtest.Fuel, "--entries", program}
		r := clitest.Run(t, append([]string{"verify", "--record", "1", "--limit", "5"}, command...)...)
		require.Equal(t, 0, r.Code, "LLVM %d: %s", llvm, r.Stderr)
		require.Equal(t, 1, strings.Count(r.Stderr, "reframe: note: using the layout and IR found in the process (--no-self-description to ignore them)\n"))
		require.Regexp(t, `\n5 exits verified in .*: 5 same, 0 different, 0 not comparable; `, r.Stderr)
		r = clitest.Run(t, append([]string{"stress", "--probability", "1"}, command...)...)
		require.Equal(t, 0, r.Code, "LLVM %d: %s", llvm, r.Stderr)
		require.Equal(t, "reframe: note: using the layout and IR found in the process (--no-self-description to ignore them)\n", r.Stderr)
		require.Regexp(t, `^608 exits, 608 chosen with .*: 16 committed, 592 left to native code\n`, r.Stdout)
		require.Contains(t, r.Stdout, "\nnothing differs: exit status 3, ")
	}
}

// TestDifferenceOfSelfDescription requires that a wrong stack map is found with the IR in the object, by the first run and by each run of the
// bisection.
func TestDifferenceOfSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.WrongTick(t)
	described := filepath.Join(t.TempDir(), "described.o")
	out, err := exec.Command(livetest.Tool(t, "objcopy"), "--add-section", ".reframe.ir="+module, object, described).CombinedOutput()
	require.NoError(t, err, "%s", out)
	host := livetest.ObjectHostCommand(t, described, livetest.ObjectHostOptions{Rounds: 2})
	r := clitest.Run(t, append([]string{"stress", "--seed", "1", "--"}, host...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Equal(t, "reframe: note: using the IR found in the process (--no-self-description to ignore them)\n", r.Stderr)
	require.Regexp(t, `\nexit 2:168, hit 168 of record 1, thread obj_host causes the difference alone \(\d+ runs more\)\n`, r.Stdout)
	require.Equal(t, 3, clitest.RunSuggestion(t, r.Stdout).Code)
	_, verify, _ := strings.Cut(r.Stdout, "compare with native code: ")
	require.NotContains(t, verify, "--ir")
	r = clitest.RunInShell(t, strings.TrimSpace(verify))
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "1 exit verified in ")
	r = clitest.Run(t, append([]string{"verify", "--no-self-description", "--ir", module, "--limit", "1", "--"}, host...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	require.NotContains(t, r.Stderr, "found in the process")
}

// TestScriptsOfSelfDescription requires that conditions in scripts can use names that only the program describes.
func TestScriptsOfSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	program := livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	vm := tinyvmtest.Binary(t, 19) + " --fuel " + tinyvmtest.Fuel
	script := clitest.TempFile(t, "described.txtar", fmt.Sprintf(`launch -- %s %s
until 3 --stop-at 'stack[1] > 2e10 && %%depth == 2'
expect stack[1] = 3.92263245e+10
verify --record 1 --limit 3 -- %[1]s --entries %[2]s
`, vm, program))
	r := clitest.Run(t, "replay", script)
	require.Zero(t, r.Code, r.Stdout)
}

// TestTraceOfSelfDescriptionAfterExec requires that a program which executes itself again describes itself again, and that its unchanged layout is
// used for the new process.
func TestTraceOfSelfDescriptionAfterExec(t *testing.T) {
	t.Parallel()
	program := livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	again := livetest.CProgram(t, "gcc", []string{"-shared", "-fPIC"}, filepath.Join("testdata", "again.c"))
	file := filepath.Join(t.TempDir(), "exits")
	r := clitest.Run(t, "trace", "-o", file, "--", "env", "LD_PRELOAD="+again, tinyvmtest.Binary(t, 19), "--fuel", tinyvmtest.Fuel, program)
	require.Equal(t, 0, r.Code, r.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	values := func(lines []string) (all []string) {
		for _, line := range lines {
			_, values, named := strings.Cut(line, ", reexecute local[0]=")
			require.True(t, named, line)
			all = append(all, values)
		}
		return all
	}
	half := len(lines) / 2
	require.Positive(t, half)
	require.Equal(t, values(lines[:half]), values(lines[half:]))
}
