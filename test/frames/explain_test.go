package frames_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/demo"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// demoTarget starts the target of the demo and returns it with the files that describe its code.
func demoTarget(t *testing.T) (pid, module, layout string) {
	t.Helper()
	livetest.NeedsTools(t)
	p, err := demo.Start()
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return strconv.Itoa(p.PID), clitest.TempFile(t, "target.ll", string(demo.IR)), clitest.TempFile(t, "target.layout.json", string(demo.Layout))
}

// These parts differ between runs of the demo's target: addresses of its stack and of its JIT-compiled code, which is in one page, and the offset of
// a call there.
var (
	stackAddress = regexp.MustCompile(`0x7ff[0-9a-f]{9}\b`)
	jitAddress   = regexp.MustCompile(`0x4[0-9a-f]{4}([0-9a-f]{3})\b`)
	callBytes    = regexp.MustCompile(`e8( [0-9a-f]{2}){4}( +callq)`)
	temporary    = regexp.MustCompile(`/\S*/(target\.)`)
)

func still(screen string) string {
	screen = jitAddress.ReplaceAllString(stackAddress.ReplaceAllString(clitest.WithoutTimes(screen), "0x7ff…"), "0x4…$1")
	return temporary.ReplaceAllString(callBytes.ReplaceAllString(screen, "e8 …$2"), "$1")
}

// TestExplainScreen requires the expected complete screen for a target that runs on every machine. With GOLDEN=update in the environment it rewrites
// the expected screen.
func TestExplainScreen(t *testing.T) {
	t.Parallel()
	const path = "testdata/explain.txt"
	pid, module, layout := demoTarget(t)
	r := clitest.Run(t, "explain", "-p", pid, "--ir", module, "--layout", layout)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Empty(t, r.Stderr)
	if os.Getenv("GOLDEN") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(still(r.Stdout)), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), still(r.Stdout))
}

// TestReadmeShowsExplain requires that the screen in doc/user/verbs.md is a part of the real screen. A line of dots marks an omitted part.
func TestReadmeShowsExplain(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../doc/user/verbs.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(text), "```console\n$ reframe explain -p 41822 --ir target.ll --layout target.layout.json\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```\n")
	pid, module, layout := demoTarget(t)
	screen := still(clitest.Run(t, "explain", "-p", pid, "--ir", module, "--layout", layout).Stdout)
	for n, part := range strings.Split(block, "...\n") {
		_, after, shown := strings.Cut(screen, still(part))
		require.True(t, shown, "part %d:\n%s\nis not in\n%s", n, still(part), screen)
		screen = after
	}
}

