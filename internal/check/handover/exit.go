package handover

import (
	"errors"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// AtExit returns the VM frames of an exit's frame, with the result of its call if the call has returned. It returns an error if they are not certain.
func AtExit(v *deopt.View, from *deopt.Stack) (*Stack, error) {
	f := from.Frames[0]
	s := &Stack{View: v, Thread: from.Thread, Frames: []*deopt.Frame{f}}
	if f.VM == nil {
		return nil, errors.New("no layout has VM frames for its record")
	}
	if err := certain(f, false); err != nil {
		return nil, err
	}
	if f.VM.Frames[0].Resume == frame.Calling {
		var err error
		if s.Returned, err = Returned(f, from.Returned); err != nil {
			return nil, err
		}
		s.Came = true
	}
	return s, nil
}
