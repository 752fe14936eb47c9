package deopt

import (
	"context"
	"fmt"
)

// Touch runs the reference interpreter from each frame that can be resumed, and from the innermost such frame of each thread together with its
// callers. It discards the results. A target that keeps the memory that is read ([ptrace.Options.Record]) then has what the same run needs later.
//
// It returns the number of runs that finished, and for each other run the reason.
func (v *View) Touch(ctx context.Context, l Limits) (ended int, why []string) {
	for i := range v.Threads {
		t := &v.Threads[i]
		innermost := true
		for at, f := range t.Frames {
			if f.Resume == nil {
				continue
			}
			// --force may resume a guessed frame later, so read its memory too.
			runs := []*Stack{{Thread: t, Frames: []*Frame{f}, Force: true}}
			if all := (&Stack{Thread: t, Frames: []*Frame{f}, Force: true}); innermost && all.extend(t.Frames[at+1:], AllCallers) == nil && len(all.Frames) > 1 {
				runs = append(runs, all)
			}
			innermost = false
			for _, s := range runs {
				if _, err := v.Run(ctx, s, l); err != nil {
					why = append(why, fmt.Sprintf("frame #%d of thread %d: %v", f.Index, t.ID, err))
					continue
				}
				ended++
			}
		}
	}
	return ended, why
}
