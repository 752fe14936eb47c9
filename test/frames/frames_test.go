package frames_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// The guard of deoptimize.ll fails at the first i at which the sum of the squares below
// i is 5000 or more: 0+1+4+…+24² is 4900, and with 25² it is 5525.
const exitI, exitAcc, exitN = "26", "5525", "1000"

// TestMainJob requires that frames shows the frame of a process at an OSR exit, and that resume runs this frame to its end.
func TestMainJob(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{16, 19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, kind), func(t *testing.T) {
				t.Parallel()
				p := livetest.Lli(t, version, "deoptimize.ll", kind)
				testFramesText(t, p)
				testFramesJSON(t, p)
				testResume(t, p)
				clitest.RequireUnharmed(t, p)
			})
		}
	}
}

func testFramesText(t *testing.T, p *livetest.Process) {
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR)
	require.Equal(t, 0, r.Code, r.Stderr)
	lines := strings.Split(r.Stdout, "\n")
	require.Regexp(t, fmt.Sprintf(`^pid %d  .*lli.* -jit-kind=.*   x86-64   paused \d+\.\d\d ms, running again$`, p.PID), lines[0])
	require.Regexp(t, fmt.Sprintf(`(?m)^thread %d "lli(-\d+)?"$`, p.PID), r.Stdout)
	require.Regexp(t, `(?m)^  #\d+ +jit +sum_opt\+0x[0-9a-f]+ +record 2882400000, deoptimize, in call$`, r.Stdout)
	for name, value := range map[string]string{"%i": exitI, "%acc": exitAcc, "%n": exitN} {
		require.Regexp(t, fmt.Sprintf(`(?m)^ +%s +i64 +%s +\[rsp\+\d+\]$`, name, value), r.Stdout)
	}
	require.Regexp(t, `(?m)^ +#0 +i32 +3 +constant$`, r.Stdout)

	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "in call   → sum, block %loop\n")
	// The suggested command must work.
	match := regexp.MustCompile(`^\ntry: reframe (resume .*)\n$`).FindStringSubmatch(r.Stderr)
	require.NotNil(t, match, "%q", r.Stderr)
	again := clitest.Run(t, strings.Fields(match[1])...)
	require.Equal(t, 0, again.Code, again.Stderr)
	require.Contains(t, again.Stdout, "sum returned i64 "+clitest.SumOfSquaresBelow1000+" after ")
}

func testFramesJSON(t *testing.T, p *livetest.Process) {
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t), "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Empty(t, r.Stderr)
	report := r.Object(t)
	require.Equal(t, "reframe.frames/v1", report["schema"])
	target := report["target"].(map[string]any)
	require.Equal(t, "process", target["kind"])
	require.Equal(t, json.Number(clitest.PID(p)), target["pid"])
	require.Equal(t, "amd64", target["arch"])
	pause, err := target["pause_us"].(json.Number).Int64()
	require.NoError(t, err)
	require.Positive(t, pause)

	thread := clitest.Objects(t, report["threads"])[0]
	require.Equal(t, json.Number(clitest.PID(p)), thread["tid"])
	require.Regexp(t, `^lli(-\d+)?$`, thread["name"])
	require.NotContains(t, thread, "end", "the stack was followed to its outermost frame")
	all := clitest.Frames(t, report)
	for n, f := range all {
		require.Equal(t, json.Number(fmt.Sprint(n)), f["index"])
		require.Contains(t, []any{"jit", "native"}, f["kind"])
		require.Regexp(t, `^0x[0-9a-f]+$`, f["pc"])
		require.NotEmpty(t, f["rule"])
	}
	require.Equal(t, "native", all[0]["kind"])
	require.Equal(t, "_start", all[len(all)-1]["function"])

	f := clitest.FrameOf(t, report, "sum_opt")
	require.Equal(t, "jit", f["kind"])
	record := f["record"].(map[string]any)
	require.Equal(t, f["offset"], record["offset"], "the record of a deoptimize is its return address")
	delete(record, "offset")
	require.Equal(t, map[string]any{"id": json.Number("2882400000"), "site": "deoptimize", "moment": "in-call"}, record)
	require.Equal(t, map[string]any{"function": "sum", "block": "loop"}, f["resume"])
	want := []struct{ name, value, hex string }{{"%i", exitI, "0x1a"}, {"%acc", exitAcc, "0x1595"}, {"%n", exitN, "0x3e8"}}
	slots := clitest.Objects(t, f["slots"])
	require.Len(t, slots, len(want))
	for n, s := range slots {
		require.Equal(t, json.Number(fmt.Sprint(n+1)), s["index"], "slot 0 is the constant 3, which the layout does not map")
		require.Equal(t, want[n].name, s["name"])
		require.Equal(t, "i64", s["type"])
		require.Equal(t, want[n].value, s["value"], "values of 64 bits are strings")
		require.Equal(t, want[n].hex, s["hex"])
		require.Equal(t, "ok", s["status"])
		location := s["location"].(map[string]any)
		require.Contains(t, location, "offset")
		delete(location, "offset")
		require.Equal(t, map[string]any{"kind": "Indirect", "register": "rsp", "dwarf": json.Number("7"), "size": json.Number("8")}, location)
	}
}

