package dap

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-dap"

	"example.com/reframe/internal/check/trace"
)

// differs is the exception filter that stops at exits after which native code and the interpreter differ.
const differs = "differ"

// capabilities returns the capabilities of this server.
func capabilities() dap.Capabilities {
	c := dap.Capabilities{
		SupportsConfigurationDoneRequest:   true,
		SupportsFunctionBreakpoints:        true,
		SupportsConditionalBreakpoints:     true,
		SupportsHitConditionalBreakpoints:  true,
		SupportsEvaluateForHovers:          true,
		SupportsStepBack:                   true,
		SupportsSetVariable:                true,
		SupportsRestartFrame:               true,
		SupportsGotoTargetsRequest:         true,
		SupportsCompletionsRequest:         true,
		CompletionTriggerCharacters:        []string{"%", ".", "["},
		SupportsModulesRequest:             true,
		SupportsValueFormattingOptions:     true,
		SupportsExceptionInfoRequest:       true,
		SupportsDelayedStackTraceLoading:   true,
		SupportsLoadedSourcesRequest:       true,
		SupportsLogPoints:                  true,
		SupportsSetExpression:              true,
		SupportsTerminateRequest:           true,
		SupportsDataBreakpoints:            true,
		SupportsReadMemoryRequest:          true,
		SupportsDisassembleRequest:         true,
		SupportsCancelRequest:              true,
		SupportsBreakpointLocationsRequest: true,
		SupportsClipboardContext:           true,
		SupportsSteppingGranularity:        true,
		SupportsExceptionFilterOptions:     true,
	}
	for _, kind := range trace.SiteKinds {
		c.ExceptionBreakpointFilters = append(c.ExceptionBreakpointFilters, dap.ExceptionBreakpointsFilter{
			Filter: kind, Label: "Exits at " + kind + " sites", Description: "Stops at exits of optimized code at sites of this kind",
			Default: kind == "deoptimize", SupportsCondition: true, ConditionDescription: "%i > 100 && %acc == 0: values of the frame at the exit",
		})
	}
	c.ExceptionBreakpointFilters = append(c.ExceptionBreakpointFilters, dap.ExceptionBreakpointsFilter{Filter: differs, Label: "Native and interpreter differ",
		Description: "At each exit both run to the return of the function, and their results are compared; other breakpoints of native code are ignored meanwhile"})
	return c
}

func (c *conn) initialize(r *dap.InitializeRequest) error {
	if f := r.Arguments.PathFormat; f != "" && f != "path" {
		return fmt.Errorf("pathFormat %q: only \"path\" is supported", f)
	}
	c.initialized, c.client = true, r.Arguments
	if !r.Arguments.LinesStartAt1 {
		c.line0 = 0
	}
	c.respond(&r.Request, &dap.InitializeResponse{Body: capabilities()})
	return nil
}

// open opens the target.
func (c *conn) open(to *dap.Request, raw json.RawMessage, launch bool) (err error) {
	a, err := readArguments(raw)
	if err != nil {
		return err
	}
	if token := c.server.Token; token != "" && subtle.ConstantTimeCompare([]byte(a.Token), []byte(token)) == 0 {
		return errToken
	}
	c.accept()
	o := &Opening{Arguments: a, Launch: launch, Warn: func(text string) { c.say("console", "%s", text) }}
	if launch {
		for _, s := range []struct {
			category string
			stream   **stream
			path     *string
		}{{"stdout", &c.stdout, &o.Stdout}, {"stderr", &c.stderr, &o.Stderr}} {
			is, err := newStream(s.category, c.writer)
			if err != nil {
				return err
			}
			*s.stream, *s.path = is, is.path()
		}
	}
	t, err := c.server.Open(c.ctx, o)
	if err != nil {
		c.drain()
		return err
	}
	for _, s := range []*stream{c.stdout, c.stderr} {
		if s != nil {
			s.write.Close() // the program holds its own descriptor of the pipe
		}
	}
	c.target, c.launched, c.arguments = t, launch, a
	c.threads = []dap.Thread{{Id: max(t.PID, 1), Name: t.Name}}
	if launch {
		c.respond(to, &dap.LaunchResponse{})
	} else {
		c.respond(to, &dap.AttachResponse{})
	}
	c.send(&dap.ProcessEvent{Event: event("process"), Body: dap.ProcessEventBody{Name: t.Name, SystemProcessId: t.PID, IsLocalProcess: true, StartMethod: to.Command}})
	c.send(&dap.InitializedEvent{Event: event("initialized")})
	return nil
}

// drain forwards the remaining output of a program that has ended to the client.
func (c *conn) drain() {
	c.stdout.finish()
	c.stderr.finish()
	c.stdout, c.stderr = nil, nil
}

// configured handles configurationDone: the client has sent all breakpoints, so the target may run.
func (c *conn) configured(r *dap.ConfigurationDoneRequest) error {
	if c.begun {
		return errors.New("configurationDone was already sent")
	}
	c.begun = true
	c.respond(&r.Request, &dap.ConfigurationDoneResponse{})
	entry := !c.launched
	if c.arguments.StopOnEntry != nil {
		entry = *c.arguments.StopOnEntry
	}
	if entry || !c.target.Session.Runs() {
		c.stoppedAt(stopped{reason: "entry"})
		return nil
	}
	c.goOn(r.Seq)
	return nil
}

// disconnect ends the session as the specification requires: a launched process is killed, an attached one continues.
func (c *conn) disconnect(r *dap.DisconnectRequest) {
	if err := c.close(); err != nil {
		c.refuse(&r.Request, err)
		return
	}
	c.respond(&r.Request, &dap.DisconnectResponse{})
}

// close releases the target.
func (c *conn) close() error {
	if c.going != nil {
		c.going.cancel(errAside)
		<-c.going.done
		c.going = nil
	}
	if c.target == nil {
		return nil
	}
	t := c.target
	c.target = nil
	err := t.Close(c.launched)
	c.drain()
	return err
}

// terminate ends a launched program.
func (c *conn) terminate(r *dap.TerminateRequest) error {
	if !c.launched {
		return errors.New("an attached process or a core cannot be terminated: disconnect instead, and the process continues")
	}
	err := c.close()
	if err != nil {
		return err
	}
	c.ended = true
	c.respond(&r.Request, &dap.TerminateResponse{})
	c.send(&dap.TerminatedEvent{Event: event("terminated")})
	return nil
}

// cancelled cancels the execution that a request has started. The server answers all other requests at once, so they need no cancellation.
func (c *conn) cancelled(r *dap.CancelRequest) error {
	if a := cmp.Or(r.Arguments, &dap.CancelArguments{}); c.going != nil && a.RequestId == c.going.request {
		c.going.cancel(errPaused)
	}
	c.respond(&r.Request, &dap.CancelResponse{})
	return nil
}
