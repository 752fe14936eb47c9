package dap

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/google/go-dap"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/machine/names"
)

// maxReferences bounds the references that are issued between two stops.
const maxReferences = 1 << 20

// references holds the objects that a client may request until the target resumes: frames, scopes, and values with parts. Each number is issued only
// once.
type references struct {
	first  int // list[k] has the reference number first+1+k
	list   []any
	stacks map[int][]*entry // by thread
}

// clear invalidates all references.
func (r *references) clear() {
	r.first += len(r.list)
	r.list, r.stacks = nil, nil
}

// add returns a new reference number, or 0 if there are too many.
func (r *references) add(v any) int {
	if len(r.list) >= maxReferences {
		return 0
	}
	r.list = append(r.list, v)
	return r.first + len(r.list)
}

// get returns the object of a reference number.
func (r *references) get(number int) (any, error) {
	k := number - r.first - 1
	switch {
	case number > 0 && k < 0:
		return nil, fmt.Errorf("reference %d is from an earlier stop: request the stack trace again", number)
	case k < 0 || k >= len(r.list):
		return nil, fmt.Errorf("reference %d not found", number)
	}
	return r.list[k], nil
}

// entry is a line of a stack trace: a function in the interpreter, a physical frame, or a virtual machine's frame in a physical frame.
type entry struct {
	id     int
	thread int
	level  session.Level
	vm     int // the number of the virtual machine's frame, from the innermost one; -1 for none
}

// entry finds a frame by its number; 0 is the selected frame.
func (c *conn) entry(id int) (*entry, error) {
	if id == 0 {
		t, err := c.target.Session.Thread()
		if err != nil {
			return nil, err
		}
		at, err := c.target.Session.Level()
		if err != nil {
			return nil, err
		}
		return &entry{thread: t.ID, level: at, vm: -1}, nil
	}
	is, err := c.refs.get(id)
	if err != nil {
		return nil, err
	}
	if e, ok := is.(*entry); ok {
		return e, nil
	}
	return nil, fmt.Errorf("reference %d is not a frame", id)
}

func (c *conn) listThreads(r *dap.ThreadsRequest) error {
	c.respond(&r.Request, &dap.ThreadsResponse{Body: dap.ThreadsResponseBody{Threads: c.threads}})
	return nil
}

// stack lists the frames of a thread, each physical frame followed by the frames of the virtual machine in it.
func (c *conn) stack(thread int) ([]*entry, error) {
	if list := c.refs.stacks[thread]; list != nil {
		return list, nil
	}
	levels, err := c.target.Session.LevelsOf(thread)
	if err != nil {
		return nil, err
	}
	var list []*entry
	add := func(l session.Level, vm int) {
		e := &entry{thread: thread, level: l, vm: vm}
		e.id = c.refs.add(e)
		list = append(list, e)
	}
	for _, l := range levels {
		add(l, -1)
		if l.Physical != nil && l.Physical.VM != nil {
			for n := range l.Physical.VM.Frames {
				add(l, n)
			}
		}
	}
	if c.refs.stacks == nil {
		c.refs.stacks = map[int][]*entry{}
	}
	c.refs.stacks[thread] = list
	return list, nil
}

func (c *conn) stackTrace(r *dap.StackTraceRequest) error {
	list, err := c.stack(r.Arguments.ThreadId)
	if err != nil {
		return err
	}
	body := dap.StackTraceResponseBody{StackFrames: []dap.StackFrame{}, TotalFrames: len(list)}
	a := r.Arguments
	if a.StartFrame < 0 || a.Levels < 0 {
		return fmt.Errorf("startFrame %d and levels %d: must be 0 or more", a.StartFrame, a.Levels)
	}
	list = list[min(a.StartFrame, len(list)):]
	if a.Levels > 0 {
		list = list[:min(a.Levels, len(list))]
	}
	for _, e := range list {
		body.StackFrames = append(body.StackFrames, c.shown(e))
	}
	c.respond(&r.Request, &dap.StackTraceResponse{Body: body})
	return nil
}