func testResume(t *testing.T, p *livetest.Process) {
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^sum returned i64 `+clitest.SumOfSquaresBelow1000+` after \d+ instructions; 0 writes discarded$`, r.Stdout)
	require.Regexp(t, fmt.Sprintf(`^pid %d was stopped for \d+\.\d\d ms and is running again\n$`, p.PID), r.Stderr)

	r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t), "--json", "--function", "sum_opt")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Empty(t, r.Stderr)
	out := r.Object(t)
	require.Equal(t, "reframe.resume/v1", out["schema"])
	require.Equal(t, "sum_opt", out["function"])
	require.Equal(t, map[string]any{"function": "sum", "block": "loop"}, out["resume"])
	require.Equal(t, map[string]any{"type": "i64", "value": clitest.SumOfSquaresBelow1000}, out["result"])
	require.Equal(t, "", out["output"])
	require.Equal(t, json.Number("0"), out["writes"])
	steps, err := out["steps"].(json.Number).Int64()
	require.NoError(t, err)
	// The loop runs from i = 26 to 999, and each iteration has 7 instructions, 2 of which are phis.
	require.Greater(t, steps, int64(974*5))
	require.LessOrEqual(t, steps, int64(974*7+1))
	for _, key := range []string{"tid", "frame", "pause_us"} {
		require.Contains(t, out, key)
	}
}

// TestResumeOutput requires that the interpreter's output and stores are shown but do not happen in the process.
func TestResumeOutput(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	text, err := os.ReadFile(p.IR)
	require.NoError(t, err)
	module := clitest.TempFile(t, "tell.ll", string(text)+`
@note = private constant [10 x i8] c"  a\09\1B[1mb\00"
define i64 @tell(i64 %n) {
entry:
  br label %say
say:
  %place = alloca i64
  store i64 %n, ptr %place
  %r = call i32 @puts(ptr @note)
  %back = load i64, ptr %place
  ret i64 %back
}
`)
	exits := clitest.TempFile(t, "tell.json", `{"schema":"reframe.layout/v1","exits":[{"function":"sum_opt",
  "resume":{"function":"tell","block":"say"},"slots":[{"operand":3,"name":"%n"}]}]}`)
	args := []string{"resume", "-p", clitest.PID(p), "--ir", module, "--layout", exits}
	r := clitest.Run(t, args...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "it would have printed:\n  |   a\t\ufffd[1mb\ntell returned i64 1000 after 5 instructions; 0 writes discarded\n")
	r = clitest.Run(t, append(args, "--json")...)
	require.Equal(t, 0, r.Code, r.Stderr)
	out := r.Object(t)
	require.Equal(t, "  a\t\x1b[1mb\n", out["output"])
	require.Equal(t, json.Number("0"), out["writes"], "an alloca is the interpreter's own")
	require.Equal(t, json.Number("5"), out["steps"])
	require.Equal(t, map[string]any{"type": "i64", "value": "1000"}, out["result"])
	clitest.RequireUnharmed(t, p)
	require.Equal(t, "ready\n", p.Output())
}

// TestFramesWithoutIR requires that without a module, slots have hexadecimal bits but no names, types or values.
func TestFramesWithoutIR(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	f := clitest.FrameOf(t, r.Object(t), "sum_opt")
	for _, s := range clitest.Objects(t, f["slots"]) {
		require.Regexp(t, `^loc\d+$`, s["name"])
		require.NotContains(t, s, "value")
		require.NotContains(t, s, "type")
		require.Regexp(t, `^0x[0-9a-f]+$`, s["hex"])
	}
	require.NotContains(t, f, "resume")
	clitest.RequireUnharmed(t, p)
}

// TestFramesChoice requires that -t, -f and --function select the shown frames, possibly none.
func TestFramesChoice(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	for _, choice := range [][]string{{"-f", "2"}, {"--function", "sum_opt"}, {"-t", clitest.PID(p), "--function", "sum_opt", "-f", "2"}} {
		r := clitest.Run(t, append([]string{"frames", "-p", clitest.PID(p), "--ir", p.IR, "--json"}, choice...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		all := clitest.Frames(t, r.Object(t))
		require.Len(t, all, 1)
		require.Equal(t, "sum_opt", all[0]["function"])
	}
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "-t", "1")
	r.FailsEmpty(t, 2, "no thread 1")
	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "-f", "0")
	r.Notes(t, 0, "no selected frame is at a recorded site; 1 of all frames are")
	clitest.Run(t, "frames", "-p", clitest.PID(p), "-f", "77").Fails(t, 2, "there is no frame 77; thread ")
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--function", "sum_op").Fails(t, 2, "no frame of sum_op found; ")
	clitest.RequireUnharmed(t, p)
}

// TestPartial requires that values in registers that the callee may have overwritten are reported as unavailable.
func TestPartial(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--json")
	require.Equal(t, 1, r.Code)
	require.Empty(t, r.Stderr)
	missing := 0
	for _, s := range clitest.Objects(t, clitest.FrameOf(t, r.Object(t), "work")["slots"]) {
		switch s["status"] {
		case "ok":
			require.Contains(t, s, "hex")
			require.NotContains(t, s, "reason")
		case "unavailable":
			missing++
			require.NotContains(t, s, "value")
			require.NotContains(t, s, "hex")
			register := s["location"].(map[string]any)["register"]
			require.Contains(t, s["reason"], fmt.Sprintf("%s is caller-saved and frame #", register))
		default:
			require.Fail(t, "status", "%v", s)
		}
	}
	require.Positive(t, missing)

	r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR)
	require.Equal(t, 1, r.Code)
	require.Len(t, regexp.MustCompile(`unavailable: \w+ is caller-saved and frame #`).FindAllString(r.Stdout, -1), missing)
	r = clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR)
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "%pr: it is the result of a call that is still running")
	clitest.RequireUnharmed(t, p)
}

