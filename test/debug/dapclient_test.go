package debug_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// editor is a client of reframe dap.
type editor struct {
	t      *testing.T
	c      *exec.Cmd // nil for another kind of connection
	in     io.WriteCloser
	seq    int
	come   chan dap.Message
	ended  error
	events []dap.Message // events that no call of event has returned yet
	output map[string]string
	said   *strings.Builder // standard error
}

// edits starts reframe dap with a client.
func edits(t *testing.T) *editor {
	t.Helper()
	c := clitest.Command(t, "dap")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var said strings.Builder
	c.Stderr = &said
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		if c.ProcessState == nil { // the test has failed before it waited
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		if t.Failed() {
			t.Logf("stderr: %s", said.String())
		}
	})
	e := connected(t, in, out)
	e.c, e.said = c, &said
	return e
}

// overSaying waits until reframe has ended with an exit status, and returns its standard error.
func (e *editor) overSaying(status int) string {
	e.t.Helper()
	e.over(status)
	return e.said.String()
}

// connected returns a client that writes requests to in and reads replies from out.
func connected(t *testing.T, in io.WriteCloser, out io.Reader) *editor {
	e := &editor{t: t, in: in, come: make(chan dap.Message, 1000), output: map[string]string{}}
	go func() {
		r := bufio.NewReader(out)
		for {
			m, err := dap.ReadProtocolMessage(r)
			if err != nil {
				e.ended = err
				close(e.come)
				return
			}
			e.come <- m
		}
	}()
	return e
}

// send writes a request and returns its sequence number.
func (e *editor) send(request string, arguments any) int {
	e.t.Helper()
	e.seq++
	m := map[string]any{"seq": e.seq, "type": "request", "command": request}
	if arguments != nil {
		m["arguments"] = arguments
	}
	text, err := json.Marshal(m)
	require.NoError(e.t, err)
	require.NoError(e.t, dap.WriteBaseMessage(e.in, text))
	return e.seq
}

// next returns the next message.
func (e *editor) next() dap.Message {
	e.t.Helper()
	select {
	case m, ok := <-e.come:
		if !ok {
			require.Fail(e.t, "the server is gone", "%v", e.ended)
		}
		if o, ok := m.(*dap.OutputEvent); ok {
			e.output[o.Body.Category] += o.Body.Output
		}
		return m
	case <-time.After(livetest.Patience):
		require.Fail(e.t, "no message came")
	}
	return nil
}

// answer waits for the response to a request.
func (e *editor) answer(seq int) dap.ResponseMessage {
	e.t.Helper()
	for {
		switch m := e.next().(type) {
		case dap.ResponseMessage:
			require.Equal(e.t, seq, m.GetResponse().RequestSeq, "%+v", m)
			return m
		default:
			e.events = append(e.events, m)
		}
	}
}

// ask sends a request and requires that it succeeds.
func ask[R dap.ResponseMessage](e *editor, request string, arguments any) R {
	e.t.Helper()
	m := e.answer(e.send(request, arguments))
	if r, bad := m.(*dap.ErrorResponse); bad {
		require.Fail(e.t, request+" was refused", r.Message)
	}
	require.True(e.t, m.GetResponse().Success)
	require.IsType(e.t, *new(R), m)
	return m.(R)
}

// refused sends a request and requires that it fails with these words.
func (e *editor) refused(request string, arguments any, words ...string) {
	e.t.Helper()
	m := e.answer(e.send(request, arguments))
	r, bad := m.(*dap.ErrorResponse)
	require.True(e.t, bad, "%s: %+v", request, m)
	require.Equal(e.t, request, r.Command)
	require.False(e.t, r.Success)
	require.NotEmpty(e.t, r.Message)
	require.Equal(e.t, r.Message, r.Body.Error.Variables["why"])
	for _, w := range words {
		require.Contains(e.t, r.Message, w)
	}
}

