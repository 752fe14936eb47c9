package resume_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestResumeWithHandsFramesOver requires that the request to the interpreter contains the decoded frames of vmsimple.ll.
func TestResumeWithHandsFramesOver(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	command, handed := clitest.AnsweringInterpreter(t, clitest.Returned42)
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", "simple", "--steps", "500", "--with", command)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "\nFoo.main returned i64 42, says sh after 3 instructions; 0 writes and 0 new bytes discarded\n")
	text, err := os.ReadFile(handed)
	require.NoError(t, err)
	heap := "0x" + strings.SplitN(strings.SplitN(string(text), `"type":"ref","value":"0x`, 2)[1], `"`, 2)[0]
	// The record refers to names by the addresses of their text.
	memory, err := os.Open("/proc/" + clitest.PID(p) + "/mem")
	require.NoError(t, err)
	defer memory.Close()
	bits := regexp.MustCompile(`"(?:method|class)":"([^"]+)","(?:method|class)_bits":"0x([0-9a-f]+)",`)
	named := bits.FindAllSubmatch(text, -1)
	require.Len(t, named, 3)
	for _, n := range named {
		at, err := strconv.ParseInt(string(n[2]), 16, 64)
		require.NoError(t, err)
		there := make([]byte, len(n[1])+1)
		_, err = memory.ReadAt(there, at)
		require.NoError(t, err)
		require.Equal(t, string(n[1])+"\x00", string(there))
	}
	text = regexp.MustCompile(`"(?:method|class)_bits":"[^"]+",`).ReplaceAll(text, nil)
	require.JSONEq(t, strings.ReplaceAll(`{"jsonrpc":"2.0","id":2,"method":"resume","params":{"frames":[
		{"method":"Foo.bar","position":17,"resume":"reexecute",
		 "locals":[{"index":0,"type":"f64","value":"3.5","bits":"0x400c000000000000"},{"index":1,"object":4},{"index":2,"type":"double","value":"3.5","bits":"0x400c000000000000"}],
		 "stack":[{"index":0,"type":"ref","value":"HEAP","bits":"HEAP"},{"index":1,"type":"i32","value":"41","bits":"0x29"}],
		 "monitors":[{"owner":{"object":4},"eliminated":true}],
		 "extra":{"fuel":{"type":"i64","value":"700","bits":"0x2bc"}}},
		{"method":"Foo.main","position":9,"resume":"in-call","locals":[{"index":0,"type":"i32","value":"41","bits":"0x29"},{"index":1,"dead":true}],"stack":[]}],
		"objects":[{"id":4,"class":"Point","fields":[{"at":8,"type":"i32","value":"41","bits":"0x29"},{"at":16,"object":4}]}],
		"steps":500,"tail":20}}`, "HEAP", heap), string(text))
}