// shown returns a frame in the form of the protocol.
func (c *conn) shown(e *entry) dap.StackFrame {
	s := dap.StackFrame{Id: e.id}
	f := e.level.Physical
	switch {
	case e.level.Run != nil:
		s.Name = "@" + names.Short(e.level.Run.Func.Name) + " (interpreter)"
		s.CanRestart = true
	case e.vm >= 0:
		vm := &f.VM.Frames[e.vm]
		s.Name = cmp.Or(vm.Method, "unknown method")
		if vm.Position != nil {
			s.Name += fmt.Sprintf(" @%d", *vm.Position)
		}
		s.Name += " (" + vm.Resume + ")"
		c.position(&s, vm.Info)
		return s
	default:
		s.Name = cmp.Or(names.Short(f.Function), string(f.PC))
		if f.Offset != nil && f.Function != "" {
			s.Name += fmt.Sprintf("+%#x", *f.Offset)
		}
		if s.InstructionPointerReference = string(f.PC); f.Kind == frame.Native {
			s.PresentationHint = "subtle"
		}
		if f.Record != nil {
			s.CanRestart = true
			s.Name += fmt.Sprintf(" (%s, %s)", f.Record.Site, f.Record.Moment)
		}
	}
	if at := e.level.Place(); at != nil {
		s.Source = c.sourceOf(at.Block.Func.Module)
		s.Line, s.Column = at.Line-1+c.line0, c.column()
	} else if f != nil && len(f.Source) > 0 {
		s.Source, s.Line, s.Column = fileOf(f.Source[0].File), f.Source[0].Line-1+c.line0, c.column()
	}
	if s.Source == nil {
		s.Line, s.Column = 0, 0
	}
	return s
}

// column returns the number of the client's first column: 0 or 1.
func (c *conn) column() int {
	if c.client.ColumnsStartAt1 {
		return 1
	}
	return 0
}

// position sets the source position of a virtual machine's frame from the info of its layout: file or source, and line.
func (c *conn) position(s *dap.StackFrame, info map[string]string) {
	line, err := strconv.Atoi(info["line"])
	file := cmp.Or(info["file"], info["source"])
	if err != nil || file == "" {
		return
	}
	s.Source, s.Line, s.Column = fileOf(file), line-1+c.line0, c.column()
}

// fileOf returns a source file of the program, with its path if the file exists.
func fileOf(file string) *dap.Source {
	if file == "" {
		return nil
	}
	s := &dap.Source{Name: filepath.Base(file)}
	if is, err := os.Stat(file); filepath.IsAbs(file) && err == nil && is.Mode().IsRegular() {
		s.Path = file
	} else {
		s.Origin, s.PresentationHint = "not here: "+file, "deemphasize"
	}
	return s
}

// The scopes of a frame.
const (
	valuesScope    = "Values"
	localsScope    = "VM locals"
	operandsScope  = "Operand stack"
	monitorsScope  = "Monitors"
	objectsScope   = "Objects"
	registersScope = "Registers"
	recordScope    = "Record"
	runScope       = "Run"
)

// scope is a scope of a frame, such as its registers.
type scope struct {
	*entry
	kind string
}

func (c *conn) scopes(r *dap.ScopesRequest) error {
	e, err := c.entry(r.Arguments.FrameId)
	if err != nil {
		return err
	}
	var kinds []string
	f := e.level.Physical
	vm := func(n int) []string {
		list := []string{localsScope, operandsScope}
		if len(f.VM.Frames[n].Monitors) > 0 {
			list = append(list, monitorsScope)
		}
		if len(f.VM.Objects) > 0 {
			list = append(list, objectsScope)
		}
		return list
	}
	switch {
	case f == nil:
		kinds = []string{valuesScope, runScope}
	case e.vm >= 0:
		kinds = vm(e.vm)
	default:
		if len(f.Slots) > 0 {
			kinds = append(kinds, valuesScope)
		}
		if f.VM != nil && len(f.VM.Frames) > 0 {
			kinds = append(kinds, vm(0)...)
		}
		kinds = append(kinds, registersScope)
		if f.Record != nil {
			kinds = append(kinds, recordScope)
		}
	}
	body := dap.ScopesResponseBody{Scopes: []dap.Scope{}}
	for _, kind := range kinds {
		s := dap.Scope{Name: kind, VariablesReference: c.refs.add(&scope{e, kind})}
		switch kind {
		case registersScope:
			s.PresentationHint, s.Expensive = "registers", true
		case valuesScope, localsScope:
			s.PresentationHint = "locals"
		}
		if list, err := c.inScope(&scope{e, kind}); err == nil {
			s.NamedVariables = len(list)
		}
		body.Scopes = append(body.Scopes, s)
	}
	c.respond(&r.Request, &dap.ScopesResponse{Body: body})
	return nil
}

// renew replaces the frames by those of the new view after a value was set. The issued numbers of physical frames stay valid.
func (c *conn) renew() {
	s := c.target.Session
	if s.Run() != nil {
		c.refs.clear()
		return
	}
	for _, is := range c.refs.list {
		e, ok := is.(*entry)
		if !ok || e.level.Physical == nil {
			continue
		}
		levels, err := s.LevelsOf(e.thread)
		k := slices.IndexFunc(levels, func(l session.Level) bool {
			return l.Physical != nil && l.Physical.Index == e.level.Physical.Index
		})
		if err == nil && k >= 0 {
			e.level = levels[k]
		}
	}
}
