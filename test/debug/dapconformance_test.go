package debug_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// asked is a request of the specification, with the expected answer for a process at the exit of deoptimize.ll.
type asked struct {
	request   string
	arguments func(s *atExit) map[string]any // nil: none
	run       bool                           // the interpreter runs one instruction before the request
	refusal   string                         // the reason of the refusal; "" for an answered request
	test      string                         // the test that checks the answer or the refusal
	note      string
}

// atExit is a session for a process at an exit, in which requests are tested.
type atExit struct {
	e      *editor
	p      *livetest.Process
	thread int
	frame  dap.StackFrame
}

func (s *atExit) threadOnly() map[string]any { return map[string]any{"threadId": s.thread} }
func (s *atExit) source() map[string]any     { return map[string]any{"path": s.p.IR} }

// specification lists all requests of the specification (https://microsoft.github.io/debug-adapter-protocol/specification), in its order, including
// those that an adapter sends to its client.
var specification = []asked{
	{request: "cancel", test: "TestDAPPause", note: "ends a step or a run of the interpreter, and pauses a process; other requests are answered before it arrives"},
	{request: "runInTerminal", refusal: "adapters send this request to clients", note: "`dap` does not send it: output comes as events"},
	{request: "startDebugging", refusal: "adapters send this request to clients", note: "`dap` does not send it"},
	{request: "initialize", refusal: "already sent", test: "TestDAPLaunch", note: "refused when sent again"},
	{request: "configurationDone", refusal: "already sent", test: "TestDAPLaunch", note: "refused when sent again"},
	{request: "launch", arguments: func(*atExit) map[string]any { return map[string]any{"program": "true"} }, refusal: "already has a target", test: "TestDAPLaunch", note: "refused when sent again"},
	{request: "attach", arguments: func(s *atExit) map[string]any { return map[string]any{"pid": 1} }, refusal: "already has a target", test: "TestDAPAttach", note: "a process or a core; refused when sent again"},
	{request: "restart", arguments: func(*atExit) map[string]any { return map[string]any{} }, refusal: "launch the program again", note: "clients then do so themselves"},
	{request: "disconnect", test: "TestDAPAttach", note: "an attached process resumes, a launched program ends"},
	{request: "terminate", refusal: "cannot be terminated", test: "TestDAPStops", note: "refused for an attached process"},
	{request: "breakpointLocations", arguments: func(s *atExit) map[string]any { return map[string]any{"source": s.source(), "line": 1, "endLine": 50} }, test: "TestDAPCore"},
	{request: "setBreakpoints", arguments: func(s *atExit) map[string]any {
		return map[string]any{"source": s.source(), "breakpoints": []any{map[string]any{"line": 1}}}
	}, test: "TestDAPLaunch", note: "with conditions, hit counts and log messages"},
	{request: "setFunctionBreakpoints", arguments: func(*atExit) map[string]any {
		return map[string]any{"breakpoints": []any{map[string]any{"name": "sum"}}}
	}, test: "TestDAPStops"},
	{request: "setExceptionBreakpoints", arguments: func(*atExit) map[string]any { return map[string]any{"filters": []string{"deoptimize"}} }, test: "TestDAPStops"},
	{request: "dataBreakpointInfo", arguments: func(s *atExit) map[string]any { return map[string]any{"name": "%i", "frameId": s.frame.Id} }, test: "TestDAPAttach", note: "for values of interpreted functions"},
	{request: "setDataBreakpoints", arguments: func(*atExit) map[string]any { return map[string]any{"breakpoints": []any{}} }, test: "TestDAPAttach"},
	{request: "setInstructionBreakpoints", arguments: func(*atExit) map[string]any { return map[string]any{"breakpoints": []any{}} }, refusal: "native code stops only at exits"},
	{request: "continue", arguments: (*atExit).threadOnly, test: "TestDAPLaunch", note: "resumes the process; in a core, the interpreter"},
	{request: "next", arguments: (*atExit).threadOnly, test: "TestDAPAttach"},
	{request: "stepIn", arguments: (*atExit).threadOnly, test: "TestDAPAttach"},
	{request: "stepOut", arguments: (*atExit).threadOnly, test: "TestDAPAttach"},
	{request: "stepBack", arguments: (*atExit).threadOnly, run: true, test: "TestDAPAttach"},
	{request: "reverseContinue", arguments: (*atExit).threadOnly, run: true, test: "TestDAPAttach"},
	{request: "restartFrame", arguments: func(s *atExit) map[string]any { return map[string]any{"frameId": s.frame.Id} }, run: true, test: "TestDAPAttach"},
	{request: "goto", arguments: func(s *atExit) map[string]any { return map[string]any{"threadId": s.thread, "targetId": 1} }, run: true, test: "TestDAPAttach"},
	{request: "pause", arguments: (*atExit).threadOnly, test: "TestDAPPause"},
	{request: "stackTrace", arguments: (*atExit).threadOnly, test: "TestDAPAttach"},
	{request: "scopes", arguments: func(s *atExit) map[string]any { return map[string]any{"frameId": s.frame.Id} }, test: "TestDAPVirtualMachine"},
	{request: "variables", arguments: func(s *atExit) map[string]any {
		return map[string]any{"variablesReference": s.e.scopes(s.frame.Id)["Values"], "start": 1, "count": 1}
	}, test: "TestDAPVirtualMachine"},
	{request: "setVariable", arguments: func(s *atExit) map[string]any {
		return map[string]any{"variablesReference": s.e.scopes(s.frame.Id)["Values"], "name": "%i", "value": "1"}
	}, test: "TestDAPAttach"},
	{request: "source", arguments: func(s *atExit) map[string]any { return map[string]any{"source": s.source(), "sourceReference": 0} }, test: "TestDAPCore"},
	{request: "threads", test: "TestDAPAttach"},
	{request: "terminateThreads", arguments: func(*atExit) map[string]any { return map[string]any{} }, refusal: "ends a launched program"},
	{request: "modules", arguments: func(*atExit) map[string]any { return map[string]any{} }, test: "TestDAPCore"},
	{request: "loadedSources", test: "TestDAPCore"},
	{request: "evaluate", arguments: func(s *atExit) map[string]any {
		return map[string]any{"expression": "%i + 1", "frameId": s.frame.Id, "context": "hover"}
	}, test: "TestDAPAttach"},
	{request: "setExpression", arguments: func(s *atExit) map[string]any {
		return map[string]any{"expression": "%i", "value": "1", "frameId": s.frame.Id}
	}, test: "TestDAPAttach"},
	{request: "stepInTargets", arguments: func(s *atExit) map[string]any { return map[string]any{"frameId": s.frame.Id} }, refusal: "has one target"},
	{request: "gotoTargets", arguments: func(s *atExit) map[string]any { return map[string]any{"source": s.source(), "line": 1} }, test: "TestDAPAttach", note: "the exit, if the interpreter has run on from it"},
	{request: "completions", arguments: func(s *atExit) map[string]any {
		return map[string]any{"frameId": s.frame.Id, "text": "%a", "column": 3}
	}, test: "TestDAPConsole"},
	{request: "exceptionInfo", arguments: (*atExit).threadOnly, refusal: "an exception filter", test: "TestDAPStops", note: "refused unless an exception filter has stopped the process"},
	{request: "readMemory", arguments: func(s *atExit) map[string]any {
		return map[string]any{"memoryReference": s.frame.InstructionPointerReference, "count": 4}
	}, test: "TestDAPMemory"},
	{request: "writeMemory", arguments: func(s *atExit) map[string]any {
		return map[string]any{"memoryReference": s.frame.InstructionPointerReference, "data": "AAAA"}
	}, refusal: "the target does not change"},
	{request: "disassemble", arguments: func(s *atExit) map[string]any {
		return map[string]any{"memoryReference": s.frame.InstructionPointerReference, "instructionCount": 4}
	}, test: "TestDAPMemory"},
	{request: "locations", arguments: func(*atExit) map[string]any { return map[string]any{"locationReference": 1} }, refusal: `request "locations" is not supported`, note: "`dap` sends no location references"},
}