// TestResumeWithSaysWhatCameOfIt requires that the interpreter's result is reported, as text and as JSON, for a process and for its core.
func TestResumeWithSaysWhatCameOfIt(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	core := livetest.Gcore(t, p)
	for _, c := range []struct {
		name, result string
		asks         []string
		code         int
		says, json   string
	}{
		{"returned", clitest.Returned42, []string{`{"jsonrpc":"2.0","method":"output","params":{"text":"7\\n8\\n"}}`, `{"jsonrpc":"2.0","id":1,"method":"memory.allocate","params":{"size":8}}`}, 0,
			"it would have printed:\n  | 7\n  | 8\nFoo.main returned i64 42, says sh after 3 instructions; 0 writes and 8 new bytes discarded", `"bits":"0xffff00000000002a","requests":2,"allocated":8`},
		{"nothing", `{"returned":null}`, nil, 0, "Foo.main returned nothing, says sh after 0 instructions", `"method":"Foo.main","position":9`},
		{"threw", `{"threw":{"text":"NullPointerException"}}`, nil, 0, "Foo.main ended with an exception: NullPointerException, says sh", `"threw":"NullPointerException"`},
		{"unsupported", `{"unsupported":"no bytecode 0xba at Foo.bar @ 17"}`, nil, 2, "reframe: sh cannot continue: no bytecode 0xba at Foo.bar @ 17", `"unsupported":"no bytecode 0xba at Foo.bar @ 17"`},
		{"malformed", `{"malformed":"Foo.bar @ 17 has no operand stack"}`, nil, 2, "reframe: sh reports malformed frames: Foo.bar @ 17 has no operand stack", `"malformed":"Foo.bar @ 17 has no operand stack"`},
		{"text that is no text", `{"threw":{"text":"\u001b[2J"}}`, nil, 0, "ended with an exception: \uFFFD[2J, says", `"threw":"\u001b[2J"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command, _ := clitest.AnsweringInterpreter(t, c.result, c.asks...)
			args := []string{"resume", "--core", core, "--ir", p.IR, "--layout", "simple", "--with", command}
			r := clitest.Run(t, args...)
			require.Equal(t, c.code, r.Code, r.Stderr)
			require.Contains(t, r.Stdout+r.Stderr, c.says)
			r = clitest.Run(t, append(args, "--json")...)
			require.Equal(t, c.code, r.Code, r.Stderr)
			require.Contains(t, strings.NewReplacer("\n", "", `": `, `":`, "      ", "", "    ", "").Replace(r.Stdout), c.json)
			clitest.RequireValid(t, "resume.schema.json", r.Stdout)
		})
	}
}

// TestResumeWithBrokenInterpreter requires that a broken interpreter gives a one-line error and status 2, and that the process continues as before.
func TestResumeWithBrokenInterpreter(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	for _, c := range []struct{ name, command, says string }{
		{"there is none", "exec ./no-such-vm", "exec ./no-such-vm: its answer to initialize (id 1): it has ended (exit status 127): sh has not found it"},
		// The interpreter may print the line before or after the first request is sent.
		{"garbage", "echo hello; read l", `echo hello; read l: "hello": `},
		{"dies", `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocol":"reframe.vm/1"}}'; read l; exit 9`, "its answer to resume (id 2): it has ended (exit status 9)"},
	} {
		r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", "simple", "--with", c.command)
		require.Equal(t, 2, r.Code, c.name)
		require.Empty(t, r.Stdout, c.name)
		require.Contains(t, r.Stderr, c.says)
		require.Equal(t, 1, strings.Count(r.Stderr, "reframe: "), r.Stderr) // sh also prints a message about a missing file
		require.True(t, p.Alive(), c.name)
	}
}

// TestResumeWithRefuses requires that frames which cannot be passed are reported before a command is started.
func TestResumeWithRefuses(t *testing.T) {
	t.Parallel()
	p, call := livetest.Lli(t, 19, "vmsimple.ll", "orc"), clitest.StartCalling(t)
	started := filepath.Join(t.TempDir(), "started")
	command := "touch " + started
	star := livetest.Testdata(t, "programs", "vmframes.star")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-p", clitest.PID(p), "--ir", p.IR}, 2, "no layout has VM frames for record 2882400"},
		{[]string{"-p", clitest.PID(p), "--ir", p.IR, "--layout", star}, 2, "vmframes.star:"},
		{[]string{"-p", clitest.PID(p), "--layout", "simple", "-f", "0"}, 2, "no frame to resume"},
		{[]string{"-p", clitest.PID(p), "--layout", "simple", "--result", "7"}, 2, "--result cannot be used: its innermost VM frame has no pending call"},
		{[]string{"-p", clitest.PID(call), "--layout", star}, 2, "its innermost VM frame, Point.norm, waits for a call that is still running; use --result for its result"},
		{[]string{"-p", clitest.PID(call), "--layout", star, "--result", "seven"}, 64, `--result: expected an integer, pointer or float, got "seven"`},
		{[]string{"--core", "x", "--layout", "simple", "--commit"}, 64, "--commit requires a process that runs: -p PID"},
		{[]string{"-p", clitest.PID(p), "--layout", "simple", "--commit", "--force"}, 64, "--force cannot be combined with --commit"},
		{[]string{"-p", clitest.PID(p), "--layout", "simple", "--dry-run"}, 64, "--dry-run requires --commit"},
		{[]string{"-p", clitest.PID(p), "--layout", "simple", "--call", "f=1"}, 64, "--with and --call cannot be combined"},
	} {
		r := clitest.Run(t, append([]string{"resume", "--with", command}, c.args...)...)
		require.Equal(t, c.code, r.Code, "%v\n%s", c.args, r.Stderr)
		require.Contains(t, r.Stderr, c.says, "%v", c.args)
	}
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--layout", "simple", "--with", " ")
	require.Contains(t, r.Stderr, "the command of --with is empty")
	require.NoFileExists(t, started)
}

// TestResumeWithResult requires that --result is passed in the form in which compiled code returns the value in a register.
func TestResumeWithResult(t *testing.T) {
	t.Parallel()
	p := clitest.StartCalling(t)
	for text, want := range map[string]string{"-1": `"returned":{"type":"i64","bits":"0xffffffffffffffff","text":"-1"}`, "0x10": `"returned":{"type":"i64","bits":"0x10","text":"0x10"}`,
		"null": `"returned":{"type":"ref","bits":"0x0","text":"null"}`, "2.5": `"returned":{"type":"f64","bits":"0x4004000000000000","text":"2.5"}`} {
		command, handed := clitest.AnsweringInterpreter(t, clitest.Returned42)
		r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--layout", livetest.Testdata(t, "programs", "vmframes.star"), "--result", text, "--with", command)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, " "+text+", as --result says\n")
		got, err := os.ReadFile(handed)
		require.NoError(t, err)
		require.Contains(t, string(got), want)
	}
}
