package session

import (
	"context"
	"errors"
	"fmt"

	"example.com/reframe/internal/check/verify"
)

// errDiffers ends a verification at a difference, at which the process stays stopped.
var errDiffers = errors.New("they differ")

// Differ resumes the process to the first exit after which native code and the interpreter differ, or to its end. At each exit, both run to the
// return of the function, as in package verify. The process is then stopped after that return, without breakpoints in it. Differ ignores the user's
// breakpoints. When ctx is done it stops the process and returns no error.
func (s *Session) Differ(ctx context.Context) (Stop, *verify.Verified, error) {
	if s.process == nil {
		return s.stop, nil, fmt.Errorf("cannot compare with native code in %s, which does not run", s.Still())
	}
	if s.stop.Why == Ended {
		return s.stop, nil, errEndedProcess
	}
	s.moved()
	var found *verify.Verified
	o := verify.Options{Options: s.config.Options, Wait: true, Warn: s.config.Warn, Describe: s.learn}
	summary, err := verify.Run(ctx, s.process, o, func(v *verify.Verified) error {
		if v.Status == verify.Different {
			found = v
			return errDiffers
		}
		return nil
	})
	switch {
	case found != nil && errors.Is(err, errDiffers):
		s.stop = Stop{Why: Different}
		s.process.Refresh()
		s.thread = found.Exit.Thread.ID
		return s.stop, found, nil
	case err != nil:
		stop, err := s.interrupted(ctx, err)
		return stop, nil, err
	}
	return s.ended(summary.End), nil, nil
}
