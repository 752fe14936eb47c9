package session

import (
	"context"
	"errors"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/llvm/ir"
)

// Run is a run of the reference interpreter from an exit. It is stopped between two instructions, and can go in both directions: the interpreter is
// deterministic, so it goes back by running again from the exit to an earlier place.
type Run struct {
	stack  *deopt.Stack
	limits deopt.Limits

	machine  *interp.Interp
	exec     *interp.Execution
	result   *interp.Result   // nil until the run has ended
	failed   error            // the reason why the run cannot continue, or nil
	start    uint64           // step count at the exit: the phis before it count as steps
	lockstep *verify.Lockstep // the native code that runs in step; nil while native code is stopped at the exit
	common   uint64           // step count at the last place that native code and the interpreter reached
	pairs    uint64           // number of places that both reached since the exit
	places   []uint64         // known places, as step counts: the last consecutive ones, up to the current one
}

// maxPlaces bounds the known places of a run; each takes 8 bytes. The run finds earlier places again by running from the exit.
const maxPlaces = 1 << 16

// Start starts a run from the frames of a stack, as [deopt.Stack.Run] does.
func Start(s *deopt.Stack, l deopt.Limits) (*Run, error) {
	r := &Run{stack: s, limits: l}
	return r, r.Restart()
}

// Restart goes back to the exit.
func (r *Run) Restart() error {
	o := r.limits.Options(0)
	var err error
	if r.lockstep != nil {
		if o, err = r.lockstep.Options(o); err != nil {
			return err
		}
	}
	p, err := r.stack.Prepare(o)
	if err != nil {
		return err
	}
	if r.lockstep != nil {
		r.lockstep.Machine(p.Machine)
	}
	exec, err := p.Machine.StartStack(p.Activations)
	if err != nil {
		return err
	}
	r.machine, r.exec, r.result, r.failed = p.Machine, exec, nil, nil
	r.start = exec.Steps()
	r.places = []uint64{r.start}
	return nil
}

// Steps returns the number of instructions since the exit.
func (r *Run) Steps() uint64 { return r.exec.Steps() - r.start }

// Ended returns the result of the run, or nil while it can continue.
func (r *Run) Ended() (*interp.Result, error) { return r.result, r.failed }

// errEnded is returned for a request to continue a run that has ended.
var errEnded = errors.New("the run has ended; use back or restart")

// Step runs n instructions; a branch runs together with the phis that it leads to.
func (r *Run) Step(ctx context.Context, n uint64) error {
	for ; n > 0; n-- {
		if err := r.forward(ctx, func() (*interp.Result, error) { return r.exec.Step(ctx) }); err != nil || r.over() {
			return err
		}
		r.stands()
	}
	return nil
}

// Next is like Step but runs calls as one instruction.
func (r *Run) Next(ctx context.Context, n uint64) error {
	for ; n > 0; n-- {
		depth := r.exec.Depth()
		if err := r.Step(ctx, 1); err != nil || r.over() {
			return err
		}
		if r.exec.Depth() > depth {
			if err := r.out(ctx, depth); err != nil || r.over() {
				return err
			}
		}
	}
	return nil
}

// Finish runs until the innermost function has returned to its caller, or to the end.
func (r *Run) Finish(ctx context.Context) error { return r.out(ctx, r.exec.Depth()-1) }

func (r *Run) out(ctx context.Context, frames int) error {
	err := r.forward(ctx, func() (*interp.Result, error) { return r.exec.RunOut(ctx, frames) })
	r.jumped()
	return err
}

// Until runs to the beginning of a block, after its phis, or to the end.
func (r *Run) Until(ctx context.Context, b *ir.Block) error {
	if err := r.exec.StopAt(b, true); err != nil {
		return err
	}
	err := r.forward(ctx, func() (*interp.Result, error) { return r.exec.Run(ctx) })
	if !r.over() {
		err = errors.Join(err, r.exec.StopAt(b, false))
	}
	r.jumped()
	return err
}

// Continue runs to the end.
func (r *Run) Continue(ctx context.Context) error {
	err := r.forward(ctx, func() (*interp.Result, error) { return r.exec.Run(ctx) })
	r.jumped()
	return err
}

// over reports whether the run has ended.
func (r *Run) over() bool { return r.result != nil || r.failed != nil }