// TestDAPEveryRequest requires that every request of the specification is answered, or refused with a reason, as the table of doc/user/editors.md
// says. A request that is always refused must not be advertised.
func TestDAPEveryRequest(t *testing.T) {
	livetest.Slow(t) // each request needs a session of its own
	t.Parallel()
	require.Len(t, specification, 45)
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	for _, a := range specification {
		t.Run(a.request, func(t *testing.T) {
			e := edits(t)
			r := e.begin("attach", map[string]any{"pid": p.PID, "ir": p.IR, "layout": clitest.DeoptimizeLayout(t), "noSelfDescription": true})
			notAdvertised(t, &r.Body)
			ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
			s := &atExit{e, p, e.stopped("entry").ThreadId, dap.StackFrame{}}
			if a.run {
				ask[*dap.NextResponse](e, "next", s.threadOnly())
				e.stopped("step")
				s.frame = e.stack(s.thread)[0]
			} else {
				s.frame = lineOf(t, e.stack(s.thread), "sum_opt")
			}
			var arguments any
			if a.arguments != nil {
				arguments = a.arguments(s)
			}
			if a.refusal != "" {
				e.refused(a.request, arguments, a.refusal)
			} else {
				m := e.answer(e.send(a.request, arguments))
				require.True(t, m.GetResponse().Success, "%+v", m)
				require.Equal(t, a.request, m.GetResponse().Command)
			}
			if a.request == "disconnect" {
				e.over(0)
			} else {
				e.disconnect()
			}
		})
	}
	clitest.RequireUnharmed(t, p)
}

