package handover

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/protocol"
)

// Stack holds physical frames of one thread, innermost first, whose VM frames are passed to the interpreter as one stack.
type Stack struct {
	View   *deopt.View
	Thread *deopt.Thread
	Frames []*deopt.Frame
	// Returned is the result of the call for which the innermost VM frame waits; nil if the result is unknown, or if the call returned nothing and Came
	// is set.
	Returned *protocol.Native
	Came     bool
	// End is the reason why the caller of the last frame is not included. It is "" if callers were not requested.
	End string
}

// Pick returns the innermost frame with VM frames, or the chosen frame, followed by the requested callers.
func Pick(v *deopt.View, c deopt.Choice) (*Stack, error) {
	var missing error // the reason of the first frame that cannot be selected, or of the chosen frame
	for i := range v.Threads {
		t := &v.Threads[i]
		for at, f := range t.Frames {
			chosen := c.Numbered() && c.Is(t, f) || c.Function != nil && !c.Numbered()
			if !c.Is(t, f) || c.Function != nil && !c.Function.Match(f.Function) {
				continue
			}
			if f.VM == nil || f.VM.Error != "" || f.Interprets() {
				if err := noVMFrames(f); err != nil && (missing == nil || chosen) {
					missing = err
				}
				continue
			}
			s := &Stack{View: v, Thread: t, Frames: []*deopt.Frame{f}}
			if err := certain(f, c.Force); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Title(), err)
			}
			return s, s.extend(t.Frames[at+1:], c)
		}
	}
	switch {
	case missing != nil:
	case c.Numbered():
		missing = fmt.Errorf("there is no frame %d; %s", c.Number(), v.HowMany())
	case c.Function != nil:
		missing = fmt.Errorf("no frame of %s has a stack map record%s", c.Function.Text, v.NearFunction(c.Function))
	case v.Records() == 0:
		missing = errors.New(v.WhyNone())
	default:
		missing = errors.New("no layout has VM frames for any record; use --layout")
	}
	return nil, fmt.Errorf("%w: %w", deopt.ErrNoFrame, missing)
}

// noVMFrames returns an error with the reason why a frame with a record has no VM frames. It returns nil for a frame without a record, unless
// the VM's interpreter runs in it.
func noVMFrames(f *deopt.Frame) error {
	switch {
	case f.Interprets():
		return fmt.Errorf("%s: it is a frame of the VM's interpreter, which is running; only frames of compiled code can be resumed", f.Title())
	case f.VM != nil:
		return fmt.Errorf("%s: %s", f.Title(), f.VM.Error)
	case f.Record == nil:
		return nil
	}
	return fmt.Errorf("%s: no layout has VM frames for record %d; use --layout", f.Title(), f.Record.ID)
}

// certain returns an error if the VM frames of a physical frame are not certain. force accepts a frame that is a guess.
func certain(f *deopt.Frame, force bool) error {
	why := f.Uncertain()
	switch {
	case why != "" && !force:
		return fmt.Errorf("it is a guess: %s; resume it anyway with --force", why)
	case why != "":
		return nil
	}
	if why = f.VM.Lacks(); why != "" {
		return errors.New(why)
	}
	return nil
}

// extend adds callers up to the chosen frame, or all callers that can resume together.
func (s *Stack) extend(callers []*deopt.Frame, c deopt.Choice) error {
	if c.To == 0 {
		return nil
	}
	for _, f := range callers {
		if last := s.Frames[len(s.Frames)-1].Index; last == c.To {
			return nil
		}
		switch {
		case f.VM == nil || f.VM.Error != "":
			s.End = f.Title() + " has no VM frames"
		case f.Interprets():
			s.End = f.Title() + " is a frame of the VM's interpreter"
		case f.VM.Frames[0].Resume != frame.Calling:
			s.End = f.Title() + " has no pending call"
		default:
			if err := certain(f, c.Force); err != nil {
				s.End = err.Error()
			}
		}
		if s.End != "" {
			break
		}
		s.Frames = append(s.Frames, f)
	}
	last := s.Frames[len(s.Frames)-1]
	if last.Index == c.To {
		return nil
	}
	if s.End == "" {
		s.End = last.Title() + " is the last known frame"
	}
	if c.To > 0 {
		return fmt.Errorf("%w up to frame #%d: %s", deopt.ErrNoFrame, c.To, s.End)
	}
	return nil
}

// Request returns the message that passes the frames to the interpreter.
func (s *Stack) Request() (*protocol.Resume, error) {
	r := &protocol.Resume{Returned: s.Returned}
	var first int64 // added to the ids of a frame's objects, because each physical frame numbers its own objects
	for _, f := range s.Frames {
		shift, most := first, int64(-1)
		for i := range f.VM.Frames {
			is, err := s.frameOf(&f.VM.Frames[i], shift)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Title(), err)
			}
			r.Frames = append(r.Frames, *is)
		}
		for i := range f.VM.Objects {
			o := &f.VM.Objects[i]
			is := protocol.Object{ID: o.ID + shift, Class: o.Class, Bits: wordOf(o.ClassBits), Fields: []protocol.Field{}}
			for k := range o.Fields {
				v, err := s.valueOf(&o.Fields[k].VMValue, shift)
				if err != nil {
					return nil, fmt.Errorf("%s: object %d: %w", f.Title(), o.ID, err)
				}
				is.Fields = append(is.Fields, protocol.Field{At: o.Fields[k].At, Value: v})
			}
			r.Objects, most = append(r.Objects, is), max(most, o.ID)
		}
		first += most + 1
	}
	pending := r.Frames[0].Resume == frame.Calling
	switch {
	case r.Returned != nil && !pending:
		return nil, fmt.Errorf("%s: --result cannot be used: its innermost VM frame has no pending call", s.Frames[0].Title())
	case r.Returned == nil && pending && !s.Came:
		return nil, fmt.Errorf("%s: its innermost VM frame, %s, waits for a call that is still running; use --result for its result", s.Frames[0].Title(), r.Frames[0].Method)
	}
	return r, nil
}

func (s *Stack) frameOf(f *frame.VMFrame, shift int64) (*protocol.Frame, error) {
	is := &protocol.Frame{Method: f.Method, Bits: wordOf(f.MethodBits), Position: f.Position, Resume: f.Resume}
	list := func(what string, from []frame.VMValue) ([]protocol.Value, error) {
		out := []protocol.Value{}
		for k := range from {
			v, err := s.valueOf(&from[k], shift)
			if err != nil {
				return nil, fmt.Errorf("%s[%d] of %s: %w", what, *from[k].Index, f.Method, err)
			}
			out = append(out, v)
		}
		return out, nil
	}
	var err error
	if is.Locals, err = list("local", f.Locals); err != nil {
		return nil, err
	}
	if is.Stack, err = list("stack", f.Stack); err != nil {
		return nil, err
	}
	for k := range f.Monitors {
		owner, err := s.valueOf(&f.Monitors[k].Owner, shift)
		if err != nil {
			return nil, fmt.Errorf("monitor of %s: %w", f.Method, err)
		}
		is.Monitors = append(is.Monitors, protocol.Monitor{Owner: owner, Eliminated: f.Monitors[k].Eliminated})
	}
	for name := range f.Extra {
		x := f.Extra[name]
		v, err := s.valueOf(&x, shift)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, f.Method, err)
		}
		if is.Extra == nil {
			is.Extra = map[string]protocol.Value{}
		}
		is.Extra[name] = v
	}
	return is, nil
}
