package dap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-dap"

	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/condition"
)

// dataBreakpoint stops the interpreter when a value of a function changes. It does not stop native code, in which a value has no fixed place.
type dataBreakpoint struct {
	breakpoint
	function, value string // names without @ and %
}

// dataID returns the identifier of a value of a function.
func dataID(f *ir.Func, value string) string {
	return "@" + f.Name + ":%" + strings.TrimPrefix(value, "%")
}

// dataInfo answers whether a value can be watched.
func (c *conn) dataInfo(r *dap.DataBreakpointInfoRequest) error {
	a := r.Arguments
	var e *entry
	if a.VariablesReference != 0 {
		of, err := c.refs.get(a.VariablesReference)
		if err != nil {
			return err
		}
		if s, ok := of.(*scope); ok && s.kind == valuesScope {
			e = s.entry
		}
	} else {
		var err error
		if e, err = c.entry(a.FrameId); err != nil {
			return err
		}
	}
	body := dap.DataBreakpointInfoResponseBody{}
	f, why := c.functionOf(e)
	switch {
	case why != "":
		body.Description = why
	case f.Value(strings.TrimPrefix(a.Name, "%")) == nil:
		body.Description = fmt.Sprintf("@%s has no value %s", f.Name, a.Name)
	default:
		body.DataId = dataID(f, a.Name)
		body.Description = fmt.Sprintf("%s of @%s, while the interpreter runs", a.Name, f.Name)
		body.AccessTypes, body.CanPersist = []dap.DataBreakpointAccessType{"write"}, true
	}
	c.respond(&r.Request, &dap.DataBreakpointInfoResponse{Body: body})
	return nil
}

// functionOf returns the function whose values the interpreter knows at a line of the backtrace, or the reason why there is none.
func (c *conn) functionOf(e *entry) (*ir.Func, string) {
	switch {
	case e == nil || e.vm >= 0:
		return nil, "only values in the scope Values can be watched, not their parts, registers or values of a virtual machine"
	case e.level.Run != nil:
		return e.level.Run.Func, ""
	}
	if f := e.level.Physical.To(); f != nil {
		return f, ""
	}
	return nil, "the frame does not resume in a function of a module, so the interpreter never has its values"
}

func (c *conn) setData(r *dap.SetDataBreakpointsRequest) error {
	if err := tooMany(len(r.Arguments.Breakpoints)); err != nil {
		return err
	}
	c.data = nil
	body := dap.SetDataBreakpointsResponseBody{Breakpoints: []dap.Breakpoint{}}
	for _, a := range r.Arguments.Breakpoints {
		c.number++
		b := &dataBreakpoint{breakpoint: breakpoint{id: c.number, reason: "data breakpoint"}}
		answer := dap.Breakpoint{Id: b.id}
		err := b.read(a.Condition, a.HitCondition, "")
		k := strings.LastIndex(a.DataId, ":%")
		switch {
		case err != nil:
		case k < 1 || a.DataId[0] != '@':
			err = errors.New("dataId must be from the response to dataBreakpointInfo")
		case a.AccessType != "" && a.AccessType != "write":
			err = fmt.Errorf("access type %q: only \"write\" is supported", a.AccessType)
		}
		if answer.Verified = err == nil; err != nil {
			answer.Message = err.Error()
		} else {
			b.function, b.value = a.DataId[1:k], a.DataId[k+2:]
			c.data = append(c.data, b)
		}
		body.Breakpoints = append(body.Breakpoints, answer)
	}
	c.respond(&r.Request, &dap.SetDataBreakpointsResponse{Body: body})
	return nil
}

// seen is the last state of a watched value, and its activation, identified by the number of frames from the activation to the outermost one.
type seen struct {
	outside int
	known   bool
	text    string
}

// watches returns a function that is called after each instruction and reports whether a watched value has changed.
func (c *conn) watches(run *session.Run) func(at *stopped) bool {
	last := make([]seen, len(c.data))
	look := func(b *dataBreakpoint) seen {
		frames := run.Frames()
		for n, f := range frames {
			if f.Func.Name != b.function {
				continue
			}
			s := seen{outside: len(frames) - n}
			if v, ok := run.Value(n, b.value); ok {
				s.known, s.text = true, v.Value.Format()
			}
			return s
		}
		return seen{}
	}
	for k, b := range c.data {
		last[k] = look(b)
	}
	return func(at *stopped) (stops bool) {
		for k, b := range c.data {
			was, is := last[k], look(b)
			last[k] = is
			if was == is || was.outside != is.outside || !is.known {
				continue
			}
			slots, _ := c.target.Session.SlotsOf(session.Level{}) // no slots if the function's body is unreadable; the run reports that error
			if b.when != nil {
				if holds, _ := b.when.Of(slots); holds != condition.Yes {
					continue
				}
			}
			if b.stops(c.writer, slots) {
				stops = true
				at.ids, at.reason = append(at.ids, b.id), b.reason
				at.description = fmt.Sprintf("%%%s of @%s became %s", b.value, b.function, is.text)
			}
		}
		return stops
	}
}