// notAdvertised requires that unsupported requests are not advertised.
func notAdvertised(t *testing.T, c *dap.Capabilities) {
	t.Helper()
	require.False(t, c.SupportsRestartRequest || c.SupportsTerminateThreadsRequest || c.SupportsStepInTargetsRequest || c.SupportsInstructionBreakpoints ||
		c.SupportsWriteMemoryRequest || c.SupportTerminateDebuggee || c.SupportSuspendDebuggee || c.SupportsSingleThreadExecutionRequests || c.SupportsExceptionOptions)
	require.True(t, c.SupportsConfigurationDoneRequest && c.SupportsStepBack && c.SupportsDataBreakpoints && c.SupportsReadMemoryRequest && c.SupportsDisassembleRequest)
	require.Len(t, c.ExceptionBreakpointFilters, 6)
}

// TestDAPConformanceTable requires that the table of doc/user/editors.md matches specification, and that the tests named there send these requests.
// With README=update in the environment it rewrites the table.
func TestDAPConformanceTable(t *testing.T) {
	t.Parallel()
	const document, begin, end = "../../doc/user/editors.md", "<!-- requests -->\n", "<!-- end -->"
	tests := ""
	for _, file := range []string{"dap_test.go", "dapstops_test.go", "daphostile_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		tests += string(text)
	}
	var table strings.Builder
	table.WriteString("| request | answer | notes |\n|---|---|---|\n")
	for _, a := range specification {
		answer := "yes"
		if a.test == "" {
			answer = reason(t, a.request)
		} else {
			_, body, found := strings.Cut(tests, "\nfunc "+a.test+"(")
			require.True(t, found, a.test)
			body, _, _ = strings.Cut(body, "\n}\n")
			if a.request != "attach" || a.test != "TestDAPAttach" { // the helper attachSum sends that request
				require.Regexp(t, `"`+a.request+`"|launchNull|\.begin\(|\.disconnect\(|\.evaluated\(|\.scopes\(|\.values\(|\.stack\(`, body, "%s does not ask for %s", a.test, a.request)
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", a.request, answer, a.note)
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	now, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if os.Getenv("README") == "update" {
		require.NoError(t, os.WriteFile(document, []byte(before+begin+table.String()+end+after), 0o644))
		return
	}
	require.Equal(t, table.String(), now, "README=update go test ./test/debug -run TestDAPConformanceTable")
}

// reason returns the reason with which the server always refuses a request, from the server's source.
func reason(t *testing.T, request string) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/debug/dap/server.go")
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^\t"` + request + `": +"(.*)",$`).FindStringSubmatch(string(text))
	if m == nil {
		return "not supported"
	}
	return m[1]
}
