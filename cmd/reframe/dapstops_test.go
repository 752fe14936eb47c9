package main_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// What stops a program: kinds of sites with their conditions, functions, counts of hits; and what only prints.
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
	e.refused("next", thread, "the interpreter cannot go on from here")

	filters := ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"statepoint", "nothing"},
		"filterOptions": []map[string]any{{"filterId": "stackmap", "condition": "%n == 2"}, {"filterId": "stackmap", "condition": "%n =="}}}).Body.Breakpoints
	require.True(t, filters[0].Verified)
	require.Contains(t, filters[1].Message, `there is no filter "nothing"; there are stackmap, patchpoint`)
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

// Breakpoints are set while a process goes on, and a program that runs without debugging stops nowhere.
func TestDAPWhileItRuns(t *testing.T) {
	t.Parallel()
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.ObjectHostOptions{Rounds: 20000})
	ir := livetest.IR(t, 19, "tick.ll")
	e := edits(t)
	e.begin("attach", map[string]any{"pid": p.PID, "ir": ir, "stopOnEntry": false})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	require.Len(t, ask[*dap.ThreadsResponse](e, "threads", nil).Body.Threads, 1)
	begin()
	line := lineWith(t, ir, "@llvm.experimental.stackmap(i64 1,")
	set := ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []map[string]any{{"line": line, "condition": "%i == 999"}}}).Body.Breakpoints
	require.True(t, set[0].Verified, set[0].Message)
	at := e.stopped("breakpoint")
	id := e.stack(at.ThreadId)[0].Id
	require.Equal(t, "999", e.evaluated(id, "%i"))
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": map[string]any{"path": ir}, "breakpoints": []any{}})
	ask[*dap.ContinueResponse](e, "continue", map[string]any{"threadId": at.ThreadId})
	e.disconnect()
	require.NoError(t, p.Wait(), p.Output())
	finished(t, victim{program: "tick.ll", options: livetest.ObjectHostOptions{Rounds: 20000}}, p.Output())

	e = edits(t)
	configuration := launchNull(t)
	configuration["noDebug"] = true
	e.begin("launch", configuration)
	ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"stackmap", "differ"}})
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	require.Zero(t, event[*dap.ExitedEvent](e).Body.ExitCode)
	e.disconnect()
}

// Where native code and the interpreter differ the process stops, and what differs is said.
func TestDAPDiffer(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := wrongTick(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
	e := edits(t)
	e.begin("launch", map[string]any{"program": host[0], "args": host[1:], "ir": module})
	set := ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"differ"}, "filterOptions": []map[string]any{{"filterId": "differ", "condition": "%i == 1"}}}).Body.Breakpoints
	require.True(t, set[0].Verified)
	require.Contains(t, set[1].Message, "takes no condition")
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

// A core does not go on: the interpreter does. A module whose file has another text by now is shown as it was read.
func TestDAPCore(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	dir := t.TempDir()
	core, ir := filepath.Join(dir, "exit.core"), filepath.Join(dir, "loop.ll")
	r := reframe(t, "record", "-p", pid(p), "-o", core, "--ir", p.IR, "--layout", layout(t))
	require.Equal(t, 0, r.code, r.stderr)
	put(t, p.IR, ir)
	text, err := os.ReadFile(ir)
	require.NoError(t, err)
	e := edits(t)
	e.begin("attach", map[string]any{"core": core, "ir": ir, "layout": layout(t)})
	require.NoError(t, os.WriteFile(ir, []byte("; another\n"+string(text)), 0o644))
	set := ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", map[string]any{"filters": []string{"differ"}}).Body.Breakpoints
	require.Contains(t, set[0].Message, "a core does not go on")
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	at := e.stopped("entry")
	frame := lineOf(t, e.stack(at.ThreadId), "sum_opt")
	require.Empty(t, frame.Source.Path)
	require.Positive(t, frame.Source.SourceReference)
	require.Equal(t, string(text), ask[*dap.SourceResponse](e, "source", map[string]any{"sourceReference": frame.Source.SourceReference}).Body.Content)
	sources := ask[*dap.LoadedSourcesResponse](e, "loadedSources", nil).Body.Sources
	require.Equal(t, []dap.Source{*frame.Source}, sources)
	e.refused("source", map[string]any{"sourceReference": 99}, "there is no source 99")
	mul := lineWith(t, p.IR, "define i64 @sum(") + 7
	source := map[string]any{"sourceReference": frame.Source.SourceReference}
	lines := ask[*dap.BreakpointLocationsResponse](e, "breakpointLocations", map[string]any{"source": source, "line": mul - 3, "endLine": mul + 1}).Body.Breakpoints
	require.Equal(t, []dap.BreakpointLocation{{Line: mul}, {Line: mul + 1}}, lines, "no phis")
	ask[*dap.SetBreakpointsResponse](e, "setBreakpoints", map[string]any{"source": source, "breakpoints": []map[string]any{{"line": mul - 1, "hitCondition": "> 972"}}}) // a phi: the first that runs
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

// A client that connects by TCP is the only one, and the server ends with it.
func TestDAPOverTCP(t *testing.T) {
	t.Parallel()
	r := reframe(t, "dap", "--listen", "0.0.0.0:0")
	r.fails(t, 64, "who connects can start programs")
	r = reframe(t, "dap", "--from-anywhere")
	r.fails(t, 64, "--from-anywhere is for --listen")
	r = reframe(t, "dap", "41822")
	r.fails(t, 64, "launch configuration")
	c := command(t, "dap", "--listen", "127.0.0.1:0")
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
	unharmed(t, p)
}
