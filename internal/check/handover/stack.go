package handover

import (
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/protocol"
)

// Stack holds physical frames of one thread, innermost first, whose VM frames are passed as one stack.
type Stack struct {
	View   *deopt.View
	Thread *deopt.Thread
	Frames []*deopt.Frame
	// Returned is the result of the call for which the innermost VM frame waits; nil if it is not known, or if the call returned nothing and Came is
	// set.
	Returned *protocol.Native
	Came     bool
	// End is the reason why the caller of the last frame is not included; "" if callers were not requested.
	End string
}

// Pick returns the selected frames: the innermost with VM frames, or the chosen one, and its callers.
func Pick(v *deopt.View, c deopt.Choice) (*Stack, error) {
	why := ""
	for i := range v.Threads {
		t := &v.Threads[i]
		for at, f := range t.Frames {
			chosen := c.Numbered() && c.Is(t, f) || c.Function != nil && !c.Numbered()
			if !c.Is(t, f) || c.Function != nil && !c.Function.Match(f.Function) {
				continue
			}
			if f.VM == nil || f.VM.Error != "" {
				if w := whyNone(f); w != "" && (why == "" || chosen) {
					why = w
				}
				continue
			}
			s := &Stack{View: v, Thread: t, Frames: []*deopt.Frame{f}}
			if refused := unsure(f, c.Force); refused != "" {
				return nil, fmt.Errorf("%s: %s", f.Title(), refused)
			}
			return s, s.extend(t.Frames[at+1:], c)
		}
	}
	switch {
	case why != "":
	case c.Numbered():
		why = fmt.Sprintf("there is no frame %d; %s", c.Number(), v.HowMany())
	case c.Function != nil:
		why = fmt.Sprintf("no frame is of %s%s", c.Function.Text, v.NearFunction(c.Function))
	case v.Records() == 0:
		why = v.WhyNone()
	default:
		why = "no layout of a virtual machine has frames for any record; give it with --layout"
	}
	return nil, fmt.Errorf("%w: %s", deopt.ErrNoFrame, why)
}

// whyNone returns the reason why a frame has no VM frames, or "" if none are expected.
func whyNone(f *deopt.Frame) string {
	switch {
	case f.VM != nil:
		return fmt.Sprintf("%s: %s", f.Title(), f.VM.Error)
	case f.Record == nil:
		return ""
	}
	return fmt.Sprintf("%s: no layout of a virtual machine has frames for record %d; give it with --layout", f.Title(), f.Record.ID)
}

// unsure returns the reason why the VM frames of a physical frame cannot be passed, or "".
func unsure(f *deopt.Frame, force bool) string {
	if why := f.Uncertain(); why != "" {
		if !force {
			return "it is a guess: " + why + "; --force takes it nevertheless"
		}
		return ""
	}
	return f.VM.Lacks()
}

// extend adds callers up to the chosen frame, or as many as can resume together.
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
			s.End = f.Title() + " has no frames of the virtual machine"
		case f.VM.Frames[0].Resume != frame.Calling:
			s.End = f.Title() + " does not wait for a call"
		default:
			s.End = unsure(f, c.Force)
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
		s.End = last.Title() + " is the last frame that is known"
	}
	if c.To > 0 {
		return fmt.Errorf("%w up to frame #%d: %s", deopt.ErrNoFrame, c.To, s.End)
	}
	return nil
}

// Request returns the message that passes the frames to the interpreter.
func (s *Stack) Request() (*protocol.Resume, error) {
	r := &protocol.Resume{Returned: s.Returned}
	var first int64 // id of the first object of a physical frame: each frame numbers its own
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
	waits := r.Frames[0].Resume == frame.Calling
	switch {
	case r.Returned != nil && !waits:
		return nil, fmt.Errorf("%s: its innermost frame has no pending call, and --result says what one returned", s.Frames[0].Title())
	case r.Returned == nil && waits && !s.Came:
		return nil, fmt.Errorf("%s: its innermost frame, %s, waits for a call that is still running; --result says what it is to return", s.Frames[0].Title(), r.Frames[0].Method)
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
			return nil, fmt.Errorf("a lock of %s: %w", f.Method, err)
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