// TestSameBytesSameOutput requires that the same bytes give the same output, except for the duration of the pause.
func TestSameBytesSameOutput(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 22, "jit_pp.ll", "orc")
	pause := regexp.MustCompile(`"pause_us": \d+`)
	var first string
	for n := range 3 {
		r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR, "--json")
		require.Equal(t, 1, r.Code)
		require.Len(t, pause.FindAllString(r.Stdout, -1), 1)
		out := pause.ReplaceAllString(r.Stdout, "")
		if n == 0 {
			first = out
		}
		require.Equal(t, first, out)
	}
}

// TestManyThreads requires the stacks of all threads of a process in which some threads spin, and others start and end while all are being stopped.
func TestManyThreads(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "threads.c", nil, "0", "32", "0", "32")
	for range livetest.Times(1, 2) {
		r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--json")
		stacks := clitest.Objects(t, r.Object(t)["threads"])
		// The main thread, the spinning threads and the slots of the short-lived threads always exist.
		require.GreaterOrEqual(t, len(stacks), 1+32+32)
		seen, cut, want := map[string]int{}, 0, 0
		for _, thread := range stacks {
			if thread["end"] != nil {
				want = 1
			}
			all := clitest.Objects(t, thread["frames"])
			if len(all) == 0 {
				require.NotEmpty(t, thread["end"], "a thread without frames says why")
			} else if thread["end"] != nil {
				cut++
			}
			for _, f := range all {
				if name, ok := f["function"].(string); ok {
					seen[name]++
				}
			}
		}
		r.Notes(t, want, "no stack map")
		require.Equal(t, 1, seen["main"])
		require.Equal(t, 32, seen["spinner"])
		// glibc has no CFI for a few instructions around the system call that starts a thread. If a churner is stopped there, its stack ends early.
		require.GreaterOrEqual(t, seen["churner"]+cut, 32)
		clitest.RequireUnharmed(t, p)
	}
}

