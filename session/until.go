package session

import (
	"context"
	"errors"
	"slices"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
)

// UntilAny runs to where one of several instructions is the next to run, to where there are only so many frames, or to the end; an instruction at which it
// stands is passed. A phi is never the next one: it is done with the branch that leads to it. Where the run was given up it stands where it was.
func (r *Run) UntilAny(ctx context.Context, at []*ir.Instr, frames int) error {
	return r.whole(ctx, func() error { return r.untilAny(ctx, at, frames) })
}

func (r *Run) untilAny(ctx context.Context, at []*ir.Instr, frames int) error {
	if r.over() {
		return errEnded
	}
	blocks := map[*ir.Block]bool{}
	for _, i := range at {
		if blocks[i.Block] {
			continue
		}
		blocks[i.Block] = true
		if err := r.exec.StopAt(i.Block, true); err != nil {
			return err
		}
	}
	defer func() {
		for b := range blocks {
			_ = r.exec.StopAt(b, false) // it was decoded above, or is not set in a run that began anew
		}
	}()
	for {
		if err := r.forward(ctx, func() (*interp.Result, error) { return r.onto(ctx, blocks, frames) }); err != nil {
			return err
		}
		r.jumped()
		if r.over() || r.exec.Depth() <= frames || slices.Contains(at, r.exec.At(0)) {
			return nil
		}
	}
}

// onto goes one instruction on in a block that is meant, and else to the next place where one may be met: where it is entered, or returned to.
func (r *Run) onto(ctx context.Context, blocks map[*ir.Block]bool, most int) (*interp.Result, error) {
	for n, depth := 0, r.exec.Depth(); n < depth-most; n++ {
		at := r.exec.At(n)
		switch {
		case at == nil || !blocks[at.Block]:
		case n == 0:
			return r.exec.Step(ctx)
		default:
			return r.exec.RunOut(ctx, depth-n)
		}
	}
	return r.exec.RunOut(ctx, most)
}

// Watch runs instruction by instruction until stop says so, which is asked behind each, or to the end. Where the run was given up it stands where it was.
func (r *Run) Watch(ctx context.Context, stop func() bool) error {
	return r.whole(ctx, func() error {
		for {
			if err := r.Step(ctx, 1); err != nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			if r.over() || stop() {
				return nil
			}
		}
	})
}

// BackUntil goes back to where one of several instructions was the next to run last, or to the exit. Where it was given up it stands where it was.
func (r *Run) BackUntil(ctx context.Context, at []*ir.Instr) error {
	before := r.exec.Steps()
	return r.whole(ctx, func() error { return r.backUntil(ctx, at, before) })
}

func (r *Run) backUntil(ctx context.Context, at []*ir.Instr, before uint64) error {
	if err := r.Restart(); err != nil {
		return err
	}
	last := r.start
	for len(at) > 0 && r.exec.Steps() < before {
		if err := r.untilAny(ctx, at, 0); err != nil {
			return err
		}
		if r.beyond(before) {
			break
		}
		last = r.exec.Steps()
	}
	return r.to(ctx, last)
}
