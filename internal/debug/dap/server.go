package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/go-dap"

	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
)

// Arguments holds the arguments of a launch or attach request; they correspond to the flags of the other verbs. A list may be a single text.
type Arguments struct {
	Program string            `json:"program"` // launch: the program
	Args    []string          `json:"args"`    // its arguments
	Cwd     string            `json:"cwd"`     // its working directory
	Env     map[string]string `json:"env"`     // variables in addition to those of the server
	Stdin   string            `json:"stdin"`   // the file of its standard input; "" for none

	PID  int    `json:"pid"`  // attach: the id of a process; other adapters call this argument processId, which is also accepted
	Core string `json:"core"` // attach: a core
	// Remote and Delve are the addresses of a debugger that holds a process, as the flags --remote and --delve take them.
	Remote string `json:"remote"`
	Delve  string `json:"delve"`

	IR                texts  `json:"ir"`
	Layout            texts  `json:"layout"`
	Object            texts  `json:"object"`
	Exe               string `json:"exe"`
	Sysroot           string `json:"sysroot"`
	DebugDir          texts  `json:"debugDir"`
	NoSelfDescription bool   `json:"noSelfDescription"`
	TrustIR           bool   `json:"trustIR"` // as in [deopt.Options]
	Steps             uint64 `json:"steps"`
	With              string `json:"with"` // not supported: the session steps only the reference interpreter

	StopOnEntry *bool `json:"stopOnEntry"` // stop before the target runs; if nil, only an attached process stops
	NoDebug     bool  `json:"noDebug"`     // launch: never stop

	Token string `json:"token"` // must equal [Server.Token]
}

