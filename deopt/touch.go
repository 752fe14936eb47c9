package deopt

import (
	"context"
	"fmt"
)

// Touch lets the reference interpreter run from each frame that can be resumed, and from the innermost one of each thread
// together with its callers, and forgets what came of it. A target that keeps the memory which is read ([ptrace.Options.Record]) has then
// kept what the same run needs later.
//
// It returns how many runs came to an end and, of those that did not, why.
func (v *View) Touch(ctx context.Context, l Limits) (ended int, why []string) {
	for i := range v.Threads {
		t := &v.Threads[i]
		innermost := true
		for at, f := range t.Frames {
			if f.Resume == nil {
				continue
			}
			// A guess that somebody forces later reads what it reads now.
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
