package verify_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// TestVerifyWith requires that a virtual machine which describes itself needs only the command of its interpreter. Every exit and every activation
// must be equal, and the program must print the same as without reframe.
func TestVerifyWith(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program, serve := clitest.TinyVM(t)
	plain := tinyvmtest.Run(t, binary, "--interpret", program)
	r := clitest.Run(t, "verify", "--with", serve, "--limit", "40", "--", binary, "--fuel", tinyvmtest.Fuel, "--entries", program)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, plain.Output, r.Stdout)
	require.Contains(t, r.Stderr, "40 exits verified in ")
	require.Contains(t, r.Stderr, "40 same, 0 different, 0 not comparable")
}

// TestVerifyWithFinds requires that a value which a compiler omits from its frames is reported as a difference, with the frames, the last
// instructions of both sides, and a command that finds it again.
func TestVerifyWithFinds(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program, serve := clitest.TinyVM(t)
	command := []string{"--", binary, "--fuel", tinyvmtest.Fuel, "--entries", "--fault", "stale", program}
	pages := t.TempDir()
	r := clitest.Run(t, append([]string{"verify", "--with", serve, "--html", pages}, command...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	for _, name := range clitest.FilesIn(t, pages) {
		text, err := os.ReadFile(filepath.Join(pages, name))
		require.NoError(t, err)
		if name == "index.html" {
			continue
		}
		for _, says := range []string{"Frames of the virtual machine", `<svg class="graph"`, "result, i64 in rax", "Interpreter and native code", `id="stack"`} {
			require.Contains(t, string(text), says, name)
		}
	}
	require.Greater(t, len(clitest.FilesIn(t, pages)), 1)
	for _, says := range []string{"  different result, i64 in rax\n", "      vm ", "  interpreter, the last of ", "  native code, the last of ", "  reproduce: reframe verify ", " --with '" + serve + "' --record "} {
		require.Contains(t, r.Stderr, says)
	}
	require.NotContains(t, r.Stderr, "writes by native code alone")
	again := strings.Fields(strings.SplitN(strings.SplitN(r.Stderr, " --with '"+serve+"' ", 2)[1], "\n", 2)[0])
	r = clitest.Run(t, append([]string{"verify", "--with", serve}, again...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "1 exit verified in ")
}

// TestVerifyWithMalformedFrames requires that malformed frames are reported as a difference, that equal differences have only one core, and that the
// JSON matches its schema.
func TestVerifyWithMalformedFrames(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program, serve := clitest.TinyVM(t)
	dir, file := filepath.Join(t.TempDir(), "kept"), filepath.Join(t.TempDir(), "exits.json")
	r := clitest.Run(t, "verify", "--with", serve, "--limit", "2", "--keep", dir, "--json", "-o", file, "--", binary, "--entries", "--fault", "mode", program)
	require.Equal(t, 3, r.Code, r.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 3)
	for n, line := range lines {
		clitest.RequireValid(t, "verify.schema.json", line)
		var report struct {
			Status, Core string
			SameAs       int `json:"same_as"`
			Interpreter  struct{ Failed string }
			Different    int
		}
		if n == 2 { // the summary
			require.NoError(t, json.Unmarshal([]byte(line), &report))
			require.Equal(t, 2, report.Different)
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(line), &report))
		require.Equal(t, "different", report.Status)
		require.Equal(t, "its interpreter reports malformed frames: the operand stack of Math.step @ 1 has 0 values, and 1 are there", report.Interpreter.Failed)
		if n == 0 {
			require.FileExists(t, report.Core)
		} else { // the difference equals the first
			require.Empty(t, report.Core)
			require.Equal(t, 1, report.SameAs)
		}
	}
}

// TestVerifyWithWrong requires that contradictory flags are rejected, and that a broken interpreter ends the verification but not the program.
func TestVerifyWithWrong(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program, serve := clitest.TinyVM(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--with", " "}, 64, "the command of --with is empty"},
		{[]string{"--with", serve, "--entry", "f"}, 64, "--with cannot be combined with --entry or --baseline"},
		{[]string{"--with", serve, "--no-self-description"}, 64, "--with requires the layout of the virtual machine"},
		{[]string{"--no-self-description"}, 64, "verify requires the compiled module, which the interpreter runs: --ir FILE.ll"},
		{[]string{"--with", serve, "--layout", "ark"}, 2, "ark"},
		{[]string{"--with", "exec ./no-such-vm"}, 2, "exec ./no-such-vm: its answer to initialize (id 1): it has ended (exit status 127): sh has not found it"},
	} {
		r := clitest.Run(t, append(append([]string{"verify"}, c.args...), "--", binary, "--fuel", tinyvmtest.Fuel, program)...)
		require.Equal(t, c.code, r.Code, "%v\n%s", c.args, r.Stderr)
		require.Contains(t, r.Stderr, c.says, "%v", c.args)
		if c.code == 2 {
			require.Equal(t, tinyvmtest.Run(t, binary, "--interpret", program).Output, r.Stdout, "%v", c.args)
		}
	}
}

// TestVerifyWithInfo requires that a frame which contradicts the layout's info for its position is reported as a difference, also by trace. An error
// in info must have no effect.
func TestVerifyWithInfo(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	binary, program, serve := clitest.TinyVM(t)
	simple, err := os.ReadFile("../../internal/vm/vmlayout/layouts/simple.star")
	require.NoError(t, err)
	wrong := clitest.TempFile(t, "wrong.star", string(simple)+"\ndef info(method, position): return {\"stack\": 99}\n")
	failing := clitest.TempFile(t, "failing.star", string(simple)+"\ndef info(method, position): fail(\"no info\")\n")
	command := []string{"--record", "3", "--limit", "2", "--", binary, "--fuel", tinyvmtest.Fuel, program}
	r := clitest.Run(t, append([]string{"verify", "--with", serve, "--layout", wrong}, command...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Regexp(t, `  different: native code continues, and the record's frames are not those that info describes: \S+ @ \d+ has \d on the operand stack, but in info "stack" is 99\n`, r.Stderr)
	require.Contains(t, r.Stderr, " 2 different, 0 not comparable")
	r = clitest.Run(t, append([]string{"trace", "--layout", wrong}, command...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, ` on the operand stack, but in info "stack" is 99)`)
	r = clitest.Run(t, append([]string{"verify", "--with", serve, "--layout", failing}, command...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "2 same, 0 different, 0 not comparable")
}
