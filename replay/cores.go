package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/ptrace"
)

// Cores opens cores, one at a time or several at once.
type Cores struct {
	Core   ptrace.CoreOptions // for many cores, set Files and Objects, which share memory between cores
	Inputs deopt.Options
	// Limits bounds the run of each resumed frame.
	Limits deopt.Limits
}

// Look is the [Job] that opens a core, builds the frames of its threads, and, if modules are known, resumes the innermost frame that can be resumed.
func (c *Cores) Look(ctx context.Context, item Item) Result {
	r := Result{Kind: Core, Path: item.Path, Outcome: Failed}
	if !item.Named && r.refuse(item) { // for a named file, OpenCore returns a better error
		return r
	}
	t, err := ptrace.OpenCore(item.Path, c.Core)
	if err != nil {
		r.Message = reason(err)
		return r
	}
	defer t.Close()
	if ctx.Err() != nil {
		return r
	}
	view, err := deopt.Frames(t, c.Inputs)
	if err != nil {
		r.Message = err.Error()
		return r
	}
	r.Found = found(t, view)
	switch {
	case r.Found.Frames == 0:
		r.Message = view.WhyNoRecord()
		return r
	case view.Partial():
		r.Outcome, r.Message = Partial, incomplete(view)
	default:
		r.Outcome = OK
	}
	if len(r.Found.Exits) == 0 {
		r.Found.Notes = append(slices.Clone(r.Found.Notes), view.WhyNoRecord())
	}
	if len(c.Inputs.Modules) == 0 {
		return r
	}
	if r.Found.Resumed, err = c.resume(ctx, view); err != nil {
		r.Outcome, r.Message = Partial, err.Error()
	}
	return r
}

// reason describes the error of a core. It omits the path, which the output shows anyway, and advice for users who open a single core.
func reason(err error) string {
	var e *ptrace.CoreError
	var file *fs.PathError
	switch {
	case errors.As(err, &e) && e.Offset >= 0:
		return fmt.Sprintf("at %#x: %v", e.Offset, e.Err)
	case errors.As(err, &e):
		return e.Err.Error()
	case errors.As(err, &file):
		return file.Err.Error()
	}
	return err.Error()
}

// maxExits bounds the number of exits in the result of a core, because a recursion may have 100,000.
const maxExits = 32

// found counts the threads and frames of a core, and describes its exits.
func found(t *ptrace.Target, v *deopt.View) *Found {
	out := &Found{Arch: t.Arch().Name, Threads: len(v.Threads), Notes: t.Notes}
	for i := range v.Threads {
		thread := &v.Threads[i]
		out.Frames += len(thread.Frames)
		for _, f := range thread.Frames {
			switch {
			case f.Record == nil:
			case len(out.Exits) == maxExits:
				out.More++
			default:
				out.Exits = append(out.Exits, exitOf(thread, f))
			}
		}
	}
	return out
}

func exitOf(t *deopt.Thread, f *deopt.Frame) Exit {
	x := Exit{TID: t.ID, Frame: f.Index, Function: f.Function, Demangled: f.Demangled, Offset: f.Offset, Record: f.Record.ID, Site: f.Record.Site,
		Moment: f.Record.Moment, Resume: f.Resume, Slots: len(f.Slots)}
	for _, s := range f.Slots {
		if s.Status == frame.Missing || s.Status == frame.Guessed {
			x.Unavailable++
		}
	}
	return x
}

// incomplete describes the first missing part of a view: a value, or the rest of a stack.
func incomplete(v *deopt.View) string {
	for i := range v.Threads {
		t := &v.Threads[i]
		for _, f := range t.Frames {
			if why := f.Lacks(); why != "" {
				return fmt.Sprintf("%s: %s", f.Title(), why)
			}
		}
		if !t.End.Complete {
			return fmt.Sprintf("thread %d: %s", t.ID, t.End.Reason)
		}
	}
	return ""
}

// maxTried bounds the number of frames that resume tries.
const maxTried = 16

// resume runs the innermost frame that can be resumed, in the first thread with such a frame. A frame that waits for the result of a call, or lacks a
// value that is live where it resumes, cannot be resumed.
func (c *Cores) resume(ctx context.Context, v *deopt.View) (*Resumed, error) {
	var first error // why the innermost frame cannot be resumed
	tried := 0
	for i := range v.Threads {
		t := &v.Threads[i]
		for _, f := range t.Frames {
			if f.Record == nil || f.Resume == nil || tried == maxTried {
				continue
			}
			tried++
			out, err := v.Run(ctx, &deopt.Stack{Thread: t, Frames: []*deopt.Frame{f}}, c.Limits)
			switch {
			case out == nil && first == nil:
				first = err
			case out == nil:
			case err != nil: // the run failed
				return nil, fmt.Errorf("%s: %w", f.Title(), err)
			default:
				return &Resumed{TID: t.ID, Frame: f.Index, Result: out.Result, ExitCode: out.ExitCode, Steps: out.Steps, Output: out.Output}, nil
			}
		}
	}
	if first == nil {
		first = errors.New("no frame has a known place where it resumes")
	}
	return nil, first
}
