package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Child is a running interpreter. Only one goroutine may use it.
type Child struct {
	Command string // as the user gave it
	About   About

	log   func(line []byte, sent bool) // called with each line that is sent or received, unless it is nil
	cmd   *exec.Cmd
	in    *os.File // the interpreter's standard input
	out   *os.File // the interpreter's standard output
	lines *lines
	exits chan struct{} // closed when the process has ended and cmd has its status
	last  int           // id of the last request
	ended error         // the reason why the child cannot be used any more
	asked string        // the request that has no answer yet
}

// Error is a mistake of an interpreter, with the message that has it.
type Error struct {
	Command string
	Message string // "its answer to resume (id 2)", "memory.read (id 7)"; "" if no message is at fault
	Err     error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Command, e.Message, e.Err)
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// closeWithin is the time in which an interpreter must end once its input is closed.
const closeWithin = 2 * time.Second

// Spec selects the interpreter to start, and how.
type Spec struct {
	Command string // a command for sh -c
	Hello   Hello
	Errors  io.Writer // its standard error
	Dir     string    // working directory; "": that of this process
	Env     []string  // environment; nil: that of this process

	// Log is called for each line that is sent or received, unless it is nil. sent reports whether reframe sent it.
	Log func(line []byte, sent bool)
}

// Start starts an interpreter and sends initialize. Errors are [*Error]s, except for those of ctx.
func Start(ctx context.Context, s Spec) (*Child, error) {
	c := &Child{Command: s.Command, log: s.Log, cmd: exec.Command("/bin/sh", "-c", s.Command)}
	c.cmd.Dir, c.cmd.Env = s.Dir, s.Env
	c.cmd.Stderr = s.Errors
	grouped(c.cmd)
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, its, err := os.Pipe()
	if err != nil {
		theirs.Close()
		in.Close()
		return nil, err
	}
	c.cmd.Stdin, c.cmd.Stdout, c.in, c.out = theirs, its, in, out
	c.cmd.WaitDelay = closeWithin // for descendants of the interpreter that still hold its standard error
	err = c.cmd.Start()
	theirs.Close() // so that only the command holds these ends of the pipes
	its.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, &Error{Command: s.Command, Err: err}
	}
	c.exits = make(chan struct{})
	go func() {
		_ = c.cmd.Wait() // ProcessState has its status
		close(c.exits)
	}()
	c.lines = readLines(out)
	s.Hello.Protocol = Version
	raw, err := c.must(ctx, "initialize", s.Hello, nil)
	if err == nil {
		err = c.broken(c.answer(), c.met(raw))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// met reads the answer to initialize.
func (c *Child) met(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, &c.About); err != nil {
		return err
	}
	if c.About.Protocol != Version {
		return fmt.Errorf("it speaks %.40q; expected %q", c.About.Protocol, Version)
	}
	return nil
}

// answer describes the pending answer.
func (c *Child) answer() string { return fmt.Sprintf("its answer to %s (id %d)", c.asked, c.last) }

// broken ends the interpreter because of err, unless it is nil.
func (c *Child) broken(message string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{c.Command, message, err}
	c.end(e, true)
	return e
}

// end ends the process. now kills it at once, because it violated the protocol.
func (c *Child) end(why error, now bool) (forced bool) {
	if c.ended != nil {
		return false
	}
	c.ended = why
	c.in.Close()
	if !now {
		select {
		case <-c.exits:
		case <-time.After(closeWithin):
			forced = true
		}
	}
	endGroup(c.cmd) // including descendants that are still running
	<-c.exits
	c.lines.end()
	c.out.Close()
	return forced
}

// Close ends the interpreter by closing its input. It reports whether the interpreter had to be killed, because it did not end in time.
func (c *Child) Close() (forced bool) {
	if c != nil {
		forced = c.end(errors.New("it was ended"), false)
	}
	return forced
}

// gone returns the reason why no more lines will arrive. It waits briefly for the process, to report its exit status.
func (c *Child) gone() error {
	why := c.lines.why()
	if why != io.EOF {
		return why
	}
	return c.over("it has closed its output")
}

