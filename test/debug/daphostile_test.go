package debug_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestDAPPause requires that the interpreter keeps its position after a pause or a cancellation.
func TestDAPPause(t *testing.T) {
	t.Parallel()
	e, p, at := attachSum(t)
	thread := map[string]any{"threadId": at.ThreadId}
	ask[*dap.PauseResponse](e, "pause", thread) // it is already stopped
	for _, way := range []string{"pause", "cancel"} {
		on := e.send("continue", thread)
		require.True(t, e.answer(on).GetResponse().Success)
		e.refused("evaluate", map[string]any{"expression": "%i"}, "the process is running")
		if way == "pause" {
			ask[*dap.PauseResponse](e, way, thread)
		} else {
			ask[*dap.CancelResponse](e, way, map[string]any{"requestId": on + 1000}) // no request has this number
			ask[*dap.CancelResponse](e, way, map[string]any{"requestId": on})
		}
		e.stopped("pause")
		require.Equal(t, "26", e.evaluated(lineOf(t, e.stack(at.ThreadId), "sum_opt").Id, "%i"))
	}
	e.disconnect()
	clitest.RequireUnharmed(t, p)
}

// TestDAPConsole requires the results of the console's commands, its completions, and hexadecimal numbers on request.
func TestDAPConsole(t *testing.T) {
	t.Parallel()
	e, p, at := attachSum(t)
	console := func(text string) string {
		t.Helper()
		return ask[*dap.EvaluateResponse](e, "evaluate", map[string]any{"expression": text, "context": "repl"}).Body.Result
	}
	require.Contains(t, console("help"), "exits")
	require.Contains(t, console("exits"), "record 2882400000, deoptimize")
	require.Equal(t, "5551", console("acc + i"))
	e.refused("evaluate", map[string]any{"expression": "output", "context": "repl"}, "has not run")
	e.refused("evaluate", map[string]any{"expression": "output", "context": "watch"}, "there is no output")
	e.refused("evaluate", map[string]any{"expression": "1 +", "context": "watch"})
	var labels []string
	for _, c := range ask[*dap.CompletionsResponse](e, "completions", map[string]any{"text": "1 + %a", "column": 7}).Body.Targets {
		labels = append(labels, c.Label)
		require.Equal(t, 4, c.Start)
		require.Equal(t, 2, c.Length)
	}
	require.Equal(t, []string{"%acc"}, labels)
	frame := lineOf(t, e.stack(at.ThreadId), "sum_opt").Id
	hex := ask[*dap.EvaluateResponse](e, "evaluate", map[string]any{"expression": "%i", "frameId": frame, "format": map[string]any{"hex": true}}).Body
	require.Equal(t, "0x1a", hex.Result)
	require.Equal(t, "i64", hex.Type)
	e.disconnect()
	clitest.RequireUnharmed(t, p)
}

// TestDAPDeafClient requires that a session with much output, whose client does not read, still ends by a signal or when the client disconnects.
func TestDAPDeafClient(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	o := livetest.ObjectHostOptions{Rounds: 60}
	ir := livetest.IR(t, 19, "tick.ll")
	for name, c := range map[string]struct {
		leave  func(e *editor)
		status int
	}{
		"signal":       {func(e *editor) { require.NoError(t, e.c.Process.Signal(syscall.SIGTERM)) }, 143},
		"input closed": {func(e *editor) { require.NoError(t, e.in.Close()) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), o)
			e := edits(t)
			e.begin("attach", map[string]any{"pid": p.PID, "ir": ir, "stopOnEntry": false})
			log := map[string]any{"line": lineWith(t, ir, "@llvm.experimental.stackmap(i64 1,"), "logMessage": strings.Repeat("much to read ", 100)}
			ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []any{log}})
			ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
			begin()
			full := cap(e.come)
			require.Eventually(t, func() bool { return len(e.come) == full }, livetest.Patience, time.Millisecond)
			c.leave(e)
			require.NoError(t, p.Wait(), p.Output())
			clitest.RequireFinished(t, clitest.Victim{Program: "tick.ll", Options: o}, p.Output())
			e.over(c.status)
		})
	}
}