// texts is a list of texts; in JSON it may also be a single text.
type texts []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *texts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// readArguments reads the client's arguments for this server. It ignores unknown ones, which belong to the client.
func readArguments(raw json.RawMessage) (a Arguments, err error) {
	var also struct {
		PID json.RawMessage `json:"processId"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		var shape *json.UnmarshalTypeError
		if errors.As(err, &shape) {
			return a, fmt.Errorf("%s is %s: expected %s", shape.Field, shape.Value, shape.Type)
		}
		return a, err
	}
	if a.With != "" {
		return a, errors.New("\"with\" is not supported by dap: use reframe debug --with COMMAND")
	}
	_ = json.Unmarshal(raw, &also) // no error: raw was decoded above
	if a.PID == 0 && len(also.PID) > 0 {
		var text string
		if json.Unmarshal(also.PID, &text) == nil { // an editor's process picker sends a string
			also.PID = json.RawMessage(text)
		}
		if json.Unmarshal(also.PID, &a.PID) != nil {
			return a, fmt.Errorf("processId %s: expected a number", also.PID)
		}
	}
	return a, nil
}

// Opening is the argument of an [Opener].
type Opening struct {
	Arguments
	Launch         bool
	Stdout, Stderr string       // launch: the files to which the program writes
	Warn           func(string) // receives warnings for the user
}

// Target is an opened target.
type Target struct {
	Session *session.Session
	PID     int // 0 for a core
	Name    string
	// Close releases the target: it kills the process or detaches from it. It is called once.
	Close func(kill bool) error
}

// Opener opens the target of a launch or attach request, and returns it stopped.
type Opener func(context.Context, *Opening) (*Target, error)

// Server serves clients, one at a time.
type Server struct {
	Open Opener
	// Token, if it is not empty, must be in the arguments of launch or attach.
	Token string
	// Accepted, if it is not nil, is called once the peer has become a client: its launch or attach request has the token, or it sends a disconnect
	// request.
	Accepted func()
}

// Refused is the error of [Server.Serve] for a peer that never became a client: the peer sent no launch or attach request with the right token. The
// caller may serve the next peer.
type Refused struct {
	Why error // the reason; nil if the peer closed the connection
}

// Error implements error.
func (r *Refused) Error() string {
	if r.Why == nil {
		return "the client disconnected without a launch or attach request"
	}
	return r.Why.Error()
}

// Unwrap returns Why.
func (r *Refused) Unwrap() error { return r.Why }

// errToken is returned for a client without the server's token. It ends the connection.
var errToken = errors.New("\"token\" of the launch configuration is missing or wrong: reframe printed it when it began to listen")

// errDisconnected ends a connection that the client has closed.
var errDisconnected = errors.New("the client disconnected")

// Serve serves one client until it disconnects, its connection ends, or ctx is done; none of these is an error. An attached process then continues,
// and a launched one is killed. The error reports invalid protocol data, or a target that could not be released. It is a [Refused] if the peer opened
// no target.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	outer := ctx
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c := &conn{server: s, ctx: ctx, line0: 1, sources: map[string][]*lineBreakpoint{}}
	c.writer = newWriter(ctx, out, func(error) { end(errDisconnected) })
	messages, wrong := make(chan incoming), make(chan error, 1)
	go func() {
		r := bufio.NewReader(in)
		for {
			content, err := readContent(r)
			var m incoming
			if err == nil {
				m, err = decode(content)
			}
			if err != nil {
				wrong <- err
				select { // a client that has stopped sending may also have stopped reading, and may block the writer
				case <-time.After(unread):
					end(errDisconnected)
				case <-ctx.Done():
				}
				return
			}
			select {
			case messages <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	err := c.loop(messages, wrong)
	if err != nil {
		end(err) // unblocks writers that wait for the client
	}
	err = errors.Join(ignored(err), c.close())
	if !c.accepted && outer.Err() == nil {
		err = &Refused{err}
	}
	close(c.writer.queue)
	select {
	case <-c.writer.done:
	case <-time.After(flushing): // the client does not read
	}
	return err
}

// unread bounds the time that a client may take to read its responses after it has stopped sending. After this time the connection ends.
const unread = 5 * time.Second

// flushing bounds the time for sending the last messages at the end of a connection.
const flushing = time.Second

// ignored returns nil for the errors with which a connection regularly ends, and other errors unchanged.
func ignored(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, errDisconnected) {
		return nil
	}
	return err
}

// conn is one client and its debugging session. The goroutine of loop handles requests. While an execution runs, only the execution uses the session.
type conn struct {
	*writer
	server *Server
	ctx    context.Context
	client dap.InitializeRequestArguments
	line0  int // the number of the client's first line: 0 or 1

	initialized bool
	accepted    bool // [Server.Accepted] was called
	target      *Target
	launched    bool
	arguments   Arguments
	begun       bool // configurationDone was received
	ended       bool // the process has ended
	stdout      *stream
	stderr      *stream

	going *going // the running execution; nil while the target is stopped
	stop  stopped

	files      map[*ir.Module]string // the files with the text of modules; "" for none
	sources    map[string][]*lineBreakpoint
	functions  []*functionBreakpoint
	exceptions []*breakpoint
	data       []*dataBreakpoint
	differ     bool
	number     int // number of the last breakpoint

	threads []dap.Thread // the last known threads
	refs    references
}

// loop serves requests until the client disconnects, the connection fails or ctx is done. It returns an error only for a failed or closed connection.
func (c *conn) loop(messages <-chan incoming, wrong <-chan error) error {
	for {
		var done chan outcome
		if c.going != nil {
			done = c.going.done
		}
		select {
		case <-c.ctx.Done():
			if cause := context.Cause(c.ctx); errors.Is(cause, errDisconnected) {
				return errDisconnected
			}
			return nil
		case err := <-wrong:
			return err
		case o := <-done:
			c.came(o)
		case m := <-messages:
			if last := c.serve(&m); last {
				return nil
			}
		}
	}
}

// serve handles one message, and reports whether the session is over after it.
func (c *conn) serve(m *incoming) (last bool) {
	if m.asked.Type != "request" {
		return false // a response: the server sends no requests
	}
	if m.wrong != nil {
		c.refuse(&m.asked, m.wrong)
		return false
	}
	if err := c.early(m.Message); err != nil {
		c.refuse(&m.asked, err)
		return false
	}
	if r, ok := m.Message.(*dap.DisconnectRequest); ok {
		if c.server.Token == "" {
			c.accept()
		}
		c.disconnect(r)
		return true
	}
	if why := refused[m.asked.Command]; why != "" {
		c.refuse(&m.asked, errors.New(why))
		return false
	}
	if err := c.answer(m.Message, &m.asked); err != nil {
		c.refuse(&m.asked, err)
		return errors.Is(err, errToken)
	}
	return false
}

// accept marks the peer as a client.
func (c *conn) accept() {
	if !c.accepted && c.server.Accepted != nil {
		c.server.Accepted()
	}
	c.accepted = true
}

// refused lists the requests of the specification that are never supported, with the reason.
var refused = map[string]string{
	"restart":                   "not supported: terminate the session, and launch the program again",
	"terminateThreads":          "not supported: terminate ends a launched program with all its threads",
	"stepInTargets":             "not supported: a call of the interpreter has one target, which stepIn enters",
	"setInstructionBreakpoints": "not supported, because native code stops only at exits: set a breakpoint on a line of the IR, on a function, or on a kind of site",
	"writeMemory":               "not supported, because the target does not change: set a value for the interpreter instead",
	"runInTerminal":             "not supported: adapters send this request to clients",
	"startDebugging":            "not supported: adapters send this request to clients",
}

// early returns an error for a request that is sent too early, or sent twice.
func (c *conn) early(m dap.Message) error {
	command := m.(dap.RequestMessage).GetRequest().Command
	switch command {
	case "initialize":
		if c.initialized {
			return errors.New("initialize was already sent")
		}
		return nil
	case "disconnect", "cancel":
		return nil
	}
	switch {
	case !c.initialized:
		return fmt.Errorf("%s before initialize, which must be the first request", command)
	case refused[command] != "":
		return nil
	case command == "launch" || command == "attach":
		if c.target != nil {
			return errors.New("the session already has a target: disconnect, and start a new session")
		}
	case c.target == nil && c.ended:
		return errors.New("the process has ended")
	case c.target == nil:
		return fmt.Errorf("%s requires a target: send launch or attach first", command)
	}
	return nil
}

// answer answers a request.
func (c *conn) answer(m dap.Message, to *dap.Request) error {
	switch r := m.(type) {
	case *dap.InitializeRequest:
		return c.initialize(r)
	case *dap.LaunchRequest:
		return c.open(to, r.Arguments, true)
	case *dap.AttachRequest:
		return c.open(to, r.Arguments, false)
	case *dap.ConfigurationDoneRequest:
		return c.configured(r)
	case *dap.TerminateRequest:
		return c.terminate(r)
	case *dap.CancelRequest:
		return c.cancelled(r)
	case *dap.PauseRequest:
		return c.pause(r)
	case *dap.ThreadsRequest:
		return c.listThreads(r)
	case *dap.SetBreakpointsRequest, *dap.SetFunctionBreakpointsRequest, *dap.SetExceptionBreakpointsRequest, *dap.SetDataBreakpointsRequest:
		return c.aside(func() error { return c.setBreakpoints(m) })
	}
	// The following requests need a stopped target, or check the state of the target themselves.
	switch r := m.(type) {
	case *dap.SourceRequest:
		return c.source(r)
	case *dap.BreakpointLocationsRequest:
		return c.locations(r)
	}
	if err := c.stands(); err != nil {
		return err
	}
	switch r := m.(type) {
	case *dap.LoadedSourcesRequest:
		return c.loadedSources(r)
	case *dap.ModulesRequest:
		return c.modules(r)
	case *dap.StackTraceRequest:
		return c.stackTrace(r)
	case *dap.ScopesRequest:
		return c.scopes(r)
	case *dap.VariablesRequest:
		return c.variables(r)
	case *dap.SetVariableRequest:
		return c.setVariable(r)
	case *dap.SetExpressionRequest:
		return c.setExpression(r)
	case *dap.EvaluateRequest:
		return c.evaluate(r)
	case *dap.CompletionsRequest:
		return c.completions(r)
	case *dap.ExceptionInfoRequest:
		return c.exceptionInfo(r)
	case *dap.DataBreakpointInfoRequest:
		return c.dataInfo(r)
	case *dap.ReadMemoryRequest:
		return c.readMemory(r)
	case *dap.DisassembleRequest:
		return c.disassemble(r)
	case *dap.GotoTargetsRequest:
		return c.gotoTargets(r)
	}
	return c.move(m, to)
}

// stands returns an error unless the target is stopped.
func (c *conn) stands() error {
	switch {
	case c.ended:
		return errors.New("the process has ended")
	case c.going != nil && c.going.native:
		return errors.New("the process is running: pause it first")
	case c.going != nil:
		return errors.New("the interpreter is running: pause it first")
	}
	return nil
}