// over returns an error with the exit status of the interpreter if it has ended. Otherwise the error has the text said, which describes the event
// that made the caller suspect the end of the interpreter.
func (c *Child) over(said string) error {
	select {
	case <-c.exits:
		said = "it has ended (" + c.cmd.ProcessState.String() + ")"
		if c.cmd.ProcessState.ExitCode() == 127 {
			said += ": sh has not found it"
		}
	case <-time.After(closeWithin):
	}
	return errors.New(said)
}

// send writes a line.
func (c *Child) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if c.log != nil {
		c.log(line, true)
	}
	_, err = c.in.Write(append(line, '\n'))
	if errors.Is(err, syscall.EPIPE) {
		return c.over("it has closed its input")
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent
	}
	return err
}

var errSilent = errors.New("it does not read its input")

// receive waits for a line.
func (c *Child) receive(ctx context.Context) ([]byte, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		line, more := c.lines.next()
		if line != nil || !more {
			if line == nil {
				return nil, c.gone()
			}
			if c.log != nil {
				c.log(line, false)
			}
			return line, nil
		}
		select {
		case <-c.lines.ready:
		case <-ctx.Done():
		}
	}
}

// Ended reports whether the child cannot be used any more.
func (c *Child) Ended() bool { return c == nil || c.ended != nil }

// Ask sends any request, during which the interpreter may not make requests. If the interpreter answers with an error, Ask returns it as a
// [*Failure], and the interpreter can still be used.
func (c *Child) Ask(ctx context.Context, method string, params any) error {
	_, err := c.call(ctx, method, params, nil)
	return err
}

// Notify sends a notification, which has no answer.
func (c *Child) Notify(method string) error {
	if c.ended != nil {
		return c.ended
	}
	return c.broken(method, c.send(message{Version: "2.0", Method: method}))
}

// must calls a method that the interpreter must support.
func (c *Child) must(ctx context.Context, method string, params any, serve *serving) (json.RawMessage, error) {
	raw, err := c.call(ctx, method, params, serve)
	if failure := (*Failure)(nil); c.ended == nil && errors.As(err, &failure) {
		err = c.broken(c.answer(), err)
	}
	return raw, err
}

// call sends a request and serves the interpreter's requests until the interpreter answers, also with a [Failure]. If serve is nil, the interpreter
// may make no requests.
func (c *Child) call(ctx context.Context, method string, params any, serve *serving) (json.RawMessage, error) {
	if c.ended != nil {
		return nil, c.ended
	}
	c.last++
	c.asked = method
	stop := context.AfterFunc(ctx, func() { _ = c.in.SetWriteDeadline(time.Now()) })
	defer stop()
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if line, _ := c.lines.next(); line != nil {
		return nil, c.broken(fmt.Sprintf("%.60q", line), errors.New("it came before a request"))
	}
	if err := c.send(message{Version: "2.0", ID: json.RawMessage(strconv.Itoa(c.last)), Method: method, Params: raw}); err != nil {
		return nil, c.late(ctx, c.answer(), err)
	}
	for {
		line, err := c.receive(ctx)
		if err != nil {
			return nil, c.late(ctx, c.answer(), err)
		}
		result, done, err := c.take(ctx, line, serve)
		if err != nil || done {
			return result, err
		}
	}
}

// late returns the error for a timeout or cancellation while a message was awaited or written.
func (c *Child) late(ctx context.Context, message string, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
	case !errors.Is(cause, context.DeadlineExceeded): // the user canceled it
		c.end(cause, true)
		return cause
	case !errors.Is(err, errSilent) || message == c.answer():
		err = fmt.Errorf("it did not arrive in time: %w", cause)
	}
	return c.broken(message, err)
}

