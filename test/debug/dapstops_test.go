package debug_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestDAPStops requires the right stops for breakpoints on kinds of sites with conditions, breakpoints on functions, hit counts, and log points.
func TestDAPStops(t *testing.T) {
	t.Parallel()
	e := edits(t)
	configuration := launchNull(t)
	configuration["stopOnEntry"] = true
	e.begin("launch", configuration)
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("entry")
	thread := map[string]any{"threadId": at.ThreadId}
	require.NotEmpty(t, e.stack(at.ThreadId))
	e.refused("next", thread, "the interpreter cannot continue from here")

	filters := ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"statepoint", "nothing"},
		"filterOptions": []map[string]any{{"filterId": "stackmap", "condition": "%n == 2"}, {"filterId": "stackmap", "condition": "%n =="}}}).Body.Breakpoints
	require.True(t, filters[0].Verified)
	require.Contains(t, filters[1].Message, `unknown filter "nothing"; expected one of stackmap, patchpoint`)
	require.True(t, filters[2].Verified, filters[2].Message)
	require.False(t, filters[3].Verified)
	functions := ask[*dap.SetFunctionBreakpointsResponse](e, "setFunctionBreakpoints", map[string]any{"breakpoints": []map[string]any{{"name": "call_optimized", "hitCondition": "2"}, {"name": "f", "hitCondition": "often"}}}).Body.Breakpoints
	require.True(t, functions[0].Verified)
	require.Contains(t, functions[1].Message, `hit count "often"`)
	ir := configuration["ir"].(string)
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []map[string]any{{"line": lineWith(t, ir, "call void (i64, i32"), "logMessage": "n is {%n}, and {n * 2}"}}})
	ask[*dap.ContinueResponse](e, "continue", thread)
	at = e.stopped("function breakpoint")
	require.Equal(t, []int{functions[0].Id}, at.HitBreakpointIds)
	require.True(t, strings.HasPrefix(lineOf(t, e.stack(at.ThreadId), "entry").Name, "entry"))
	ask[*dap.ContinueResponse](e, "continue", thread)
	at = e.stopped("exception")
	require.Equal(t, "Exit at a stackmap site", at.Description)
	require.Equal(t, []int{filters[2].Id}, at.HitBreakpointIds)
	info := ask[*dap.ExceptionInfoResponse](e, "exceptionInfo", map[string]any{"threadId": at.ThreadId}).Body
	require.Equal(t, "stackmap", info.ExceptionId)
	require.Contains(t, info.Details.Message, "record 81, before")
	require.Contains(t, e.output["console"], "n is 0, and 0\n")
	require.Contains(t, e.output["console"], "n is 1, and 2\n")
	require.Contains(t, e.output["console"], "n is 2, and 4\n")
	ask[*dap.TerminateResponse](e, "terminate", nil)
	event[*dap.TerminatedEvent](e)
	e.disconnect()
	require.NotContains(t, e.output["stdout"], "sum", "it was ended")
}

// TestDAPWhileItRuns requires that breakpoints can be set while a process runs, and that a program which was launched without debugging does not
// stop.
func TestDAPWhileItRuns(t *testing.T) {
	t.Parallel()
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.ObjectHostOptions{Rounds: 20000})
	ir := livetest.IR(t, 19, "tick.ll")
	e := edits(t)
	e.begin("attach", map[string]any{"pid": p.PID, "ir": ir, "stopOnEntry": false})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	require.Len(t, ask[*dap.ThreadsResponse](e, "threads", nil).Body.Threads, 1)
	line := lineWith(t, ir, "@llvm.experimental.stackmap(i64 1,")
	set := ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []map[string]any{{"line": line, "condition": "%i == 999"}}}).Body.Breakpoints
	require.True(t, set[0].Verified, set[0].Message)
	e.refused("stackTrace", map[string]any{"threadId": p.PID}, "the process is running")
	begin()
	at := e.stopped("breakpoint")
	id := e.stack(at.ThreadId)[0].Id
	require.Equal(t, "999", e.evaluated(id, "%i"))
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []any{}})
	ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
	e.disconnect()
	require.NoError(t, p.Wait(), p.Output())
	clitest.RequireFinished(t, clitest.Victim{Program: "tick.ll", Options: livetest.ObjectHostOptions{Rounds: 20000}}, p.Output())

	e = edits(t)
	configuration := launchNull(t)
	configuration["noDebug"] = true
	e.begin("launch", configuration)
	ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"stackmap", "differ"}})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	require.Zero(t, event[*dap.ExitedEvent](e).Body.ExitCode)
	e.disconnect()
}

