package dap

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-dap"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
)

// going is a running execution of the process or of the interpreter. Until the execution ends, only its goroutine may use the session.
type going struct {
	request int // the number of the request that started the execution
	native  bool
	cancel  context.CancelCauseFunc
	done    chan outcome
}

// outcome is the result of an execution.
type outcome struct {
	native   bool
	stop     session.Stop
	verified *verify.Verified // the exit after which native code and the interpreter differ
	err      error
	stopped  stopped // the stop of the interpreter
}

// These are the reasons for the cancellation of an execution.
var (
	errPaused = errors.New("paused")
	errAside  = errors.New("for something else") // cancelled by the method aside, which resumes the process afterwards
)

// stopped describes the place and the reason of a stop of the target.
type stopped struct {
	reason      string
	description string
	text        string
	ids         []int // the breakpoints that were hit
	exit        *frame.Frame
	verified    *verify.Verified
}

// begin starts an execution.
func (c *conn) begin(request int, native bool, f func(ctx context.Context) outcome) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	g := &going{request, native, cancel, make(chan outcome, 1)}
	c.going = g
	c.refs.clear()
	go func() {
		o := f(ctx)
		o.native = native
		cancel(nil)
		g.done <- o
	}()
}

// goOn resumes the process.
func (c *conn) goOn(request int) {
	s := c.target.Session
	c.begin(request, true, func(ctx context.Context) (o outcome) {
		if c.differ && !c.arguments.NoDebug {
			o.stop, o.verified, o.err = s.Differ(ctx)
		} else {
			o.stop, o.err = s.Continue(ctx)
		}
		return o
	})
}

// came reports the outcome of a finished execution to the client.
func (c *conn) came(o outcome) {
	request := c.going.request
	c.going = nil
	c.logged()
	if !o.native {
		if o.err != nil && !errors.Is(o.err, errPaused) {
			c.say("important", "%v", o.err)
		}
		c.stoppedAt(o.stopped)
		return
	}
	switch {
	case o.err != nil:
		c.say("important", "%v", o.err)
		if _, err := c.target.Session.Target(); err != nil {
			c.over(session.Stop{Why: session.Ended})
			return
		}
		c.stoppedAt(stopped{reason: "pause", text: o.err.Error()})
	case o.stop.Why == session.Ended:
		c.over(o.stop)
	case o.stop.Why == session.Different:
		text := o.verified.Exit.Frame.Title() + ": native code and the interpreter differ"
		c.stoppedAt(stopped{reason: "exception", description: "Native and interpreter differ", text: text, verified: o.verified, exit: &o.verified.Exit.Frame.Frame})
	case o.stop.Why == session.AtExit:
		c.atExit(o.stop.Breakpoint, request)
	default:
		c.stoppedAt(stopped{reason: "pause"})
	}
}

// over reports to the client that the process has ended.
func (c *conn) over(stop session.Stop) {
	c.ended = true
	c.drain()
	code := stop.End.ExitCode
	if stop.End.Signal != 0 {
		code = 128 + stop.End.Signal // the exit status that a shell shows
	}
	c.send(&dap.ExitedEvent{Event: event("exited"), Body: dap.ExitedEventBody{ExitCode: code}})
	c.send(&dap.TerminatedEvent{Event: event("terminated")})
}

// atExit reports to the client the breakpoint at which the process is stopped.
func (c *conn) atExit(hit *session.Breakpoint, request int) {
	at := stopped{reason: "breakpoint"}
	if level, err := c.target.Session.Level(); err == nil && level.Physical != nil {
		at.exit, at.text = &level.Physical.Frame, level.Physical.Title()
	}
	for _, b := range c.all() {
		if b.number != hit.Number {
			continue
		}
		at.ids = append(at.ids, b.id)
		if at.reason = b.reason; b.reason == "exception" {
			at.description = "Exit at a " + b.filter + " site"
		}
	}
	c.stoppedAt(at)
}

// stoppedAt reports to the client that all threads are stopped, with the reason.
func (c *conn) stoppedAt(at stopped) {
	c.stop = at
	c.refs.clear()
	thread := c.threads[0].Id
	if list, err := c.target.Session.Threads(); err == nil {
		c.threads = nil
		for _, t := range list {
			c.threads = append(c.threads, dap.Thread{Id: t.ID, Name: t.Name})
		}
	} else {
		c.say("important", "%v", err)
	}
	if t, err := c.target.Session.Thread(); err == nil {
		thread = t.ID
	}
	c.learned()
	c.send(&dap.StoppedEvent{Event: event("stopped"), Body: dap.StoppedEventBody{Reason: at.reason, Description: at.description, Text: at.text, ThreadId: thread,
		AllThreadsStopped: true, HitBreakpointIds: at.ids}})
}