// forward continues the run by calling on. A failure of the run is not an error of this call; [Run.Ended] returns it. If ctx is done the run returns
// to its previous place.
func (r *Run) forward(ctx context.Context, on func() (*interp.Result, error)) error {
	if r.over() {
		return errEnded
	}
	return r.whole(ctx, func() error {
		res, err := on()
		if err != nil && ctx.Err() != nil {
			return err
		}
		if r.failed = err; err == nil {
			r.result = res
		}
		return nil
	})
}

// whole calls do, which moves the run. If ctx is canceled meanwhile, whole moves the run to the place that it had before.
func (r *Run) whole(ctx context.Context, do func() error) error {
	before := r.exec.Steps()
	err := do()
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), r.to(context.WithoutCancel(ctx), before))
	}
	return err
}

// stands appends the current place to the known places.
func (r *Run) stands() {
	if len(r.places) == maxPlaces {
		r.places = slices.Clone(r.places[maxPlaces/2:])
	}
	r.places = append(r.places, r.exec.Steps())
}

// jumped clears the known places, because the places between the old and the new place are unknown.
func (r *Run) jumped() {
	if r.places = nil; !r.over() {
		r.places = []uint64{r.exec.Steps()}
	}
}

// Back goes back by n instructions, at most to the exit. A run that has ended goes back from the place after its last instruction. If ctx is done,
// the run returns to its previous place.
func (r *Run) Back(ctx context.Context, n uint64) error {
	if n == 0 {
		return nil
	}
	return r.whole(ctx, func() error { return r.back(ctx, n) })
}

func (r *Run) back(ctx context.Context, n uint64) error {
	for here := r.exec.Steps(); ; {
		k, _ := slices.BinarySearch(r.places, here) // number of known places before this one
		switch {
		case uint64(k) >= n:
			return r.to(ctx, r.places[uint64(k)-n])
		case here == r.start, k > 0 && r.places[0] == r.start:
			return r.to(ctx, r.start)
		case k > 0:
			here, n = r.places[0], n-uint64(k)
		}
		if err := r.find(ctx, here); err != nil {
			return err
		}
	}
}

// chunk is the number of instructions before a place that [Run.find] runs one by one, to record the places at which a run can be stopped.
const chunk = 1 << 12

// find records the places before the step count before. It runs again from the exit, and runs the last instructions one by one.
func (r *Run) find(ctx context.Context, before uint64) error {
	begin := before
	for size := uint64(chunk); begin > r.start && r.beyond(before); size *= 4 { // a branch may lead to more phis than a chunk has instructions
		begin = max(r.start, before-min(before, size))
		if err := r.to(ctx, begin); err != nil {
			return err
		}
	}
	r.jumped()
	for r.exec.Steps() < before && !r.over() {
		if err := r.forward(ctx, func() (*interp.Result, error) { return r.exec.Step(ctx) }); err != nil {
			return err
		}
		if !r.over() {
			r.places = append(r.places, r.exec.Steps())
		}
	}
	return nil
}

// beyond reports whether the run has reached a step count.
func (r *Run) beyond(place uint64) bool { return r.over() || r.exec.Steps() >= place }

// to moves the run to a step count, by running again from the exit.
func (r *Run) to(ctx context.Context, steps uint64) error {
	places := r.places
	if err := r.Restart(); err != nil {
		return err
	}
	if steps > r.start {
		if err := r.forward(ctx, func() (*interp.Result, error) { return r.exec.RunTo(ctx, steps) }); err != nil {
			return err
		}
		r.jumped()
	}
	if k, found := slices.BinarySearch(places, r.exec.Steps()); found && !r.over() {
		r.places = places[:k+1]
	}
	return nil
}

// toSite runs to the next instruction of the outermost activation for which is returns true, or to the end of the run.
func (r *Run) toSite(ctx context.Context, is func(*ir.Instr) bool) (*interp.Result, error) {
	defer r.jumped()
	for {
		on := func() (*interp.Result, error) { return r.exec.Step(ctx) }
		if r.exec.Depth() > 1 {
			on = func() (*interp.Result, error) { return r.exec.RunOut(ctx, 1) }
		}
		res, err := on()
		if r.failed = err; err == nil {
			r.result = res
		}
		if r.over() {
			return res, err
		}
		if at := r.exec.At(0); r.exec.Depth() == 1 && at != nil && is(at) {
			return nil, nil
		}
	}
}

// at moves the run to a step count. If ctx is done, the run returns to its previous place.
func (r *Run) at(ctx context.Context, steps uint64) error {
	return r.whole(ctx, func() error { return r.to(ctx, steps) })
}
