package session

import (
	"context"
	"errors"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/vm/protocol"
)

// VMLevel is a method that the virtual machine's interpreter runs.
type VMLevel struct {
	// VM holds the method's frame, followed by those of its callers.
	VM *frame.VM
	// Text is the instruction at the position, as the interpreter prints it; "" if the interpreter prints none.
	Text string
}

// levels lists the methods of a run, innermost first.
func (r *VMRun) levels() (list []*VMLevel) {
	vm := r.VM()
	for n := range vm.Frames {
		is := *vm
		is.Frames = vm.Frames[n:]
		list = append(list, &VMLevel{&is, r.at.resume.Frames[n].Text})
	}
	return list
}

// taken returns the outermost physical frame that the interpreter runs.
func (r *VMRun) taken() *deopt.Frame { return r.stack.Frames[len(r.stack.Frames)-1] }

// With reports whether the virtual machine's own interpreter resumes from exits.
func (s *Session) With() bool { return s.config.With != nil }

// VMRun returns the run of the virtual machine's interpreter, or nil.
func (s *Session) VMRun() *VMRun { return s.vm }

// ResumeVM starts a run of the virtual machine's interpreter at the selected frame, or returns the current run.
func (s *Session) ResumeVM() (*VMRun, error) {
	if s.vm != nil {
		return s.vm, nil
	}
	s.LeaveRun()
	v, at, err := s.here()
	if err != nil {
		return nil, err
	}
	stack, err := handover.Pick(s.threadOnly(v), deopt.Choice{Frame: at.Physical.Index})
	if err != nil {
		return nil, err
	}
	if s.result != "" {
		if stack.Returned, err = handover.Given(s.result); err != nil {
			return nil, err
		}
	}
	r, err := StartVM(stack, s.interpreter, s.config.Limits)
	if err != nil {
		return nil, err
	}
	s.vm, s.level = r, 0
	return r, nil
}

// interpreter returns the virtual machine's interpreter, and starts it if it is not running.
func (s *Session) interpreter(ctx context.Context) (*protocol.Child, error) {
	if !s.child.Ended() {
		return s.child, nil
	}
	if s.config.With == nil {
		return nil, errors.New("no interpreter of a virtual machine was given; use --with COMMAND")
	}
	t, err := s.Target()
	if err != nil {
		return nil, err
	}
	s.child, err = s.config.With(ctx, t)
	return s.child, err
}

// Close ends the interpreter that [Config.With] has started. It does not touch the target.
func (s *Session) Close() { s.child.Close() }
