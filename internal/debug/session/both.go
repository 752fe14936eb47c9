package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
)

// Pair compares native code and the interpreter, which started at the same place, at the next places they reached.
type Pair struct {
	Number uint64 // number of the pair since the exit, from 1
	// Frame is the frame of native code at a site of the activation; nil if native code is at no such site, for example after the return.
	Frame *deopt.Frame
	// At is the next instruction of the interpreter; nil if its run has ended.
	At    *ir.Instr
	Steps uint64 // instructions of the interpreter since the exit
	// Rows are the values that the record shows, in its order; none if native code has returned.
	Rows []Row

	Returned bool // native code is stopped after the return of the activation
	// Result and Memory compare the results of both sides, and their stores since the exit, once both have returned.
	Result []verify.ResultPart
	Memory []verify.MemoryDifference // at most 100, in ascending order
	Words  uint64                    // number of 8-byte words that differ in memory, including those that Memory omits
	Call   *verify.CallDifference    // the first call of native code that differs, or nil
	Failed string                    // the reason why the interpreter cannot continue although native code can, or ""

	Differs bool   // both sides have reached different places or values
	Why     string // the reason why both sides cannot be compared, or ""
	Note    string // the reason why both sides have no common site before the return, or ""
}

// Row is a value of the record of a site, on both sides.
type Row struct {
	Name        string // as in the module, "%i"; "" for a constant
	Type        frame.Type
	Native      frame.Slot
	Interpreted frame.Slot
	Same        bool
	Why         string // the reason why the row cannot be compared, or ""; with a reason, Same is false, and the row does not set Differs

	value ir.Value
	is    interp.Value // the interpreter's value
}

// Elsewhere reports whether native code and the interpreter are at different places.
func (p *Pair) Elsewhere() bool {
	switch {
	case p.Why != "" && !p.Returned:
		return false
	case p.Frame != nil:
		return p.At == nil || p.At != siteOf(p.Frame)
	}
	return p.Returned && p.At != nil
}

// siteOf returns the site of a frame's record, as an instruction.
func siteOf(f *deopt.Frame) *ir.Instr { return f.Match().Site.Instr }

// Differing lists the comparable rows that differ.
func (p *Pair) Differing() (list []Row) {
	for _, r := range p.Rows {
		if !r.Same && r.Why == "" {
			list = append(list, r)
		}
	}
	return list
}

// Both runs native code and the interpreter, each to the next site of the activation in which the interpreter runs, or to its return. They start at
// the selected frame or, during a run, at the last place that both reached. Both ignores breakpoints between these places, and all other threads stay
// stopped. Each side may run for at most 10 seconds. If native code runs more than 20,000 instructions between two sites, its stores are no longer
// compared at the return. After the first pair, stepping over a call of a function that exists only as native code also resumes native code.
//
// If [Pair].Why is set, no comparison is possible; the run is discarded if native code has moved. Both returns an error for a core and for a process
// that has ended. When ctx is done it returns the cause, and the process is stopped at its current place.
func (s *Session) Both(ctx context.Context) (*Pair, error) {
	switch {
	case s.process == nil:
		return nil, fmt.Errorf("cannot run native code in %s: step, until and finish run the interpreter", s.Still())
	case s.stop.Why == Ended:
		return nil, errEndedProcess
	}
	if s.pair != nil && s.pair.Returned {
		s.LeaveRun() // the activation of the run has returned
	}
	run, err := s.Resume()
	if err != nil {
		return nil, err
	}
	if run.lockstep == nil {
		why, err := s.accompany(ctx, run)
		if err != nil {
			return nil, err
		}
		if why != "" {
			return &Pair{Why: why}, nil
		}
	} else if run.over() || run.exec.Steps() != run.common {
		if err := run.at(ctx, run.common); err != nil {
			return nil, err
		}
	}
	b := run.lockstep
	a, err := b.Go(ctx, func(ctx context.Context) (*interp.Result, error) { return run.toSite(ctx, b.Site) })
	if err != nil {
		return nil, s.lost(ctx, run, a, err)
	}
	return s.compare(ctx, run, a)
}

// accompany starts to run native code in step with the interpreter. why is the reason if that is impossible.
func (s *Session) accompany(ctx context.Context, run *Run) (why string, err error) {
	v, err := s.View()
	if err != nil {
		return "", err
	}
	o := verify.Options{Options: s.config.Options, Steps: 1 << 50}
	o.Layouts, o.VMs = v.Layouts(), v.VMs()
	b, why, err := verify.NewLockstep(s.process, run.stack, o)
	if err != nil || why != "" {
		return why, err
	}
	run.lockstep = b
	if err := run.at(ctx, run.start); err != nil { // restart with the current memory; native code now makes the calls that exist only as native code
		run.lockstep = nil
		return "", err
	}
	run.common = run.start
	return "", nil
}

// lost updates the session after native code was stopped before a site, or its thread has ended. err is the reason.
func (s *Session) lost(ctx context.Context, run *Run, a *verify.Stop, err error) error {
	if !a.Moved {
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), run.to(context.WithoutCancel(ctx), run.common))
		}
		return err
	}
	s.moved()
	s.stop = Stop{Why: Stepped}
	if a.Ended {
		return errors.Join(err, s.threadEnded(ctx))
	}
	if ctx.Err() != nil {
		s.process.Refresh()
		s.stop = Stop{Why: Interrupted}
		return context.Cause(ctx)
	}
	return err
}

// ends bounds the wait for the end of a process one of whose threads has ended. Other threads may still run.
const ends = time.Second