// TestDAPLogpointWithoutReader requires that a process runs to its end although the client does not read the output of a log point, and that each hit
// is printed, or counted as dropped, when the client reads again.
func TestDAPLogpointWithoutReader(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	o := livetest.ObjectHostOptions{Rounds: 4}
	ir := livetest.IR(t, 19, "tick.ll")
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), o)
	e := edits(t)
	e.begin("attach", map[string]any{"pid": p.PID, "ir": ir, "stopOnEntry": false})
	text := strings.Repeat("much to read ", 100)
	log := map[string]any{"line": lineWith(t, ir, "@llvm.experimental.stackmap(i64 1,"), "logMessage": text}
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []any{log}})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	begin()
	require.NoError(t, p.Wait(), p.Output())
	clitest.RequireFinished(t, clitest.Victim{Program: "tick.ll", Options: o}, p.Output())
	event[*dap.TerminatedEvent](e)
	e.disconnect()
	printed, dropped := strings.Count(e.output["console"], text), 0
	for _, m := range regexp.MustCompile(`(?m)^(\d+) log messages? dropped: the client did not read its messages$`).FindAllStringSubmatch(e.output["console"], -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		dropped += n
	}
	require.Positive(t, dropped)
	require.Equal(t, 4*1000, printed+dropped)
}

// raw sends text that need not be a valid request.
func (e *editor) raw(text string) {
	_, _ = e.in.Write([]byte(text)) // the reader may have exited
}

func message(text string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text) }

// TestDAPHostileClients requires that bytes that are not a message end the server with one error while an attached process continues, and that after
// an invalid request the session continues.
func TestDAPHostileClients(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	for _, c := range []struct{ name, sends, says string }{
		{"garbage", strings.Repeat("garbage ", 10_000), "not a message of the Debug Adapter Protocol"},
		{"no length", "Content-Type: text\r\n\r\n{}", "a header without Content-Length"},
		{"a length that is none", "Content-Length: many\r\n\r\n", "a number of bytes"},
		{"a negative length", "Content-Length: -5\r\n\r\n", "a number of bytes"},
		{"a huge length", "Content-Length: 4611686018427387904\r\n\r\n{}", "the limit is 4194304"},
		{"a length that overflows", "Content-Length: 99999999999999999999999\r\n\r\n{}", "a number of bytes"},
		{"no JSON", message("seq"), "not a message of the Debug Adapter Protocol"},
		{"another JSON", message("[1, 2]"), "not a message of the Debug Adapter Protocol"},
		{"zeros", strings.Repeat("\x00", 100_000), "not a message of the Debug Adapter Protocol"},
		{"half a message", "Content-Length: 100\r\n\r\n{", "unexpected EOF"},
		{"half a header", "Content-Len", "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := edits(t)
			e.begin("attach", map[string]any{"pid": p.PID})
			ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
			e.stopped("entry")
			var said strings.Builder
			e.raw(c.sends)
			require.NoError(t, e.in.Close())
			said.WriteString(e.overSaying(2))
			require.Contains(t, said.String(), c.says)
			require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
		})
		clitest.RequireUnharmed(t, p)
	}
}

