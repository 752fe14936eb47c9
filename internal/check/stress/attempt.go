package stress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/commit"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// action is the way in which a run continues from an exit.
type action int

const (
	skip      action = iota // do nothing
	interpret               // run the exit in the interpreter and commit the result
	runNative               // run native code to the return of its function; exits before that return are not counted, as with interpret
)

// plan holds the actions in a run of the command.
type plan struct {
	at      func(Exit) action
	all     int  // number of exits to interpret; later exits need no breakpoint; 0: unknown
	culprit Exit // the exit to record before it is interpreted; the zero value: none
}

// attempt is a run of the command under control.
type attempt struct {
	Outcome
	exits, chosen uint64
	committed     []Exit // in the order of their commits
	reasons       trace.Reasons
	failed        uint64 // exits at which the program failed in the interpreter
	overwritten   uint64
	idle          time.Duration // time between the last exit and the end
	culprit       *Culprit      // the exit that plan.culprit selects
	uncounted     string        // the reason why the number [Culprit].Native may be too low; "": the number is exact
}

// walker performs the actions of a plan in one run.
type walker struct {
	*stresser
	ctx         context.Context
	plan        plan
	session     *ptrace.Session
	watcher     *trace.Watcher
	result      *attempt
	threads     []int          // the age of each seen thread, in ascending order
	numbers     map[int]uint64 // number of the last exit, by thread
	native      map[int]uint64 // number of the last exit, by thread, including nativeExits
	passing     map[int]uint64 // number of exits that the thread passes before the next reported one
	nativeExits uint64         // exits of native code that ran to the return of a function
	last        time.Time
	hit         hit
	returns     *ptrace.Return  // return address of the function that runs natively, in the thread of the last hit
	endless     bool            // the run reached more exits than the program can have
	child       *protocol.Child // the user's own interpreter; nil until it is needed
}

// errEndless ends a run with too many exits.
var errEndless = errors.New("it reaches far more exits than before")

// nativeTime bounds the time of native code that runs to the return of a function.
const nativeTime = 10 * time.Second

// hit is the exit at which the thread is stopped, and its action.
type hit struct {
	exit Exit
	do   action
	tid  int
	done bool
	why  error // the reason why the action was not done
	// failed is true if the program failed in the interpreter. Native code may run without that failure.
	failed bool
}

// maxGaps bounds the repetitions of a run. A run is repeated if exits are missing because reframe was stopped.
const maxGaps = 10

// attempt runs the command once. It returns an error if the run has no result. It repeats a run in which exits are missing because reframe was
// stopped, as the numbers of exits would be wrong.
func (s *stresser) attempt(ctx context.Context, p plan) (*attempt, error) {
	for range maxGaps {
		a, missing, err := s.runOnce(ctx, p)
		if err != nil && missing == 0 || ctx.Err() != nil {
			return nil, err
		}
		if missing == 0 {
			return a, nil
		}
	}
	return nil, fmt.Errorf("exits are missing in each of %d runs, because reframe was stopped", maxGaps)
}

// runOnce runs the command. missing is the time for which the process ran without breakpoints, so that exits may be missing; 0 for none.
func (s *stresser) runOnce(ctx context.Context, p plan) (made *attempt, missing time.Duration, err error) {
	run, cancel := s.timed(ctx)
	defer cancel()
	io, err := newStreams()
	if err != nil {
		return nil, 0, err
	}
	w := &walker{stresser: s, ctx: run, plan: p, result: &attempt{reasons: trace.Reasons{}}, numbers: map[int]uint64{}, native: map[int]uint64{}, passing: map[int]uint64{}, last: time.Now()}
	defer io.finish(&w.result.Outcome)
	if w.session, err = s.controlled(run, io); err != nil {
		return nil, 0, err
	}
	o := &s.options
	filter := o.ExitFilter
	filter.AtReturn, filter.AtPatchpointReturn = true, o.With != ""
	defer func() { w.child.Close() }()
	watched := trace.Options{Options: o.Options, ExitFilter: filter, At: o.At, Full: true, Wait: true, Warn: s.warn, Wants: w.wants}
	watched.MapsInQuestion = true
	if o.Describe != nil {
		watched.Describe = o.Describe(s.warn)
	}
	w.watcher = trace.NewWatcher(w.session, watched, w.handleExit)
	err = w.watcher.Run(run, w.afterEvent)
	w.result.idle = time.Since(w.last)
	if list, late := w.session.Hits(); late == nil { // the session also counts exits that were passed without a stop after the last reported one
		w.result.exits = 0
		for _, h := range list {
			w.result.exits += h.Count
		}
		w.result.exits -= w.nativeExits
	}
	var over trace.End
	over, w.result.overwritten, _ = w.watcher.Finish()
	missing = w.watcher.Gaps()
	w.result.TimedOut = err != nil && (w.endless || errors.Is(context.Cause(run), errTime))
	switch late := w.session.Kill(over.Kind == trace.EndExited || over.Kind == trace.EndKilled); {
	case ctx.Err() != nil:
		return nil, missing, context.Cause(ctx)
	case w.result.TimedOut:
	case err != nil:
		return nil, missing, err
	case late != nil:
		return nil, missing, late
	}
	w.result.ExitCode, w.result.Signal = over.ExitCode, over.Signal
	return w.result, missing, nil
}