// threadEnded updates the session after the followed thread has ended. If other threads live, they have run for a moment, and are stopped again.
func (s *Session) threadEnded(ctx context.Context) error {
	s.moved()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), ends)
	defer cancel()
	for {
		e, err := s.process.Next(wait)
		switch {
		case wait.Err() != nil:
			s.process.Refresh()
			return s.process.Stop()
		case err != nil:
			return err
		case e.Kind == ptrace.Ended:
			s.ended(trace.EndOf(e))
			return nil
		case e.Kind == ptrace.Exec:
			return nil
		}
	}
}

// compare returns the pair at which both sides are stopped.
func (s *Session) compare(ctx context.Context, run *Run, a *verify.Stop) (*Pair, error) {
	run.pairs++
	p := &Pair{Number: run.pairs, Steps: run.Steps(), Returned: a.Returned, Failed: a.Failed, Why: a.Why, Note: run.lockstep.WhyNoSite()}
	if !run.over() {
		p.At = run.exec.At(0)
	}
	if !a.Moved { // the interpreter cannot reach the site, so native code was not resumed
		return p, nil
	}
	s.stop = Stop{Why: Stepped}
	if a.Exit != nil {
		return p, s.atSite(run, p, a)
	}
	s.view, s.result, s.done = nil, "", nil
	switch {
	case a.Verified != nil:
		out := a.Verified
		p.Result, p.Memory, p.Words, p.Call = out.Result, out.Memory, out.Words, out.Call
		p.Differs, p.Failed = out.Status == verify.Different, out.Interpreter.Failed
	case a.Returned:
		p.Differs = p.Why == ""
	default:
		s.moved()
	}
	if a.Ended {
		err := s.threadEnded(ctx)
		s.pair = p
		return p, err
	}
	s.process.Refresh()
	s.pair = p
	thread := s.thread
	if _, err := s.View(); err != nil {
		return p, err
	}
	s.thread, s.level = thread, 0
	return p, nil
}

// atSite fills in the pair for a site that native code has reached.
func (s *Session) atSite(run *Run, p *Pair, a *verify.Stop) error {
	v, err := run.lockstep.Frames()
	if err != nil {
		return err
	}
	p.Frame = a.Exit.Frame
	s.view, s.unsourced, s.result, s.done, s.pair = v, true, "", nil, p
	s.thread, s.level = a.Exit.Thread.ID, 0
	if p.Rows, err = run.rows(p.Frame); err != nil {
		return err
	}
	if p.Why == "" && (p.Elsewhere() || p.Failed != "" || len(p.Differing()) > 0) {
		p.Why = run.lockstep.WhyUnsure()
		p.Differs = p.Why == ""
	}
	if p.Why != "" {
		s.leaveRun()
		return nil
	}
	run.common = run.exec.Steps()
	return nil
}

// Pair returns the last pair of [Session.Both], or nil if the process has moved in another way since.
func (s *Session) Pair() *Pair { return s.pair }

// Diff returns the last pair of [Session.Both] with only the rows that differ, or nil if the process has moved in another way since.
func (s *Session) Diff() *Pair {
	if s.pair == nil {
		return nil
	}
	p := *s.pair
	p.Rows = p.Differing()
	return &p
}

// rows pairs the values of a native record with those of the interpreter.
func (r *Run) rows(f *deopt.Frame) (list []Row, err error) {
	plain := f.Recorded(f.Match()) // slots with the module's names, not those of a layout
	site := f.Match().Site
	dl := site.Func.Module.Layout
	for _, native := range plain.Slots {
		row := Row{Name: native.Name, Type: native.Type, Native: native}
		row.Interpreted = frame.Slot{Index: native.Index, Name: native.Name, Type: native.Type, Status: frame.Missing}
		if native.Index >= len(site.Live) {
			row.Why = "it is not a value that the module passes"
			row.Interpreted.Code, row.Interpreted.Reason = frame.NotReached, row.Why
			list = append(list, row)
			continue
		}
		row.value = site.Live[native.Index]
		row.is, row.Why = r.valueOf(row.value)
		if row.Why != "" {
			row.Interpreted.Code, row.Interpreted.Reason = frame.NotReached, row.Why
		} else {
			row.Interpreted = r.slot(native.Index, native.Name, dl, row.is)
			row.Same, row.Why = r.same(dl, &row)
		}
		list = append(list, row)
	}
	return list, nil
}

// valueOf returns the interpreter's value for an operand of a site of the outermost activation, or the reason why it is unknown.
func (r *Run) valueOf(v ir.Value) (is interp.Value, why string) {
	if r.exec.Depth() == 0 {
		return is, "the interpreter's run has ended"
	}
	is, ok := r.exec.Operand(r.exec.Depth()-1, v)
	if !ok || is.IsNone() {
		return is, "the interpreter has no such value"
	}
	return is, ""
}

// same reports whether both values of a row are equal. why is the reason if they cannot be compared.
func (r *Run) same(dl *ir.DataLayout, row *Row) (same bool, why string) {
	if row.Native.Status != frame.OK {
		return false, cmp.Or(row.Native.Reason, string(row.Native.Status))
	}
	native, err := interp.FromBytes(dl, row.value.Type(), row.Native.Bytes)
	switch at, is := row.is.Uint(); {
	case err != nil:
		return false, err.Error()
	case abi.SameBits(row.is, native):
		return true, ""
	case is && r.lockstep.Made(at):
		return false, fmt.Sprintf("%#x is in the interpreter's own memory", at)
	}
	return false, ""
}
