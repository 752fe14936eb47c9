package protocheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
)

// Schema names the JSON of a [Report].
const Schema = "reframe.protocol/v1"

// Status is the result of a check.
type Status string

// The results of a check.
const (
	Kept   Status = "kept"
	Broken Status = "broken"
	Not    Status = "not-tried"
)

// Result is the outcome of one check.
type Result struct {
	Check  string `json:"check"` // its name, which is stable
	What   string `json:"what"`  // what the protocol requires
	Status Status `json:"status"`
	Why    string `json:"why,omitempty"` // the violation, why it was not tried, or a remark

	General bool `json:"-"` // the check was not run, for a reason that applies to many checks
}

// Report holds the results of all checks.
type Report struct {
	Schema      string   `json:"schema"`
	Command     string   `json:"command"`
	Interpreter string   `json:"interpreter,omitempty"` // name that the interpreter gives
	Checks      []Result `json:"checks"`
	Broken      int      `json:"broken"`
	Exit        *Exit    `json:"exit,omitempty"` // absent if the user gave no exit, or the interpreter did not resume it
}

// Exit holds the interpreter's result for the exit, and the numbers of its steps, requests, memory accesses and allocated bytes.
type Exit struct {
	Frames    int    `json:"frames"`
	Objects   int    `json:"objects"`
	Outcome   string `json:"outcome"`
	Steps     uint64 `json:"steps"`
	Requests  int    `json:"requests"` // each is a round trip, unless the interpreter does not wait for the answer
	Ranges    int    `json:"ranges"`   // ranges of memory that it read
	Again     int    `json:"again"`    // number of these ranges that it had read before and not written since
	Writes    int    `json:"writes"`
	Allocated uint64 `json:"allocated"` // bytes
}

// Moment is an exit: the request for its frames, and the target at that time.
type Moment struct {
	Request *protocol.Resume
	Memory  machine.Memory
	Maps    []machine.Mapping // in ascending order
	Symbol  func(name string) (at machine.Addr, size uint64, ok bool)
}

// Options describe the run.
type Options struct {
	Command string
	Hello   protocol.Hello
	Moment  *Moment       // the exit; nil: run only checks that need no exit
	Timeout time.Duration // time limit for each answer
	Errors  io.Writer     // the interpreter's standard error
	Log     func(line []byte, sent bool)
}

// Run runs the checks in order and calls each with every result. It returns an error of ctx or of each. An interpreter that does not answer
// initialize fails a check; this is not an error of Run.
func Run(ctx context.Context, o Options, each func(*Result) error) (*Report, error) {
	c := &checker{ctx: ctx, o: o, report: &Report{Schema: Schema, Command: o.Command}}
	defer func() { c.child.Close() }()
	for _, check := range checks {
		r := Result{Check: check.name, What: check.what, Status: Kept}
		switch {
		case c.dead != "":
			r.Status, r.Why, r.General = Not, c.dead, true
		case check.exit && o.Moment == nil:
			r.Status, r.Why, r.General = Not, "no exit was given: PID or CORE, and --layout unless the target contains one", true
		case check.exit && c.report.Exit == nil && check.name != exitCheck:
			r.Status, r.Why, r.General = Not, "the check of the exit failed", true
		default:
			if c.alone {
				c.child.Close()
			}
			said, err := check.try(c)
			if cause := context.Cause(ctx); cause != nil {
				return c.report, cause
			}
			var not untried
			switch {
			case errors.As(err, &not):
				r.Status, r.Why = Not, string(not)
			case err != nil:
				r.Status, r.Why = Broken, c.without(err)
				c.report.Broken++
			default:
				r.Why = said
			}
			if r.Status == Broken && check.name == greeting && c.child.Ended() {
				c.dead = "it ended during initialize"
			}
		}
		c.report.Checks = append(c.report.Checks, r)
		if err := each(&r); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

// untried is the error of a check that does not apply.
type untried string

func (u untried) Error() string { return string(u) }

// checker is a run in progress.
type checker struct {
	ctx    context.Context
	o      Options
	report *Report
	child  *protocol.Child
	dead   string // the reason why no more checks are tried
	alone  bool   // start a new interpreter for each check, because an earlier request changes the result

	first   *ran // the first run of the exit
	sending traffic
}

// without returns the text of an error, without the command of the interpreter.
func (c *checker) without(err error) string {
	var e *protocol.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Err)
}

// running returns the interpreter. It starts another one if the last has ended.
func (c *checker) running() (*protocol.Child, error) {
	if !c.child.Ended() {
		return c.child, nil
	}
	ctx, cancel := c.bounded()
	defer cancel()
	var err error
	c.child, err = protocol.Start(ctx, protocol.Spec{Command: c.o.Command, Hello: c.o.Hello, Errors: c.o.Errors, Log: func(line []byte, sent bool) {
		if !sent {
			c.sending.see(line)
		}
		if c.o.Log != nil {
			c.o.Log(line, sent)
		}
	}})
	return c.child, err
}

func (c *checker) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, c.o.Timeout)
}

// ask sends a request to which only an error is a valid answer.
func (c *checker) ask(method string, params any) error {
	child, err := c.running()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	return child.Ask(ctx, method, params)
}

// ran is the result of one resume.
type ran struct {
	answer *protocol.Answer
	memory *protocol.Overlay
}

// hand sends a resume request. It returns an error if the interpreter violates the protocol.
func (c *checker) hand(params any, h *protocol.Host) (*ran, error) {
	child, err := c.running()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.bounded()
	defer cancel()
	a, err := child.Hand(ctx, params, h)
	if err != nil {
		return nil, err
	}
	return &ran{a, h.Memory}, nil
}

// refused returns the reason with which the answer refuses the request, or "".
func (r *ran) refused() string {
	switch {
	case r.answer.Unsupported != "":
		return "unsupported: " + r.answer.Unsupported
	case r.answer.Malformed != "":
		return "malformed: " + r.answer.Malformed
	}
	return ""
}

// outcome describes the answer in a line.
func (r *ran) outcome() string {
	why, a := r.refused(), r.answer
	switch {
	case why != "":
		return "says " + why
	case a.Threw == nil:
		return returned(a.Returned)
	case !a.Returns:
		return fmt.Sprintf("threw %q", a.Threw.Text)
	}
	return fmt.Sprintf("threw %q, %s", a.Threw.Text, returned(a.Returned))
}

func returned(v *protocol.Native) string {
	switch {
	case v == nil:
		return "returned nothing"
	case v.Text == "":
		return fmt.Sprintf("returned %s %s", v.Type, v.Bits)
	}
	return fmt.Sprintf("returned %s %s (%s)", v.Type, v.Bits, v.Text)
}

// host returns a host for a moment, without the writes of earlier runs.
func (c *checker) host(m *Moment) *protocol.Host {
	return &protocol.Host{Memory: protocol.NewOverlay(m.Memory, m.Maps, c.o.Hello.Pointer), Symbol: m.Symbol}
}

// empty is a target without memory and symbols.
var empty = Moment{Memory: unreadable{}, Symbol: noSymbol}

type unreadable struct{}

func (unreadable) ReadMemory(_ []byte, addr machine.Addr) error {
	return fmt.Errorf("%v is not mapped", addr)
}

func noSymbol(string) (machine.Addr, uint64, bool) { return 0, 0, false }

// copyOf returns a request as a map that can be changed.
func copyOf(r *protocol.Resume) (map[string]any, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // offsets may have more bits than a float64
	err = d.Decode(&out)
	return out, err
}
