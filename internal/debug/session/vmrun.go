package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/protocol"
)

// VMRun is the run of a virtual machine's own interpreter from an exit. It is stopped between two instructions of the virtual machine, and can go in
// both directions, like a [Run]. The interpreter keeps no state: the same frames and memory give the same result. So a run goes back by running again
// from the exit to an earlier place. A request that fails does not change the place.
type VMRun struct {
	stack  *handover.Stack
	child  func(context.Context) (*protocol.Child, error) // returns the interpreter, a new one if the last one has ended
	limits deopt.Limits

	host    *protocol.Host // the host at the exit; its memory is never written
	request *protocol.Resume
	at      vmPlace
	name    string           // the interpreter's name; "" until it has reported it
	ended   *protocol.Answer // nil until the run has ended
	failed  error            // why the run cannot continue
}

// vmPlace is the place of a run.
type vmPlace struct {
	resume *protocol.Resume // the request that continues from there
	memory *protocol.Overlay
	output string
	steps  uint64 // instructions since the exit
}

// defaultVMSteps bounds the instructions of an interpreter from an exit, unless the user gives a limit.
const defaultVMSteps = 1e9

// StartVM starts a run from the frames of a stack. It starts the child when the run first continues. The error is the reason why the frames cannot be
// passed to the interpreter.
func StartVM(stack *handover.Stack, child func(context.Context) (*protocol.Child, error), l deopt.Limits) (*VMRun, error) {
	r := &VMRun{stack: stack, child: child, limits: l}
	var err error
	if r.request, err = stack.Request(); err != nil {
		return nil, err
	}
	maps, err := stack.View.Target().Mappings()
	if err != nil {
		return nil, err
	}
	r.host = handover.Host(stack.View, maps)
	r.Restart()
	return r, nil
}

// Restart goes back to the exit.
func (r *VMRun) Restart() { r.stands(r.exit()) }

func (r *VMRun) exit() vmPlace { return vmPlace{resume: r.request, memory: r.host.Memory} }

func (r *VMRun) stands(p vmPlace) { r.at, r.ended, r.failed = p, nil, nil }

// Steps returns the number of instructions since the exit, as the interpreter reports it.
func (r *VMRun) Steps() uint64 { return r.at.steps }

// Output returns the output that the program would have printed so far.
func (r *VMRun) Output() string { return r.at.output }

// Name returns the interpreter's own name.
func (r *VMRun) Name() string { return cmp.Or(r.name, "the interpreter") }

// Memory returns the target's memory with the interpreter's writes.
func (r *VMRun) Memory() machine.Memory { return r.at.memory }

// Ended returns the result of the run, or nil while it can continue. The error is the interpreter's failure.
func (r *VMRun) Ended() (*protocol.Answer, error) { return r.ended, r.failed }

// Method returns the method of the outermost frame.
func (r *VMRun) Method() string {
	return r.request.Frames[len(r.request.Frames)-1].Method
}

// Frames lists the interpreter's frames, innermost first; none after the run has ended.
func (r *VMRun) Frames() []protocol.Frame {
	if r.ended != nil {
		return nil
	}
	return r.at.resume.Frames
}

// VM returns these frames in the form of a layout's frames: at the exit they are the layout's own.
func (r *VMRun) VM() *frame.VM {
	switch {
	case r.ended != nil:
		return &frame.VM{}
	case r.at.steps == 0 && len(r.stack.Frames) == 1:
		return r.stack.Frames[0].VM
	}
	return handover.VM(&protocol.Stopped{Frames: r.at.resume.Frames, Objects: r.at.resume.Objects}, r.stack.View.Target().Arch().Order)
}

// Step runs n instructions, and enters methods that are called.
func (r *VMRun) Step(ctx context.Context, n uint64) error {
	if n == 0 {
		return nil
	}
	return r.forward(ctx, &protocol.Stop{After: n})
}

// Next is like Step but runs calls as one instruction.
func (r *VMRun) Next(ctx context.Context, n uint64) error {
	for ; n > 0; n-- {
		if err := r.forward(ctx, &protocol.Stop{After: 1, Frames: len(r.at.resume.Frames)}); err != nil || r.over() {
			return err
		}
	}
	return nil
}