// wants counts a hit, and reports whether to handle it.
func (w *walker) wants(thread machine.Thread, _ []*trace.Tracepoint) bool {
	w.last = time.Now()
	passed := w.passing[thread.ID] + 1
	w.passing[thread.ID] = 0
	w.result.exits += passed
	if w.endless = w.bound > 0 && w.result.exits > w.bound; w.endless {
		return false
	}
	w.numbers[thread.ID] += passed
	w.native[thread.ID] += passed
	e := Exit{w.index(thread.ID), w.numbers[thread.ID]}
	w.hit = hit{exit: e, do: w.plan.at(e), tid: thread.ID}
	if w.hit.do == interpret {
		w.result.chosen++
	}
	return w.hit.do != skip
}

// index returns the index of a thread by its id: threads are created in the same order in each run.
func (w *walker) index(tid int) int {
	pid := w.session.PID()
	at, known := slices.BinarySearch(w.threads, age(pid, tid))
	if !known {
		w.threads = append(w.threads, age(pid, tid))
		if t, err := w.session.Target(); err == nil {
			for _, other := range t.Threads() {
				w.threads = append(w.threads, age(pid, other.ID))
			}
		}
		slices.Sort(w.threads)
		w.threads = slices.Compact(w.threads)
		at, _ = slices.BinarySearch(w.threads, age(pid, tid))
	}
	return at + 1
}

// age returns a number that orders threads by creation. The first thread has the id of the process; after the highest id the kernel continues with
// low ones (pid_max, at most 1<<22).
func age(pid, tid int) int {
	if tid < pid {
		tid += 1 << 22
	}
	return tid - pid
}

// handleExit handles one record of a hit.
func (w *walker) handleExit(x *trace.Exited) error {
	h := &w.hit
	switch {
	case h.done:
	case h.do == runNative:
		if to, ok := x.Returns(slices.Index(x.Frames, x.Frame)); ok {
			to.Pops = abi.ArgumentArea(x.Frame.NativeFunction(), w.watcher.View().Target().Arch())
			w.returns = &to
		}
		h.done = true
	default:
		why, err := w.interpret(x)
		if err != nil {
			return err
		}
		if h.done = why == nil; h.done {
			w.result.committed = append(w.result.committed, h.exit)
		}
		h.why = why
	}
	return nil
}

// interpMemory bounds the memory of a run of the interpreter, in bytes.
const interpMemory = 64 << 20

// interpret runs an exit in the interpreter and commits the result, or returns the reason why it cannot.
func (w *walker) interpret(x *trace.Exited) (why, err error) {
	if why := x.WhyNoRecord(); why != nil {
		return why, nil
	}
	shown := w.hit.exit == w.plan.culprit
	if shown {
		if err := w.recordCulprit(x); err != nil {
			return nil, err
		}
	}
	var out *frame.Resumed
	var c *commit.Commit
	if w.options.With != "" {
		out, c, err = w.prepareWith(x)
	} else {
		out, c, err = commit.Prepare(w.ctx, w.session, x.Stack(), deopt.Limits{Steps: w.options.Steps, Memory: interpMemory})
	}
	if err == nil {
		err = c.Write()
	}
	switch {
	case w.ctx.Err() != nil:
		return nil, context.Cause(w.ctx)
	case endsRuns(err):
		return nil, err
	case err != nil:
		w.hit.failed = isProgramError(err)
		return err, nil
	}
	if shown {
		w.result.culprit.resumed(out)
	}
	return nil, nil
}