// pause stops the execution under way.
func (c *conn) pause(r *dap.PauseRequest) error {
	c.respond(&r.Request, &dap.PauseResponse{})
	if c.going != nil {
		c.going.cancel(errPaused)
	}
	return nil
}

// aside runs f while the process is stopped. It pauses a running process first, and resumes it afterwards.
func (c *conn) aside(f func() error) error {
	if c.going == nil {
		return f()
	}
	if !c.going.native {
		return errors.New("the interpreter is running: pause it first")
	}
	request := c.going.request
	c.going.cancel(errAside)
	o := <-c.going.done
	if o.err != nil || o.stop.Why != session.Interrupted { // the process stopped for another reason
		err := f()
		c.came(o)
		return err
	}
	c.going = nil
	err := f()
	c.goOn(request)
	return err
}

// move resumes the process or moves the interpreter, for the continue, step and goto requests.
func (c *conn) move(m dap.Message, to *dap.Request) error {
	s := c.target.Session
	if r, ok := m.(*dap.ContinueRequest); ok && s.Runs() {
		c.respond(to, &dap.ContinueResponse{Body: dap.ContinueResponseBody{AllThreadsContinued: true}})
		c.goOn(r.Seq)
		return nil
	}
	if f, ok := m.(*dap.RestartFrameRequest); ok {
		e, err := c.entry(f.Arguments.FrameId)
		if err != nil {
			return err
		}
		if err := c.choose(e); err != nil {
			return err
		}
	}
	if err := c.thread(m); err != nil {
		return err
	}
	if g, ok := m.(*dap.GotoRequest); ok && g.Arguments.TargetId != exitTarget {
		return fmt.Errorf("target %d not found; gotoTargets lists the targets", g.Arguments.TargetId)
	}
	run, was := s.Run(), s.Run() != nil
	if !was {
		switch m.(type) {
		case *dap.StepBackRequest, *dap.ReverseContinueRequest, *dap.GotoRequest:
			return errors.New("the interpreter has not run since the exit: use next, stepIn or stepOut first")
		}
		var err error
		if run, err = s.Resume(); err != nil {
			return fmt.Errorf("the interpreter cannot continue from here: %w", err)
		}
	}
	at, response := stopped{reason: "step"}, dap.ResponseMessage(nil)
	var f func(ctx context.Context) error
	switch m.(type) {
	case *dap.NextRequest:
		response, f = &dap.NextResponse{}, func(ctx context.Context) error {
			depth := len(run.Frames())
			if err := run.Step(ctx, 1); err != nil || ended(run) || len(run.Frames()) <= depth {
				return err
			}
			return c.out(ctx, run, depth, &at)
		}
	case *dap.StepInRequest:
		response, f = &dap.StepInResponse{}, func(ctx context.Context) error { return run.Step(ctx, 1) }
	case *dap.StepOutRequest:
		response, f = &dap.StepOutResponse{}, func(ctx context.Context) error { return c.out(ctx, run, len(run.Frames())-1, &at) }
	case *dap.StepBackRequest:
		response, f = &dap.StepBackResponse{}, func(ctx context.Context) error { return run.Back(ctx, 1) }
	case *dap.ReverseContinueRequest:
		response, f = &dap.ReverseContinueResponse{}, func(ctx context.Context) error { return c.reverse(ctx, run, &at) }
	case *dap.RestartFrameRequest:
		at.reason = "restart"
		response, f = &dap.RestartFrameResponse{}, func(context.Context) error { return run.Restart() }
	case *dap.GotoRequest:
		at.reason = "goto"
		response, f = &dap.GotoResponse{}, func(context.Context) error { return run.Restart() }
	case *dap.ContinueRequest:
		response, f = &dap.ContinueResponse{}, func(ctx context.Context) error { return c.interpret(ctx, run, &at) }
	default:
		return fmt.Errorf("request %q is not supported", to.Command)
	}
	c.respond(to, response)
	c.interpreter(to.Seq, run, &at, f)
	return nil
}