// event waits for an event of a kind.
func event[E dap.EventMessage](e *editor) E {
	e.t.Helper()
	for n, m := range e.events {
		if is, ok := m.(E); ok {
			e.events = e.events[n+1:]
			return is
		}
	}
	e.events = nil
	for {
		m := e.next()
		if is, ok := m.(E); ok {
			return is
		}
	}
}

// stopped waits for a stop with a reason.
func (e *editor) stopped(reason string) dap.StoppedEventBody {
	e.t.Helper()
	at := event[*dap.StoppedEvent](e).Body
	require.Equal(e.t, reason, at.Reason, "%+v", at)
	require.True(e.t, at.AllThreadsStopped)
	return at
}

// begin initializes the session, and opens a target.
func (e *editor) begin(request string, arguments map[string]any) *dap.InitializeResponse {
	e.t.Helper()
	r := ask[*dap.InitializeResponse](e, "initialize", map[string]any{"adapterID": "reframe", "clientID": "test", "supportsInvalidatedEvent": true, "supportsVariableType": true})
	m := e.answer(e.send(request, arguments))
	if bad, ok := m.(*dap.ErrorResponse); ok {
		require.Fail(e.t, request+" was refused", bad.Message)
	}
	event[*dap.InitializedEvent](e)
	return r
}

// disconnect ends the session.
func (e *editor) disconnect() {
	e.t.Helper()
	ask[*dap.DisconnectResponse](e, "disconnect", nil)
	e.over(0)
}

// keepsOn reads messages until the connection ends, and answers each stop with continue or with a step of the interpreter.
func (e *editor) keepsOn(steps bool) {
	request := "continue"
	if steps {
		request = "stepIn"
	}
	go func() {
		for m := range e.come {
			if at, ok := m.(*dap.StoppedEvent); ok {
				e.raw(message(fmt.Sprintf(`{"seq":1000000,"type":"request","command":%q,"arguments":{"threadId":%d}}`, request, at.Body.ThreadId)))
			}
		}
	}()
}

// over requires that reframe ends with an exit status.
func (e *editor) over(status int) {
	e.t.Helper()
	for range e.come { // the remaining messages
	}
	if e.c != nil {
		err := e.c.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			require.NoError(e.t, err)
		}
		require.Equal(e.t, status, e.c.ProcessState.ExitCode())
	}
}

// stack returns the frames of a thread.
func (e *editor) stack(thread int) []dap.StackFrame {
	e.t.Helper()
	return ask[*dap.StackTraceResponse](e, "stackTrace", map[string]any{"threadId": thread}).Body.StackFrames
}

// scopes returns the scopes of a frame, by name.
func (e *editor) scopes(frame int) map[string]int {
	e.t.Helper()
	all := map[string]int{}
	for _, s := range ask[*dap.ScopesResponse](e, "scopes", map[string]any{"frameId": frame}).Body.Scopes {
		require.NotContains(e.t, all, s.Name)
		all[s.Name] = s.VariablesReference
	}
	return all
}

// values returns the children of a variables reference, by name.
func (e *editor) values(reference int) map[string]dap.Variable {
	e.t.Helper()
	all := map[string]dap.Variable{}
	for _, v := range ask[*dap.VariablesResponse](e, "variables", map[string]any{"variablesReference": reference}).Body.Variables {
		require.NotContains(e.t, all, v.Name)
		all[v.Name] = v
	}
	return all
}

// evaluated returns the value of an expression in a frame.
func (e *editor) evaluated(frame int, text string) string {
	e.t.Helper()
	return ask[*dap.EvaluateResponse](e, "evaluate", map[string]any{"expression": text, "frameId": frame, "context": "watch"}).Body.Result
}

// lineOf returns the first frame whose name begins with begin.
func lineOf(t *testing.T, frames []dap.StackFrame, begin string) dap.StackFrame {
	t.Helper()
	for _, f := range frames {
		if strings.HasPrefix(f.Name, begin) {
			return f
		}
	}
	require.Fail(t, "no frame "+begin, "%s", func() (all string) {
		for _, f := range frames {
			all += fmt.Sprintln(f.Name)
		}
		return all
	}())
	return dap.StackFrame{}
}