// isProgramError reports whether an error of the program, not a limit of the interpreter, ended the run.
func isProgramError(err error) bool {
	run := (*interp.RunError)(nil)
	return errors.As(err, &run) && slices.Contains([]interp.Kind{interp.KindFault, interp.KindUnreachable, interp.KindDivision, interp.KindAbort, interp.KindDepth}, run.Kind)
}

// afterEvent is called after each event. It finishes the action of the last hit, and lets the thread pass the exits without an action.
func (w *walker) afterEvent() error {
	if w.endless {
		return errEndless
	}
	h := w.hit
	w.hit = hit{}
	switch h.do {
	case interpret:
		if !h.done {
			w.result.reasons.Add(h.why)
			if h.failed {
				w.result.failed++
			}
		}
		if w.plan.all > 0 && w.result.chosen == uint64(w.plan.all) {
			return w.watcher.Leave()
		}
	case runNative:
		if err := w.runThrough(h.tid); err != nil {
			return err
		}
	}
	return w.passSkipped(h)
}

// maxSkipped bounds the number of exits for which the plan is evaluated in advance.
const maxSkipped = 1 << 16

// passSkipped lets the thread of a hit run past all exits without an action: reporting each one takes ten times as long.
func (w *walker) passSkipped(h hit) error {
	if h.tid == 0 { // no exit was hit
		return nil
	}
	n := uint64(0)
	for e := h.exit; n < maxSkipped; n++ {
		if e.Number++; w.plan.at(e) != skip {
			break
		}
	}
	if w.bound > 0 {
		n = min(n, w.bound-min(w.bound, w.result.exits))
	}
	if n == 0 {
		return nil
	}
	err := w.session.Pass(h.tid, n)
	if errors.Is(err, ptrace.ErrProcessExited) {
		return nil // the end is reported as an event
	}
	w.passing[h.tid] = n
	return err
}

// runThrough runs only one thread, as native code, to the return of its function.
func (w *walker) runThrough(tid int) error {
	to := w.returns
	w.returns = nil
	if to == nil {
		w.result.uncounted = "the return address of its function is unknown"
		return nil
	}
	run, err := w.session.RunSingleThread(w.ctx, tid, ptrace.SingleThreadOptions{Returns: []ptrace.Return{*to}, Steps: 1, Time: nativeTime})
	switch {
	case errors.Is(err, ptrace.ErrProcessExited):
		return nil // the end is reported as an event
	case err != nil:
		return err
	case run.Stopped != "":
		w.result.uncounted = "native code did not return: " + run.Stopped
	}
	w.native[tid] += run.Passed
	w.nativeExits += run.Passed
	return nil
}

// hits returns the number of times that the process reached a record.
func (w *walker) hits(record uint64) (n uint64, err error) {
	list, err := w.session.Hits()
	for _, h := range list {
		for _, p := range w.watcher.At(h.Addr) {
			if p.Record == record {
				n += h.Count
			}
		}
	}
	return n, err
}

// recordCulprit records the description of an exit, and writes its core.
func (w *walker) recordCulprit(x *trace.Exited) error {
	h := w.hit
	c := culprit(&x.Frame.Frame)
	c.Exit, c.Native, c.TID, c.Thread = h.exit, Exit{h.exit.Thread, w.native[h.tid]}, x.Thread.ID, x.Thread.Name
	var err error
	if c.Hit, err = w.hits(x.Point.Record); err != nil {
		return err
	}
	w.result.culprit = c
	if w.options.Keep == "" {
		return nil
	}
	t, err := w.session.Target()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("stress-%d-%d-%d.core", w.session.PID(), h.exit.Thread, h.exit.Number)
	c.Core, err = t.KeepCore(w.ctx, w.options.Keep, name, ptrace.RecordOptions{Memory: ptrace.Writable, Thread: x.Thread.ID})
	return err
}