// TestHold requires that, for a stack that was copied only partly, the suggested command shows the whole stack.
func TestHold(t *testing.T) {
	field := livetest.CBinary(t, filepath.Join("..", "deopt", "testdata", "gdbstack", "field.c"))
	p := livetest.Program(t, field, "overflow")
	p.Quiet(t, 0)
	whole := clitest.Run(t, "frames", "-p", clitest.PID(p))
	require.Equal(t, 0, whole.Code, "the default copies all of a full stack")
	require.Regexp(t, `(?m)^  #2\d\d +native +main\+0x`, whole.Stdout)
	require.NotContains(t, whole.Stdout, "cut short")
	require.NotContains(t, whole.Stderr, "more of the stack")
	r := clitest.Run(t, "frames", "-p", clitest.PID(p), "--stack-bytes", "524288")
	require.Equal(t, 1, r.Code, "its stack is cut short")
	require.Contains(t, r.Stdout, "  cut short: ")
	require.NotContains(t, r.Stdout, "_start")
	match := regexp.MustCompile(`(?m)^more of the stack: reframe (frames .*)$`).FindStringSubmatch(r.Stderr)
	require.NotNil(t, match, "%q", r.Stderr)
	again := clitest.Run(t, strings.Fields(match[1])...)
	require.NotContains(t, again.Stdout, "cut short")
	require.Regexp(t, `(?m)^  #2\d\d +native +main\+0x`, again.Stdout)
	require.NotContains(t, again.Stderr, "more of the stack")
	require.True(t, p.Alive())
}

// TestGuesses requires that text explains each kind of guess once for a stack, and that the JSON has the explanation in each frame.
func TestGuesses(t *testing.T) {
	p := livetest.Program(t, livetest.Tool(t, "node"), livetest.Testdata(t, "..", "deopt", "testdata", "gdbstack", "hot.js"))
	p.Quiet(t, 0)
	text := clitest.Run(t, "frames", "-p", clitest.PID(p), "-t", clitest.PID(p)).Stdout
	first := regexp.MustCompile(`(?m)^  #(\d+) +(?:native|jit) .* by frame pointer\n +\(frame #\d+ is assumed to have a frame pointer: if it has none, frames are missing here\)$`).FindAllStringSubmatch(text, -1)
	require.Len(t, first, 1, text)
	again := regexp.MustCompile(`(?m)^  #\d+ +(?:native|jit) .* by frame pointer, a guess like #(\d+)$`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, again, text)
	for _, m := range again {
		require.Equal(t, first[0][1], m[1])
	}
	var said int
	for _, f := range clitest.Frames(t, clitest.Run(t, "frames", "-p", clitest.PID(p), "-t", clitest.PID(p), "--json").Object(t)) {
		if notes, ok := f["notes"]; ok && strings.Contains(fmt.Sprint(notes), "is assumed to have a frame pointer") {
			require.Equal(t, "frame pointer", f["rule"])
			said++
		}
	}
	require.Equal(t, len(first)+len(again), said)
}