// Finish runs until the innermost method has returned to its caller, or to the end.
func (r *VMRun) Finish(ctx context.Context) error {
	if n := len(r.at.resume.Frames); n > 1 {
		return r.forward(ctx, &protocol.Stop{After: 1, Frames: n - 1})
	}
	return r.Continue(ctx)
}

// Until runs at least one instruction, and then to the next place at which a condition on the innermost frames holds, or to the end. If ctx is done
// the run returns to its previous place. Until returns an error if the run has ended and the condition could not be evaluated at any place, for
// example because of a misspelt name.
func (r *VMRun) Until(ctx context.Context, c *condition.Condition) error {
	before := r.at
	decided, undecided := false, ""
	for {
		err := r.Step(ctx, 1)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil && r.ended == nil {
			r.stands(before)
		}
		switch {
		case err != nil:
			return err
		case r.over() && !decided && undecided != "":
			return fmt.Errorf("the run has ended, and the condition could not be evaluated at any place: %s", undecided)
		case r.over():
			return nil
		}
		switch is, why := c.Of(r.VM().Facts()); is {
		case condition.Yes:
			return nil
		case condition.No:
			decided = true
		default:
			undecided = why
		}
	}
}

// Continue runs to the end.
func (r *VMRun) Continue(ctx context.Context) error { return r.forward(ctx, nil) }

// Back goes back by n instructions, at most to the exit. A run that has ended goes back from the place after its last instruction.
func (r *VMRun) Back(ctx context.Context, n uint64) error {
	to := r.at.steps - min(n, r.at.steps)
	if to == 0 {
		r.Restart()
		return nil
	}
	p, a, err := r.run(ctx, r.exit(), &protocol.Stop{After: to})
	switch {
	case err != nil:
		return err
	case a.Stopped == nil:
		return fmt.Errorf("%s did not repeat its run: it ended after %d instructions, not after %d", r.Name(), p.steps, r.at.steps)
	}
	r.stands(p)
	return nil
}

func (r *VMRun) over() bool { return r.ended != nil || r.failed != nil }

// forward continues the run. A failure of the interpreter is not an error of this call; [VMRun.Ended] returns it.
func (r *VMRun) forward(ctx context.Context, stop *protocol.Stop) error {
	if r.over() {
		return errEnded
	}
	p, a, err := r.run(ctx, r.at, stop)
	switch {
	case err != nil:
		return err
	case a.Unsupported+a.Malformed != "":
		r.failed = errors.New(cmp.Or(a.Unsupported, a.Malformed))
		return nil
	}
	r.at = p
	if a.Stopped == nil {
		r.ended = a
	}
	return nil
}

// run runs the interpreter from a place, which it does not change.
func (r *VMRun) run(ctx context.Context, from vmPlace, stop *protocol.Stop) (to vmPlace, a *protocol.Answer, err error) {
	c, err := r.child(ctx)
	if err != nil {
		return to, nil, err
	}
	r.name = c.About.Name
	if stop != nil && !c.About.Step {
		return to, nil, fmt.Errorf("%s cannot stop before its end (doc/user/protocol.md, step): use resume", r.Name())
	}
	limit := cmp.Or(r.limits.Steps, defaultVMSteps)
	if from.steps >= limit {
		return to, nil, fmt.Errorf("the limit of %d instructions since the exit was reached; --steps sets it", from.steps)
	}
	host, request := *r.host, *from.resume
	host.Memory = from.memory.Fork()
	request.Stop, request.Steps = stop, limit-from.steps
	if a, err = c.Resume(ctx, &request, &host); err != nil {
		return to, nil, err
	}
	to = vmPlace{resume: from.resume, memory: host.Memory, output: from.output + a.Output, steps: from.steps + a.Steps}
	if a.Stopped != nil {
		to.resume = &protocol.Resume{Frames: a.Stopped.Frames, Objects: a.Stopped.Objects}
	}
	return to, a, nil
}