// TestDAPDiffer requires that the process stops at an exit at which native code and the interpreter differ, and that the difference is reported.
func TestDAPDiffer(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.WrongTick(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
	e := edits(t)
	e.begin("launch", map[string]any{"program": host[0], "args": host[1:], "ir": module})
	set := ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"differ"}, "filterOptions": []map[string]any{{"filterId": "differ", "condition": "%i == 1"}}}).Body.Breakpoints
	require.True(t, set[0].Verified)
	require.Contains(t, set[1].Message, "cannot have a condition")
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("exception")
	require.Equal(t, "Native and interpreter differ", at.Description)
	info := ask[*dap.ExceptionInfoResponse](e, "exceptionInfo", map[string]any{"threadId": at.ThreadId}).Body
	require.Equal(t, "differ", info.ExceptionId)
	require.Contains(t, info.Details.Message, "the interpreter has ")
	require.NotEmpty(t, e.stack(at.ThreadId))
	ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{}})
	ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
	require.Zero(t, event[*dap.ExitedEvent](e).Body.ExitCode)
	e.disconnect()
}

// TestDAPCore requires that the interpreter steps in a core, which itself cannot be continued, and that a module whose file has changed is shown as
// it was when reframe read it.
func TestDAPCore(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	dir := t.TempDir()
	core, ir := filepath.Join(dir, "exit.core"), filepath.Join(dir, "loop.ll")
	r := clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core, "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stderr)
	clitest.CopyFile(t, p.IR, ir)
	text, err := os.ReadFile(ir)
	require.NoError(t, err)
	e := edits(t)
	e.begin("attach", map[string]any{"core": core, "ir": ir, "layout": clitest.DeoptimizeLayout(t)})
	require.NoError(t, os.WriteFile(ir, []byte("; another\n"+string(text)), 0o644))
	set := ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"differ"}}).Body.Breakpoints
	require.Contains(t, set[0].Message, "in a core")
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("entry")
	frame := lineOf(t, e.stack(at.ThreadId), "sum_opt")
	require.Empty(t, frame.Source.Path)
	require.Positive(t, frame.Source.SourceReference)
	require.Equal(t, string(text), ask[*dap.SourceResponse](e, "source", map[string]any{"sourceReference": frame.Source.SourceReference}).Body.Content)
	sources := ask[*dap.LoadedSourcesResponse](e, "loadedSources", nil).Body.Sources
	require.Equal(t, []dap.Source{*frame.Source}, sources)
	e.refused("source", map[string]any{"sourceReference": 99}, "source 99 not found")
	mul := lineWith(t, p.IR, "define i64 @sum(") + 7
	source := map[string]any{"sourceReference": frame.Source.SourceReference}
	lines := ask[*dap.BreakpointLocationsResponse](e, "breakpointLocations", map[string]any{"source": source, "line": mul - 3, "endLine": mul + 1}).Body.Breakpoints
	require.Equal(t, []dap.BreakpointLocation{{Line: mul}, {Line: mul + 1}}, lines, "no phis")
	// The line is a phi, so the breakpoint is set at the first instruction after the phis.
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": source, "breakpoints": []map[string]any{{"line": mul - 1, "hitCondition": "> 972"}}})
	ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
	e.stopped("breakpoint")
	require.Equal(t, "999", e.evaluated(e.stack(at.ThreadId)[0].Id, "%i"), "27 is the first")
	ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
	require.Equal(t, "the interpreter has returned i64 332833500", e.stopped("step").Text)
	modules := ask[*dap.ModulesResponse](e, "modules", map[string]any{"startModule": 1, "moduleCount": 2}).Body
	require.Len(t, modules.Modules, 2)
	require.Greater(t, modules.TotalModules, 5)
	e.disconnect()
}