// take handles a line: an answer, a request, or a batch.
func (c *Child) take(ctx context.Context, line []byte, serve *serving) (result json.RawMessage, done bool, err error) {
	trimmed := strings.TrimLeft(string(line[:min(len(line), 16)]), " \t\r")
	if strings.HasPrefix(trimmed, "[") {
		return nil, false, c.batch(ctx, line, serve)
	}
	m, err := parse(line)
	if err != nil {
		return nil, false, c.broken(fmt.Sprintf("%.60q", line), err)
	}
	if m.Method == "" {
		result, err := c.answered(m)
		return result, true, err
	}
	if answer, err := c.request(m, serve); err != nil {
		return nil, false, err
	} else if answer != nil {
		if err := c.send(answer); err != nil {
			return nil, false, c.late(ctx, "the answer to "+named(m), err)
		}
	}
	return nil, false, nil
}

func (c *Child) batch(ctx context.Context, line []byte, serve *serving) error {
	about := fmt.Sprintf("%.60q", line)
	var list []json.RawMessage
	if err := json.Unmarshal(line, &list); err != nil {
		return c.broken(about, fmt.Errorf("not JSON: %w", err))
	}
	if len(list) == 0 {
		return c.broken(about, errors.New("an empty batch"))
	}
	var answers []*message
	for _, text := range list {
		m, err := parse(text)
		if err == nil && m.Method == "" {
			err = errors.New("an answer in a batch; reframe sends no batches")
		}
		if err != nil {
			return c.broken(fmt.Sprintf("%.60q", text), err)
		}
		answer, err := c.request(m, serve)
		if err != nil {
			return err
		}
		if answer != nil {
			answers = append(answers, answer)
		}
	}
	if answers == nil {
		return nil
	}
	if err := c.send(answers); err != nil {
		return c.late(ctx, "the answer to a batch", err)
	}
	return nil
}

// parse parses one message.
func parse(line []byte) (*message, error) {
	m := &message{}
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("not a message: %w", err)
	}
	if m.Version != "2.0" {
		return nil, errors.New(`not a message of JSON-RPC 2.0: "jsonrpc" is not "2.0"`)
	}
	if m.Method != "" && (m.Result != nil || m.Error != nil) {
		return nil, errors.New("both a request and an answer")
	}
	return m, nil
}

// named returns the name of a request, for messages.
func named(m *message) string {
	if m.ID == nil {
		return fmt.Sprintf("%.40s", m.Method)
	}
	return fmt.Sprintf("%.40s (id %.20s)", m.Method, m.ID)
}

// answered handles an answer. It returns an error unless the answer is for the pending request.
func (c *Child) answered(m *message) (json.RawMessage, error) {
	id, err := strconv.Atoi(string(m.ID))
	switch {
	case err != nil:
		return nil, c.broken("an answer", fmt.Errorf("its id is %.40q; ids of reframe are numbers", m.ID))
	case id != c.last:
		why := "no request has this id"
		if id > 0 && id < c.last {
			why = "it is a second answer"
		}
		return nil, c.broken(fmt.Sprintf("an answer with the id %d", id), errors.New(why))
	case m.Error != nil:
		return nil, m.Error
	case m.Result == nil:
		return nil, c.broken(c.answer(), errors.New("it has neither result nor error"))
	}
	return m.Result, nil
}

// Resume runs the interpreter from frames, over a host. It returns an [*Error], after which the interpreter has ended, or the error of ctx.
func (c *Child) Resume(ctx context.Context, r *Resume, h *Host) (*Answer, error) {
	a, err := c.Hand(ctx, r, h)
	if err == nil {
		err = c.broken(c.answer(), r.Stop.kept(a))
	}
	if err == nil {
		a.Tail = a.Tail[max(0, len(a.Tail)-r.Tail):]
		return a, nil
	}
	return nil, err
}

// Hand is [Child.Resume] with an arbitrary request.
func (c *Child) Hand(ctx context.Context, params any, h *Host) (*Answer, error) {
	serve := &serving{host: h, progress: h.Progress}
	raw, err := c.must(ctx, "resume", params, serve)
	if err != nil {
		return nil, err
	}
	var wire answer
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, c.broken(c.answer(), err)
	}
	a, err := wire.read()
	if err != nil {
		return nil, c.broken(c.answer(), err)
	}
	a.Requests, a.Output, a.Allocated = serve.requests, serve.output.String(), h.Memory.Allocated()
	return a, nil
}