// TestDAPSenselessRequests requires that a client which sends random requests, in any order and state, gets answers.
func TestDAPSenselessRequests(t *testing.T) {
	t.Parallel()
	e := edits(t)
	e.refused("threads", nil, "before initialize")
	e.refused("next", map[string]any{"threadId": 1}, "before initialize")
	e.refused("nothing", nil, `request "nothing" is not supported`)
	e.refused("initialize", map[string]any{"pathFormat": "uri"}, "pathFormat")
	ask[*dap.InitializeResponse](e, "initialize", map[string]any{"adapterID": "x"})
	e.refused("stackTrace", map[string]any{"threadId": 1}, "requires a target")
	for _, c := range []struct {
		request   string
		arguments map[string]any
		says      string
	}{
		{"launch", map[string]any{}, `"program" is missing in the launch configuration`},
		{"launch", map[string]any{"program": "/no/such/program"}, "no such file"},
		{"launch", map[string]any{"program": 5}, "program is number"},
		{"launch", map[string]any{"program": "true", "ir": "/no/such.ll"}, "/no/such.ll"},
		{"launch", map[string]any{"program": "true", "pid": 1}, `"attach"`},
		{"attach", map[string]any{}, "expected one of \"pid\", \"core\", \"remote\" and \"delve\""},
		{"attach", map[string]any{"pid": -1}, "a process id must be above 0"},
		{"attach", map[string]any{"pid": 1 << 30}, "no such process"},
		{"attach", map[string]any{"processId": "many"}, "a number"},
		{"attach", map[string]any{"core": "/no/such.core"}, "/no/such.core"},
		{"attach", map[string]any{"pid": 1, "core": "x"}, "expected one of \"pid\", \"core\", \"remote\" and \"delve\""},
		{"attach", map[string]any{"pid": 1, "sysroot": "x"}, "require \"core\""},
		{"attach", map[string]any{"remote": "unix:/no/such", "delve": "unix:/no/such"}, "expected one of"},
		{"attach", map[string]any{"remote": "unix:/no/such"}, "no such file"},
		{"attach", map[string]any{"delve": "unix:/no/such"}, "no such file"},
		{"launch", map[string]any{"program": "true", "delve": "unix:/no/such"}, `"attach"`},
		{"attach", map[string]any{"program": "x"}, `"launch"`},
	} {
		e.refused(c.request, c.arguments, c.says)
	}
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	ask[*dap.AttachResponse](e, "attach", map[string]any{"pid": p.PID, "ir": p.IR})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("entry")
	e.refused("stackTrace", map[string]any{"threadId": int64(1) << 40}, "no thread")
	e.refused("stackTrace", map[string]any{"threadId": at.ThreadId, "startFrame": -5}, "must be 0 or more")
	require.Empty(t, ask[*dap.StackTraceResponse](e, "stackTrace", map[string]any{"threadId": at.ThreadId, "startFrame": int64(1) << 40}).Body.StackFrames)
	frame := e.stack(at.ThreadId)[0].Id
	for _, id := range []int64{-1, 1 << 50, 999999, -1 << 60} {
		e.refused("scopes", map[string]any{"frameId": id}, "not found")
		e.refused("variables", map[string]any{"variablesReference": id}, "not found")
		e.refused("evaluate", map[string]any{"expression": "1", "frameId": id}, "not found")
	}
	e.refused("variables", map[string]any{"variablesReference": frame}, "is a frame")
	e.refused("scopes", map[string]any{"frameId": e.scopes(frame)["Registers"]}, "is not a frame")
	e.refused("variables", map[string]any{"variablesReference": e.scopes(frame)["Registers"], "count": -1}, "must be 0 or more")
	e.refused("evaluate", map[string]any{"expression": strings.Repeat("(", 1_000_000)})
	e.refused("setBreakpoints", map[string]any{"source": map[string]any{"path": p.IR}, "breakpoints": make([]map[string]any, 10_001)}, "at most 10000")
	e.refused("setDataBreakpoints", map[string]any{"breakpoints": "all"}, "is not that of the specification")
	e.refused("goto", map[string]any{"threadId": at.ThreadId, "targetId": 77}, "target 77 not found")
	e.raw(message(`{"seq":1,"type":"event","event":"initialized"}`) + message(`{"seq":1,"type":"response","command":"runInTerminal"}`) + message(`{}`))

	// Each random request must get exactly one answer.
	random := rand.New(rand.NewPCG(3, 9))
	odd := []any{nil, 0, -1, int64(1) << 40, "x", "", "%i", p.IR, true, []any{}, map[string]any{}, at.ThreadId, frame, "0x10", 1.5}
	for range livetest.Times(400, 10_000) {
		a := specification[random.IntN(len(specification))]
		if a.request == "disconnect" {
			continue
		}
		arguments := map[string]any{}
		for _, name := range []string{"threadId", "frameId", "variablesReference", "source", "line", "expression", "name", "value", "memoryReference", "count", "instructionCount", "breakpoints", "filters", "context", "text", "column", "targetId", "program"} {
			if random.IntN(3) == 0 {
				arguments[name] = odd[random.IntN(len(odd))]
			}
		}
		require.Equal(t, a.request, e.answer(e.send(a.request, arguments)).GetResponse().Command)
	}
	require.NoError(t, e.in.Close())
	e.over(0)
	require.True(t, p.Alive())
	require.Eventually(t, func() bool { return clitest.ThreadStatus(p.PID, p.PID, "TracerPid") == "0" }, livetest.Patience, 1e6)
	_, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID))
	require.NoError(t, err)
}