// TestDAPOtherDebugger requires frames, values and runs of the interpreter for a process that gdbserver or dlv holds. The process stays stopped.
func TestDAPOtherDebugger(t *testing.T) {
	livetest.NeedsTools(t)
	for member, addr := range map[string]func(*testing.T, *livetest.Process) string{
		"remote": func(t *testing.T, p *livetest.Process) string {
			return "| " + livetest.Tool(t, "gdbserver") + " --once --attach - " + clitest.PID(p) + " 2>/dev/null"
		},
		"delve": func(t *testing.T, p *livetest.Process) string {
			return livetest.Headless(t, "attach", clitest.PID(p), "--accept-multiclient").Addr
		},
	} {
		t.Run(member, func(t *testing.T) {
			p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
			e := edits(t)
			e.begin("attach", map[string]any{member: addr(t, p), "ir": p.IR, "layout": clitest.DeoptimizeLayout(t)})
			ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
			at := e.stopped("entry")
			require.Equal(t, "26", e.evaluated(lineOf(t, e.stack(at.ThreadId), "sum_opt").Id, "%i"))
			ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
			require.Equal(t, "the interpreter has returned i64 332833500", e.stopped("step").Text)
			e.disconnect()
		})
	}
}

// TestDAPOverTCP requires that the server accepts one client over TCP, and exits when the session ends.
func TestDAPOverTCP(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	r := clitest.Run(t, "dap", "--listen", "0.0.0.0:0")
	r.Fails(t, 64, "a client can start programs")
	r = clitest.Run(t, "dap", "--from-anywhere")
	r.Fails(t, 64, "--from-anywhere requires --listen")
	r = clitest.Run(t, "dap", "41822")
	r.Fails(t, 64, "launch configuration")
	c := clitest.Command(t, "dap", "--listen", "127.0.0.1:0")
	said, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	address, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	require.True(t, found, line)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	e := connected(t, conn, conn)
	e.c = c
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	e.begin("attach", map[string]any{"pid": p.PID})
	if another, err := net.Dial("tcp", address); err == nil {
		another.Close()
		require.Fail(t, "a second client was taken")
	}
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	e.stopped("entry")
	require.NoError(t, conn.Close())
	e.over(0)
	clitest.RequireUnharmed(t, p)
}

// partsModule waits in a call. After the call it computes values that have parts, and calls a function.
const partsModule = `
define i32 @twice(i32 %x) noinline {
  %y = add i32 %x, %x
  %z = add i32 %y, 0
  ret i32 %z
}
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %n = trunc i64 %a to i32
  %v = insertelement <4 x i32> <i32 1, i32 2, i32 3, i32 4>, i32 %n, i32 2
  %b = icmp ugt <4 x i32> %v, <i32 1, i32 1, i32 1, i32 1>
  %t = call SITE
  %r = call i64 @llvm.experimental.gc.result.i64(token %t)
  %s = insertvalue { i32, [2 x i64], double } { i32 7, [2 x i64] [i64 8, i64 9], double 2.5 }, i64 %r, 1, 0
  %i = extractelement <4 x i32> %v, i32 2
  %d = call i32 @twice(i32 %i)
  %e = call i32 @twice(i32 %d)
  %o = sext i32 %e to i64
  ret i64 %o
}`

