package session

import (
	"context"
	"errors"
	"slices"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// UntilAny runs until one of several instructions is the next to run, until at most frames activations are left, or to the end. It always runs the
// present instruction. A phi is never the next one: it runs with the branch that leads to it. If ctx is done the run returns to its previous place.
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
			_ = r.exec.StopAt(b, false) // no error: the block was decoded above, or a restarted run has no stop there
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

// onto runs one instruction in a wanted block, and otherwise to the next place where a wanted block may be entered or returned to.
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

// Watch runs one instruction after another, and calls stop after each. It ends when stop returns true, or at the end of the run. If ctx is done, the
// run returns to its previous place.
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

// BackUntil goes back to the last place at which one of several instructions was the next to run, or to the exit. If ctx is done the run returns to
// its previous place.
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
