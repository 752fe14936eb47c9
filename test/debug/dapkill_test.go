package debug_test

import (
	"bufio"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// farewell is a way to end a session, by a signal or by the client.
type farewell struct {
	name string
	tcp  bool
	end  func(t *testing.T, e *editor)
}

func farewells() (list []farewell) {
	for _, w := range clitest.Endings[:8] { // signals to reframe and to its process group
		// An error means that it has ended.
		list = append(list, farewell{w.Name, false, func(_ *testing.T, e *editor) { _ = w.End(clitest.Watching{Cmd: e.c, Reader: nil, Terminal: nil}) }})
	}
	gone := func(_ *testing.T, e *editor) { e.in.Close() }
	return append(list,
		farewell{"input closed", false, gone},
		farewell{"connection dropped", true, gone},
		farewell{"half a message", false, func(t *testing.T, e *editor) {
			e.raw("Content-Length: 1000\r\n\r\n{")
			gone(t, e)
		}},
		farewell{"disconnect", false, func(_ *testing.T, e *editor) {
			e.raw(message(`{"seq":1000001,"type":"request","command":"disconnect"}`))
		}},
	)
}

// doing is the editor's activity at the time when the session ends.
type doing struct {
	name    string
	filters map[string]any
	stands  bool // the session stays at its first exit, where the interpreter is stepped
}

// An editor continues after each exit, stays at the first exit, sets a condition that no exit meets, or compares each exit with the interpreter.
var doings = []doing{
	{"stops", map[string]any{"filters": []string{"stackmap", "patchpoint", "statepoint", "deoptimize", "unknown"}}, false},
	{"stands", map[string]any{"filters": []string{"stackmap", "patchpoint", "statepoint", "deoptimize", "unknown"}}, true},
	{"looks", map[string]any{"filters": []string{}, "filterOptions": []map[string]any{{"filterId": "stackmap", "condition": "#0 != #0"}, {"filterId": "statepoint", "condition": "#0 != #0"}, {"filterId": "deoptimize", "condition": "#0 != #0"}}}, false},
	{"compares", map[string]any{"filters": []string{"differ"}}, false},
}

// TestDAPKilled requires that an attached process finishes normally, however and whenever the session ends. No bytes of a breakpoint and no tracer
// may remain. A launched program must be killed. With FIDELITY=all every victim is combined with every way to end a session, otherwise with a twelfth
// of them.
func TestDAPKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	// As in TestWatcherKilled, orphaned tracers become children of this process.
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	random := rand.New(rand.NewPCG(22, 2))
	killed, compared := 0, 0
	for n, v := range clitest.Victims {
		for m, w := range farewells() {
			for k, doing := range doings {
				halfway := v.Options.Middle != ""
				if doing.name == "compares" && halfway || doing.name == "stops" && halfway { // these combinations would run for too long
					continue
				}
				if livetest.Out(12, n+m+k) { // each way and each victim is still tested several times
					continue
				}
				pause := time.Duration(random.IntN(150)) * time.Millisecond
				t.Run(doing.name+", "+v.Name+", "+w.name, func(t *testing.T) {
					killed += 2
					if leaveAttached(t, v, w, doing, pause, !halfway) {
						compared++
					}
					leaveLaunched(t, v, w, doing, pause)
				})
			}
		}
	}
	t.Logf("%d sessions were ended; the code of %d processes was compared", killed, compared)
	require.Greater(t, compared, 4)
}

// session starts a session with reframe, through pipes or a connection.
func (w *farewell) session(t *testing.T) *editor {
	t.Helper()
	if !w.tcp {
		return edits(t)
	}
	c := clitest.Command(t, "dap", "--listen", "127.0.0.1:0")
	said, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	conn, err := net.Dial("tcp", strings.TrimSpace(strings.TrimPrefix(line, "listening on ")))
	require.NoError(t, err)
	e := connected(t, conn, conn)
	e.c = c
	return e
}

// ended waits until reframe and its tracer have exited.
func (w *farewell) ended(t *testing.T, e *editor, tracing int) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	clitest.Watching{Cmd: e.c, Reader: null, Terminal: nil}.Over(t, tracing)
}

// leaveAttached ends a session with an attached process. compared reports whether the process's code was compared with a copy from before the
// session.
func leaveAttached(t *testing.T, v clitest.Victim, w farewell, d doing, pause time.Duration, stop bool) (compared bool) {
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, v.Program, "-O2"), v.Options)
	code := clitest.ExecutableMemory(t, p.PID)
	e := w.session(t)
	e.begin("attach", map[string]any{"pid": p.PID, "ir": livetest.IR(t, 19, v.Program), "stopOnEntry": false})
	tracing := clitest.TracerOf(p.PID)
	require.Positive(t, tracing)
	ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", d.filters)
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	e.keepsOn(d.stands)
	begin()
	time.Sleep(pause)
	w.end(t, e)
	if stop {
		_ = unix.Kill(p.PID, unix.SIGSTOP) // an error means that it has ended
	}
	w.ended(t, e, tracing)
	compared = stop && clitest.RequireRestored(t, p.PID, code)
	_ = unix.Kill(p.PID, unix.SIGCONT)
	require.NoError(t, p.Wait(), p.Output())
	clitest.RequireFinished(t, v, p.Output())
	return compared
}

// leaveLaunched ends a session that has launched a program.
func leaveLaunched(t *testing.T, v clitest.Victim, w farewell, d doing, pause time.Duration) {
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, v.Program, "-O2"), v.Options)
	e := w.session(t)
	ask[*dap.InitializeResponse](e, "initialize", map[string]any{"adapterID": "reframe"})
	ask[*dap.LaunchResponse](e, "launch", map[string]any{"program": host[0], "args": host[1:], "ir": livetest.IR(t, 19, v.Program)})
	process := event[*dap.ProcessEvent](e).Body.SystemProcessId
	tracing := clitest.TracerOf(process)
	ask[*dap.SetExceptionBreakpointsResponse](e, "setExceptionBreakpoints", d.filters)
	ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
	e.keepsOn(d.stands)
	time.Sleep(pause)
	w.end(t, e)
	w.ended(t, e, tracing)
	require.Eventually(t, func() bool { return clitest.Ended(process) }, livetest.Patience, time.Millisecond, "it lives on")
}