// choose selects the frame at whose exit the interpreter starts. It discards a run from another frame.
func (c *conn) choose(e *entry) error {
	f := e.level.Physical
	if f == nil || f.Record == nil {
		return nil
	}
	s := c.target.Session
	s.LeaveRun()
	if err := s.SetThread(e.thread); err != nil {
		return err
	}
	return s.SetLevel(f.Index)
}

// thread selects the thread of a step request, at its innermost exit, unless that thread is already selected.
func (c *conn) thread(m dap.Message) error {
	id := 0
	switch r := m.(type) {
	case *dap.NextRequest:
		id = r.Arguments.ThreadId
	case *dap.StepInRequest:
		id = r.Arguments.ThreadId
	case *dap.StepOutRequest:
		id = r.Arguments.ThreadId
	}
	if is, err := c.target.Session.Thread(); id == 0 || err == nil && is.ID == id {
		return err
	}
	return c.target.Session.SetThread(id)
}

// interpreter starts an execution in which f moves the interpreter. It then prints the new output of the interpreted program.
func (c *conn) interpreter(request int, run *session.Run, at *stopped, f func(context.Context) error) {
	printed := len(run.Output())
	c.begin(request, false, func(ctx context.Context) (o outcome) {
		if o.err = f(ctx); errors.Is(o.err, errPaused) {
			at.reason, at.description = "pause", "Canceled: the interpreter has not moved"
		}
		if out := run.Output(); len(out) > printed {
			c.print("stdout", out[printed:])
		}
		at.text = c.endOf(run)
		o.stopped = *at
		return o
	})
}

// endOf prints how a run of the interpreter has ended, and returns the text. It returns "" for a run that can continue.
func (c *conn) endOf(run *session.Run) string {
	text := ""
	switch result, err := run.Ended(); {
	case err != nil:
		text = "the interpreter cannot continue: " + err.Error()
	case result == nil:
		return ""
	case result.ExitCode != nil:
		text = fmt.Sprintf("the interpreter reached the end of the program: status %d", *result.ExitCode)
	case result.Value.IsNone():
		text = "the interpreter has returned"
	default:
		text = fmt.Sprintf("the interpreter has returned %s %s", result.Type, result.Value.Format())
	}
	c.say("console", "%s, after %d instructions", text, run.Steps())
	return text
}

// out runs the interpreter until at most frames activations are left, or to a breakpoint if that is reached first.
func (c *conn) out(ctx context.Context, run *session.Run, frames int, at *stopped) error {
	lines := c.lines()
	for list := instrs(lines); ; {
		if err := run.UntilAny(ctx, list, frames); err != nil || ended(run) || len(run.Frames()) <= frames || c.reached(run, lines, at) {
			return err
		}
	}
}

// instrs returns the instructions of places.
func instrs(lines []place) (list []*ir.Instr) {
	for _, l := range lines {
		list = append(list, l.instr)
	}
	return list
}

// interpret runs the interpreter to the next breakpoint, or to the end.
func (c *conn) interpret(ctx context.Context, run *session.Run, at *stopped) error {
	at.reason = "breakpoint"
	lines := c.lines()
	for list := instrs(lines); ; {
		var err error
		if len(c.data) > 0 {
			watch := c.watches(run)
			err = run.Watch(ctx, func() bool { return watch(at) || c.reached(run, lines, at) })
		} else if err = run.UntilAny(ctx, list, 0); err == nil && !ended(run) && !c.reached(run, lines, at) {
			continue
		}
		if ended(run) && err == nil {
			at.reason = "step"
		}
		return err
	}
}

// reverse runs the interpreter backwards to the last breakpoint, or to the exit. It ignores conditions of breakpoints.
func (c *conn) reverse(ctx context.Context, run *session.Run, at *stopped) error {
	return run.BackUntil(ctx, instrs(c.lines()))
}

func ended(run *session.Run) bool {
	result, err := run.Ended()
	return result != nil || err != nil
}

// exitTarget is the id of the only goto target: the exit.
const exitTarget = 1

// gotoTargets answers with the exit, the only target of goto.
func (c *conn) gotoTargets(r *dap.GotoTargetsRequest) error {
	var body dap.GotoTargetsResponseBody
	body.Targets = []dap.GotoTarget{}
	if run := c.target.Session.Run(); run != nil {
		t := dap.GotoTarget{Id: exitTarget, Label: "the exit, where the interpreter began", Line: r.Arguments.Line}
		body.Targets = append(body.Targets, t)
	}
	c.respond(&r.Request, &dap.GotoTargetsResponse{Body: body})
	return nil
}