func TestExplainStatus(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	r := clitest.Run(t, "explain", "-p", clitest.PID(p), "--ir", p.IR)
	require.Equal(t, 1, r.Code, "values in caller-saved registers are unavailable")
	require.Empty(t, r.Stderr)
	require.Regexp(t, `(?m)^  %v3      i64    unavailable: rax is caller-saved and frame #1 does not preserve it\n    8 bytes of rax$`, r.Stdout)
	require.Regexp(t, `(?m)^  not:\n  record 2002 at 0x[0-9a-f]+, work\+0x[0-9a-f]+, stackmap of jit_pp\.ll:\d+\n    the site itself is 11 bytes after the pc$`, r.Stdout)
	require.Regexp(t, `(?m)^  => 0x[0-9a-f]+ \+0x[0-9a-f]+ .*; frame #2 returns here$`, r.Stdout)

	for _, question := range [][]string{{"-f", "2"}, {"#2"}, {"2001"}, {"-t", clitest.PID(p), "2001", "-f", "2"}} {
		again := clitest.Run(t, append([]string{"explain", "-p", clitest.PID(p), "--ir", p.IR}, question...)...)
		require.Equal(t, 1, again.Code, question)
		require.Equal(t, clitest.WithoutTimes(r.Stdout), clitest.WithoutTimes(again.Stdout), question)
	}
	r = clitest.Run(t, "explain", "-p", clitest.PID(p), "2002")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^work\+0x[0-9a-f]+, where no frame is stopped$`, r.Stdout)
	for want, question := range map[string]string{
		"no record has the id 5 (2 known)": "5", "there is no frame 99": "#99", "no memory is mapped at 0x10": "0x10",
	} {
		clitest.Run(t, "explain", "-p", clitest.PID(p), question).FailsEmpty(t, 2, "nothing to explain: "+want)
	}
	clitest.RequireUnharmed(t, p)
}

// TestExplainColor requires that the output has colors only on a terminal or on request.
func TestExplainColor(t *testing.T) {
	t.Parallel()
	pid, module, layout := demoTarget(t)
	r := clitest.Run(t, "explain", "-p", pid, "--ir", module, "--layout", layout, "--color", "always")
	require.Contains(t, r.Stdout, clitest.Escape)
	want, err := os.ReadFile("testdata/explain.txt")
	require.NoError(t, err)
	plain := regexp.MustCompile(clitest.Escape+`\[\d*m`).ReplaceAllString(r.Stdout, "")
	require.Equal(t, string(want), still(plain))
}

// TestExplainSchema requires that the JSON of explain matches its schema for every kind of question.
func TestExplainSchema(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	chain := livetest.Lli(t, 19, "chain.ll", "orc")
	exit := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	silent := livetest.Host(t, 14, "orc", "block")
	vm := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	plain := livetest.C(t, "nojit.c", nil)
	frames := clitest.Run(t, "frames", "-p", clitest.PID(plain), "--json")
	for _, args := range [][]string{
		{"-p", clitest.PID(p)},
		{"-p", clitest.PID(p), "--ir", p.IR},
		{"-p", clitest.PID(p), "-f", "0"},
		{"-p", clitest.PID(p), "2002"},
		{"-p", clitest.PID(chain), "2"},
		{"-p", clitest.PID(chain), "--ir", chain.IR, "2", "-f", "3"},
		{"-p", clitest.PID(exit), "--ir", exit.IR, "--layout", clitest.DeoptimizeLayout(t)},
		{"-p", clitest.PID(vm), "--ir", vm.IR, "--layout", "simple"},
		{"-p", clitest.PID(vm), "--ir", vm.IR, "--layout", "ark"}, // this layout cannot read the record
		{"-p", clitest.PID(silent)},
		{"-p", clitest.PID(plain), "-f", "1"},
		{"-p", clitest.PID(plain), fmt.Sprint(clitest.FrameOf(t, frames.Object(t), "main")["pc"])},
	} {
		r := clitest.Run(t, append([]string{"explain", "--json"}, args...)...)
		require.Contains(t, []int{0, 1}, r.Code, "%v\n%s", args, r.Stderr)
		clitest.RequireValid(t, "explain.schema.json", r.Stdout)
	}
}

// TestExplainVM requires that the explanation of a value in a virtual machine's frame names the value of the record, and the bytes that store it.
func TestExplainVM(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	r := clitest.Run(t, "explain", "-p", clitest.PID(p), "--ir", p.IR, "--layout", "simple")
	require.Equal(t, 0, r.Code, r.Stderr)
	for _, text := range []string{
		"the frames of the virtual machine in it, by the layout simple\n  frame 0: Foo.bar @ 17, reexecute\n  frame 1: Foo.main @ 9, in call\n  object 4: Point, which was not allocated\n",
		"  local[0]             f64    3.5\n    value 11 above, %boxed: 0x400d000000000000 is 3.5\n",
		"  local[1]                    object 4, by a constant of the record\n",
		"  caller[1].local[1]          dead, by a constant of the record\n",
		"  object[4].8          i32    41\n    value 28 above, %small: 0xffff000000000029 is 41\n",
		"    00 00 00 00 00 00 0d 40   i64: all of it\n", // the value of %boxed, in memory
	} {
		require.Contains(t, r.Stdout, text)
	}
	r = clitest.Run(t, "explain", "-p", clitest.PID(p), "--ir", p.IR, "--layout", "ark")
	require.Contains(t, r.Stdout, "the frames of the virtual machine in it, by the layout ark\n  none: ark:")
}