// TestDAPParts requires that vectors, structs and arrays have their parts as children, and that a step over a call or out of a function stops at a
// breakpoint inside.
func TestDAPParts(t *testing.T) {
	t.Parallel()
	site := livetest.Statepoint(5, "@wait", "%a", "<4 x i32> %v, <4 x i1> %b, i64 %a")
	p := livetest.Lli(t, 19, livetest.Raw(t, livetest.Prelude+strings.Replace(partsModule, "SITE", site, 1)+livetest.Start), "orc")
	e := edits(t)
	e.begin("attach", map[string]any{"pid": p.PID, "ir": p.IR})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("entry")
	thread := map[string]any{"threadId": at.ThreadId}
	work := lineOf(t, e.stack(at.ThreadId), "work")
	require.True(t, work.CanRestart)
	values := e.values(e.scopes(work.Id)["Values"])
	v := values["%v"]
	require.Equal(t, "<1, 2, 100, 4>", v.Value)
	require.Equal(t, 4, v.IndexedVariables)
	require.Equal(t, "100", e.values(v.VariablesReference)["[2]"].Value)
	two := ask[*dap.VariablesResponse](e, "variables", map[string]any{"variablesReference": v.VariablesReference, "filter": "indexed", "start": 1, "count": 2}).Body.Variables
	require.Equal(t, []string{"[1] 2", "[2] 100"}, []string{two[0].Name + " " + two[0].Value, two[1].Name + " " + two[1].Value})
	require.Zero(t, values["%b"].VariablesReference, "its parts have no bytes: %v", values["%b"])
	e.refused("setVariable", map[string]any{"variablesReference": v.VariablesReference, "name": "[2]", "value": "5"}, "cannot be set")
	e.refused("next", thread, "the interpreter cannot continue from here")
	ask[*dap.EvaluateResponse](e, "evaluate", map[string]any{"expression": "result 55", "context": "repl"})
	work = lineOf(t, e.stack(at.ThreadId), "work")
	ask[*dap.RestartFrameResponse](e, "restartFrame", map[string]any{"frameId": work.Id})
	e.stopped("restart")
	top := func() dap.StackFrame { return e.stack(at.ThreadId)[0] }
	step := func(request string) string {
		t.Helper()
		require.True(t, e.answer(e.send(request, thread)).GetResponse().Success)
		return event[*dap.StoppedEvent](e).Body.Reason
	}
	for n := 0; top().Line != lineWith(t, p.IR, "%i = extractelement"); n++ {
		require.Less(t, n, 5)
		require.Equal(t, "step", step("next"))
	}
	s := e.values(e.scopes(top().Id)["Values"])["%s"]
	require.Equal(t, "{7, [55, 9], 2.5}", s.Value)
	fields := e.values(s.VariablesReference)
	require.Equal(t, "7", fields["0"].Value)
	require.Equal(t, "2.5", fields["2"].Value)
	require.Equal(t, "[2 x i64]", fields["1"].Type)
	require.Equal(t, "55", e.values(fields["1"].VariablesReference)["[0]"].Value)

	inside := lineWith(t, p.IR, "%z = add")
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": p.IR}, "breakpoints": []map[string]any{{"line": inside, "condition": "%x > 100"}}})
	require.Equal(t, "step", step("next"))
	require.Equal(t, "step", step("next"), "over the first call, at whose breakpoint the condition does not hold")
	require.Equal(t, lineWith(t, p.IR, "%e = call"), top().Line)
	require.Equal(t, "breakpoint", step("next"), "in the second one")
	require.Equal(t, inside, top().Line)
	require.Equal(t, "step", step("stepOut"))
	require.Equal(t, "400", e.evaluated(top().Id, "%e"))
	require.Equal(t, "step", step("reverseContinue"))
	require.Equal(t, inside, top().Line, "the last time that it was there")
	require.Equal(t, "step", step("stepBack"))
	require.Equal(t, lineWith(t, p.IR, "%y = add"), top().Line)
	e.disconnect()
	clitest.RequireUnharmed(t, p)
}

// TestDAPThreads requires that each thread has its own frames, and that the interpreter starts from the thread that is stepped.
func TestDAPThreads(t *testing.T) {
	t.Parallel()
	e := edits(t)
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.ObjectHostOptions{Threads: 4, Rounds: 20})
	ir := livetest.IR(t, 19, "tick.ll")
	e.begin("launch", map[string]any{"program": host[0], "args": host[1:], "ir": ir})
	ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"stackmap"}})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("exception")
	for range 50 { // until another thread is also stopped in @tick
		for _, other := range ask[*dap.ThreadsResponse](e, "threads", nil).Body.Threads {
			frames := e.stack(other.Id)
			if other.Id == at.ThreadId || len(frames) == 0 || !strings.HasPrefix(frames[0].Name, "tick") || !strings.Contains(frames[0].Name, "stackmap") {
				continue
			}
			i := e.evaluated(frames[0].Id, "%i")
			ask[*dap.StepInResponse](e, "stepIn", map[string]any{"threadId": other.Id})
			require.Equal(t, other.Id, e.stopped("step").ThreadId)
			own := e.stack(other.Id)
			require.Equal(t, "@tick (interpreter)", own[0].Name)
			require.Equal(t, i, e.evaluated(own[0].Id, "%i"))
			require.True(t, strings.HasPrefix(e.stack(at.ThreadId)[0].Name, "tick+"), "a physical frame still")
			e.disconnect()
			return
		}
		ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
		at = e.stopped("exception")
	}
	t.Log("no two threads stood at the site")
	e.disconnect()
}
