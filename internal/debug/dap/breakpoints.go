package dap

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-dap"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
)

// lineBreakpoint is a breakpoint on a line of a module.
type lineBreakpoint struct {
	breakpoint
	asked  dap.SourceBreakpoint
	source dap.Source
	instr  *ir.Instr // the interpreter stops before it; nil if no module has the line
}

// functionBreakpoint is a breakpoint on a function: on its native calls, and on its entry in the interpreter.
type functionBreakpoint struct {
	breakpoint
	pattern *names.Pattern
}

// place is an instruction at which the interpreter stops.
type place struct {
	instr *ir.Instr
	*breakpoint
}

// all lists the line, function and exception breakpoints, which can stop native code.
func (c *conn) all() (list []*breakpoint) {
	for _, of := range c.sources {
		for _, b := range of {
			list = append(list, &b.breakpoint)
		}
	}
	for _, b := range c.functions {
		list = append(list, &b.breakpoint)
	}
	return append(list, c.exceptions...)
}

// lines lists the instructions at which breakpoints stop the interpreter.
func (c *conn) lines() (list []place) {
	for _, of := range c.sources {
		for _, b := range of {
			if b.instr != nil {
				list = append(list, place{b.instr, &b.breakpoint})
			}
		}
	}
	for _, b := range c.functions {
		for _, m := range c.target.Session.Modules() {
			for _, f := range m.Funcs {
				if f.Declared() || b.pattern == nil || !b.pattern.Match(f.Name) {
					continue
				}
				if blocks, err := f.Body(); err == nil {
					list = append(list, place{runnable(blocks[0].Instrs[0]), &b.breakpoint})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b place) int { return a.id - b.id })
	return list
}

// runnable returns the instruction itself, or for a phi the first instruction after it that is not a phi, because a run never stops before a phi.
func runnable(i *ir.Instr) *ir.Instr {
	for i.Op == ir.OpPhi && i.Index+1 < len(i.Block.Instrs) {
		i = i.Block.Instrs[i.Index+1]
	}
	return i
}

// reached reports whether the interpreter is at a breakpoint that stops it, and adds that breakpoint to at.
func (c *conn) reached(run *session.Run, lines []place, at *stopped) (stops bool) {
	frames := run.Frames()
	if len(frames) == 0 {
		return false
	}
	for _, l := range lines {
		if l.instr != frames[0].At {
			continue
		}
		slots, err := c.target.Session.SlotsOf(session.Level{Run: &frames[0]})
		if err != nil {
			c.say("important", "%v", err)
		}
		if l.when != nil {
			if is, _ := l.when.Of(slots); is != condition.Yes {
				continue
			}
		}
		if l.stops(c.writer, slots) {
			at.ids, at.reason, stops = append(at.ids, l.id), l.reason, true
		}
	}
	return stops
}

// set adds a breakpoint to the session, so that native code stops at it.
func (c *conn) set(b *breakpoint, to session.Breakpoint) error {
	if c.arguments.NoDebug {
		return nil
	}
	to.If = b.when
	to.Meant = func(x *trace.Exited) bool {
		if x.Frame == nil {
			return b.stops(c.writer, nil)
		}
		return b.stops(c.writer, x.Frame.Facts())
	}
	set, err := c.target.Session.Break(to)
	if err == nil {
		b.number = set.Number
	}
	return err
}

// drop deletes the session's breakpoint.
func (c *conn) drop(b *breakpoint) {
	if b.number != 0 {
		c.target.Session.Delete(b.number)
	}
}

// setBreakpoints replaces all breakpoints of one kind.
func (c *conn) setBreakpoints(m dap.Message) error {
	switch r := m.(type) {
	case *dap.SetBreakpointsRequest:
		return c.setLines(r)
	case *dap.SetFunctionBreakpointsRequest:
		return c.setFunctions(r)
	case *dap.SetExceptionBreakpointsRequest:
		return c.setExceptions(r)
	case *dap.SetDataBreakpointsRequest:
		return c.setData(r)
	}
	return nil
}

// maxBreakpoints bounds the breakpoints of one request.
const maxBreakpoints = 10_000

func tooMany(n int) error {
	if n > maxBreakpoints {
		return fmt.Errorf("%d breakpoints: at most %d are supported", n, maxBreakpoints)
	}
	return nil
}

func (c *conn) setLines(r *dap.SetBreakpointsRequest) error {
	asked := r.Arguments.Breakpoints
	if asked == nil {
		for _, line := range r.Arguments.Lines { // older clients send Lines
			asked = append(asked, dap.SourceBreakpoint{Line: line})
		}
	}
	if err := tooMany(len(asked)); err != nil {
		return err
	}
	key := fmt.Sprintf("%d %s", r.Arguments.Source.SourceReference, r.Arguments.Source.Path)
	for _, b := range c.sources[key] {
		c.drop(&b.breakpoint)
	}
	delete(c.sources, key)
	body := dap.SetBreakpointsResponseBody{Breakpoints: []dap.Breakpoint{}}
	for _, a := range asked {
		c.number++
		b := &lineBreakpoint{breakpoint: breakpoint{id: c.number, reason: "breakpoint"}, asked: a, source: r.Arguments.Source}
		answer := c.resolve(b)
		c.sources[key] = append(c.sources[key], b)
		body.Breakpoints = append(body.Breakpoints, answer)
	}
	c.respond(&r.Request, &dap.SetBreakpointsResponse{Body: body})
	return nil
}

// resolve finds the instruction at which a line breakpoint stops, and returns the breakpoint in the form of the protocol.
func (c *conn) resolve(b *lineBreakpoint) dap.Breakpoint {
	answer := dap.Breakpoint{Id: b.id, Line: b.asked.Line, Source: &b.source}
	refuse := func(err error) dap.Breakpoint {
		answer.Message = err.Error()
		return answer
	}
	if err := b.read(b.asked.Condition, b.asked.HitCondition, b.asked.LogMessage); err != nil {
		return refuse(err)
	}
	m, err := c.module(&b.source)
	if path := b.source.Path; err != nil && path != "" && !slices.Contains([]string{".ll", ".bc"}, filepath.Ext(path)) && b.number == 0 {
		line, failed := condition.Line(path, b.asked.Line-c.line0+1)
		if failed == nil {
			failed = c.set(&b.breakpoint, session.Breakpoint{VM: line})
		}
		if answer.Verified = failed == nil; answer.Verified {
			answer.Message = "native code stops at exits whose info has this file and line"
			return answer
		}
	}
	if err != nil {
		return refuse(err)
	}
	instr, err := instructionAt(m, b.asked.Line-c.line0+1)
	if err != nil {
		return refuse(err)
	}
	site, err := siteFrom(instr)
	if err != nil {
		return refuse(err)
	}
	b.instr = runnable(instr)
	answer.Verified = true
	if site == nil {
		answer.Line = instr.Line - 1 + c.line0
		answer.Message = "only the interpreter stops here: native code has no site from here to the end of the block"
		return answer
	}
	b.instr = site.Instr
	answer.Line = site.Instr.Line - 1 + c.line0
	if err := c.set(&b.breakpoint, session.Breakpoint{ExitFilter: trace.ExitFilter{Records: site.IDs()}, Line: site.Instr}); err != nil {
		b.instr, answer.Verified = nil, false
		return refuse(err)
	}
	answer.Message = fmt.Sprintf("native code and the interpreter stop at this %s", site.Kind)
	return answer
}

// instructionAt returns the first instruction of a function at a line of a module or after it.
func instructionAt(m *ir.Module, line int) (*ir.Instr, error) {
	var in *ir.Func
	for _, f := range m.Funcs {
		if !f.Declared() && f.Line <= line && (in == nil || f.Line > in.Line) {
			in = f
		}
	}
	if in == nil {
		return nil, fmt.Errorf("line %d is not in a function of %s", line, m.Name)
	}
	blocks, err := in.Body()
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		for _, i := range b.Instrs {
			if i.Line >= line {
				return i, nil
			}
		}
	}
	return nil, fmt.Errorf("line %d is after the last instruction of @%s", line, in.Name)
}

// siteFrom returns the first site of a block at an instruction or after it, or nil.
func siteFrom(i *ir.Instr) (*ir.Site, error) {
	sites, err := i.Block.Func.Sites()
	if err != nil {
		return nil, err
	}
	var first *ir.Site
	for _, s := range sites {
		if s.Instr.Block == i.Block && s.Instr.Index >= i.Index && (first == nil || s.Instr.Index < first.Instr.Index) {
			first = s
		}
	}
	return first, nil
}

// learned resolves the pending breakpoints whose module is now known.
func (c *conn) learned() {
	for _, of := range c.sources {
		for _, b := range of {
			if b.instr != nil {
				continue
			}
			if _, err := c.module(&b.source); err != nil {
				continue
			}
			if answer := c.resolve(b); answer.Verified {
				c.send(&dap.BreakpointEvent{Event: event("breakpoint"), Body: dap.BreakpointEventBody{Reason: "changed", Breakpoint: answer}})
			}
		}
	}
}

func (c *conn) setFunctions(r *dap.SetFunctionBreakpointsRequest) error {
	if err := tooMany(len(r.Arguments.Breakpoints)); err != nil {
		return err
	}
	for _, b := range c.functions {
		c.drop(&b.breakpoint)
	}
	c.functions = nil
	body := dap.SetFunctionBreakpointsResponseBody{Breakpoints: []dap.Breakpoint{}}
	for _, a := range r.Arguments.Breakpoints {
		c.number++
		b := &functionBreakpoint{breakpoint: breakpoint{id: c.number, reason: "function breakpoint"}}
		answer := dap.Breakpoint{Id: b.id}
		err := b.read(a.Condition, a.HitCondition, "")
		var to session.Breakpoint
		if place, is := condition.Place(a.Name); is {
			b.pattern, to.VM = nil, place
		} else if err == nil {
			b.pattern, err = names.Exact(strings.TrimPrefix(a.Name, "@"))
			to.At = b.pattern
		}
		if err == nil {
			err = c.set(&b.breakpoint, to)
		}
		if answer.Verified = err == nil; err != nil {
			answer.Message = err.Error()
		} else {
			c.functions = append(c.functions, b)
		}
		body.Breakpoints = append(body.Breakpoints, answer)
	}
	c.respond(&r.Request, &dap.SetFunctionBreakpointsResponse{Body: body})
	return nil
}

func (c *conn) setExceptions(r *dap.SetExceptionBreakpointsRequest) error {
	asked := r.Arguments.FilterOptions
	if err := tooMany(len(asked) + len(r.Arguments.Filters)); err != nil {
		return err
	}
	if len(r.Arguments.ExceptionOptions) > 0 {
		return fmt.Errorf("exceptionOptions are not supported: use filters or filterOptions")
	}
	for _, b := range c.exceptions {
		c.drop(b)
	}
	c.exceptions, c.differ = nil, false
	var body dap.SetExceptionBreakpointsResponseBody
	for k := range len(r.Arguments.Filters) + len(asked) {
		var a dap.ExceptionFilterOptions
		if n := len(r.Arguments.Filters); k < n {
			a.FilterId = r.Arguments.Filters[k]
		} else {
			a = asked[k-n]
		}
		c.number++
		b := &breakpoint{id: c.number, reason: "exception", filter: a.FilterId}
		answer := dap.Breakpoint{Id: b.id}
		err := b.read(a.Condition, "", "")
		switch {
		case err != nil:
		case a.FilterId == differs && a.Condition != "":
			err = fmt.Errorf("filter %s cannot have a condition", differs)
		case a.FilterId == differs && !c.target.Session.Runs():
			err = fmt.Errorf("cannot compare with native code in %s, which does not run", c.target.Session.Still())
		case a.FilterId == differs:
			c.differ = true
		case !slices.Contains(trace.SiteKinds, a.FilterId):
			err = fmt.Errorf("unknown filter %.40q; expected one of %s, %s", a.FilterId, strings.Join(trace.SiteKinds, ", "), differs)
		default:
			if err = c.set(b, session.Breakpoint{ExitFilter: trace.ExitFilter{Sites: []string{a.FilterId}}}); err == nil {
				c.exceptions = append(c.exceptions, b)
			}
		}
		if answer.Verified = err == nil; err != nil {
			answer.Message = err.Error()
		}
		body.Breakpoints = append(body.Breakpoints, answer)
	}
	c.respond(&r.Request, &dap.SetExceptionBreakpointsResponse{Body: body})
	return nil
}
