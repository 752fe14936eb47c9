package stress

import (
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/commit"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/vm/protocol"
)

// prepareWith runs an exit in the user's own interpreter, which is started for the first exit of a run, and prepares the commit of its result.
func (w *walker) prepareWith(x *trace.Exited) (*frame.Resumed, *commit.Commit, error) {
	stack, err := handover.AtExit(w.watcher.View(), x.Stack())
	if err != nil {
		return nil, nil, err
	}
	return commit.PrepareWith(w.session, stack, func(r *protocol.Resume) (*handover.Ran, error) {
		r.Steps = w.options.Steps
		if w.child == nil {
			var err error
			if w.child, err = handover.Start(w.ctx, w.options.With, w.watcher.View().Target(), w.options.Errors); err != nil {
				return nil, errWith{err}
			}
		}
		ran, err := stack.Run(w.ctx, w.child, r, nil)
		if err != nil {
			err = errWith{err}
		}
		return ran, err
	})
}

// errWith is an error of the user's interpreter. It ends the runs, because it does not depend on an exit.
type errWith struct{ error }

func (e errWith) Unwrap() error { return e.error }

func endsRuns(err error) bool {
	var failed errWith
	return errors.As(err, &failed)
}
