package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// Options select the exits that are verified and set their bounds. Thread of [deopt.Options] excludes the exits of all other threads.
type Options struct {
	deopt.Options
	trace.ExitFilter
	At          []*names.Pattern // as in [trace.Options]
	Skip, Limit uint64           // exits that are skipped first, and how many are verified; 0: no limit
	Every       uint64           // verify only every n-th exit; 0 and 1: all
	// Steps bounds the instructions of the interpreter and of the native code, for each exit; 0: 1,000,000.
	Steps uint64
	Time  time.Duration // bounds the time of the native code for one exit; 0: 10 s
	// Memory bounds, in bytes, the memory of the process that is copied to find the stores of native code; 0: 1 GiB.
	Memory uint64
	Tail   int    // number of last instructions that are reported for a difference; 0: 20
	Keep   string // the directory for a core of each exit with a difference; "": none
	// Picture copies [Verified.Before] with With too, which does not need it.
	Picture bool
	Wait    bool // as in [trace.Options]
	// FromEntry also compares each exit with a run of its function's baseline from the entry. The baseline is the function in which the layouts
	// resume, the function named Baseline in the modules, or the function's own IR. EntriesOf are functions whose activations are verified from the
	// entry, instead of exits.
	FromEntry bool
	// ByLayout does so, if FromEntry is not set, for exits whose resume point a layout describes. If that is not possible, the summary counts the
	// reason ([Summary].ExitOnly).
	ByLayout  bool
	Baseline  string
	EntriesOf []*names.Pattern
	// With is the command of the user's own interpreter, which continues from each exit's VM frames instead of the reference interpreter; "": none.
	// Its standard error goes to Errors. It runs in WithDir ("": the current directory) with the environment WithEnv (nil: that of this process).
	// Describe is as in [trace.Options].
	With    string
	WithDir string
	WithEnv []string
	Errors  io.Writer
	// Answered is called with the answer of With's interpreter and its memory, while the process is still stopped at the exit; nil: no call. Its
	// error ends the verification.
	Answered func(*trace.Exited, *protocol.Answer, *protocol.Overlay) error
	Describe described.Ask
	// For ends the verification after this time, even during an exit; 0: no limit.
	For  time.Duration
	Warn func(string)
}

func (o *Options) setDefaults() {
	if o.Steps == 0 {
		o.Steps = 1e6
	}
	if o.Time == 0 {
		o.Time = 10 * time.Second
	}
	if o.Tail == 0 {
		o.Tail = 20
	}
	o.AtReturn = true
}

// verifier is a verification in progress. Its [deopt.Watcher] reports exits to it.
//
// At an exit all threads are stopped. The interpreter runs from the exit to the return of the function, over a copy-on-write view. Then the thread
// runs natively, while the others are stopped, and the results are compared. On its way it may reach other exits, which are verified in the same way: the pending
// predictions form a stack.
type verifier struct {
	watcher *trace.Watcher
	session *ptrace.Session
	options Options
	ctx     context.Context // of the whole verification
	outcome func(*Verified) error
	pending []*prediction
	// nativeCalls are the native calls in progress.
	nativeCalls []*nativeCall
	call        *call           // the innermost call in progress that the thread is in; nil if it is in none
	memory      *memoryImage    // of the process at the last exit, while a prediction is pending
	child       *protocol.Child // the user's own interpreter; nil before its start
	number      uint64          // number of exits so far, or of entries if EntriesOf is set
	entries     uint64          // number of followed activations
	predictions uint64          // number of followed predictions
	warned      map[string]bool
	checkedCode map[machine.Addr]bool // breakpoints whose code was compared with the module
	hits        map[uint64]uint64
	summary     Summary
	records     skippedRecords
	others      map[sharedFile]bool // files that other processes map
	// lockstep reports whether the owner of a [Beside] waits, who may stop the thread. outer holds the return addresses of its frame's callers.
	lockstep        bool
	outer           []ptrace.Return
	threadEnded     bool   // the thread has ended
	timedOutAtSpeed bool   // native code ran at full speed after its last step, and its time was used up
	stepped         uint64 // native instructions single-stepped for a Beside
	// For ByLayout: the reason why an activation is not followed from its entry, and for each function the number of activations without an exit.
	unfollowed map[ptrace.Return]string
	exitless   map[string]int
}

// Run verifies each exit as it happens, until the process or the verification ends. The process must be stopped when Run begins; the caller detaches.
// Run calls outcome with each outcome, which is valid until outcome returns. An error of outcome ends the verification and is returned.
//
// Run returns the summary with any error. When ctx is done the error is its cause.
func Run(ctx context.Context, s *ptrace.Session, o Options, outcome func(*Verified) error) (*Summary, error) {
	o.setDefaults()
	o.MapsInQuestion = true
	o.Warn = warnOnce(o.Warn)
	if o.For > 0 { // the deadline also stops the interpreter and native code
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.For, errTimeUp)
		defer cancel()
	}
	v := &verifier{session: s, options: o, ctx: ctx, outcome: outcome, hits: map[uint64]uint64{}, warned: map[string]bool{}, checkedCode: map[machine.Addr]bool{}, unfollowed: map[ptrace.Return]string{}, exitless: map[string]int{}}
	at := o.At
	if o.EntriesOf != nil {
		at = o.EntriesOf
	}
	v.watcher = trace.NewWatcher(s, trace.Options{Options: o.Options, ExitFilter: o.ExitFilter, At: at, Entries: v.entriesOf(), Wants: v.wants, Full: true, Wait: o.Wait, Warn: o.Warn, Describe: o.Describe}, v.handleExit)
	defer func() { v.child.Close() }()
	v.summary.Reasons, v.summary.ExitOnly, v.summary.SkippedWhy = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	v.records = skippedRecords{}
	kind, err := v.run()
	end, overwritten, took := v.watcher.Finish()
	if kind != "" {
		end.Kind = kind
	}
	v.summary.Overwritten, v.summary.NeverVerified, v.summary.Unwatched = overwritten, v.records.never(), v.watcher.Gaps().Seconds()
	v.summary.finish(end, took)
	return &v.summary, err
}

// processGone is the reason why an exit has no result: the thread ended, by another one's execve(2) or with the process.
const processGone = "the process ended or became another program"

// endReason returns the reason why an exit has no result, for the error that ended its thread.
func endReason(err error) string {
	if errors.Is(err, ptrace.ErrReleased) {
		return ptrace.ErrReleased.Error()
	}
	return processGone
}

// errTimeUp ends a verification when Options.For is over.
var errTimeUp = errors.New("the time for the verification is over")

// errLimit ends a verification when Options.Limit exits are verified.
var errLimit = errors.New("enough exits are verified")

// run verifies until the end, and returns the kind of the end if the watcher does not know it.
func (v *verifier) run() (end string, err error) {
	err = v.watcher.Run(v.ctx, func() error {
		if err := v.runNative(); err != nil {
			if !errors.Is(err, ptrace.ErrGone) {
				return err
			}
			if err := v.handleProcessEnd(endReason(err)); err != nil {
				return err
			}
		}
		if v.limitReached() {
			return errLimit
		}
		return nil
	})
	switch {
	case errors.Is(err, errLimit):
		return trace.EndLimit, nil
	case errors.Is(err, errTimeUp):
		if err = v.abandon(errTimeUp.Error()); errors.Is(err, errTimeUp) {
			err = nil
		}
		return trace.EndTime, err
	case err != nil && v.ctx.Err() != nil:
		return trace.EndInterrupted, err
	}
	return "", err
}

// limitReached reports whether as many exits as Options.Limit are verified or in progress.
func (v *verifier) limitReached() bool {
	return v.options.Limit != 0 && v.summary.Exits >= v.options.Limit
}

// handleExit handles a thread at an exit. It makes a prediction, or records the reason why it cannot.
func (v *verifier) handleExit(x *trace.Exited) error {
	if err := v.locate(stackOf(x.Frames, x.End)); err != nil {
		return err
	}
	if v.isEntry(x.Point) {
		return v.handleEntry(x)
	}
	v.number++
	record := x.Point.Record
	if x.Frame != nil && x.Frame.Record != nil {
		record = x.Frame.Record.ID
	}
	v.hits[record]++
	o, why := &v.options, ""
	switch {
	case v.number <= o.Skip, o.Every > 1 && v.number%o.Every != 0:
		why = skippedByFlags
	case v.limitReached():
		why = skippedByLimit
	default:
		why = v.skipReason(x.Point.Addr)
	}
	if why != "" {
		v.skip(x.Point, 1, why)
		v.countSkipped(record, x.Frame)
		return nil
	}
	v.summary.Exits++
	v.records.of(x.Point).verified++
	if x.Frame != nil {
		v.recordProvenance(x.Point.Addr, func() *frame.CompiledFrom { return deopt.ProvenanceOfFrame(x.Frame) })
	}
	out := &Verified{Exit: x, Number: v.number, Hit: v.hits[record], With: o.With != ""}
	predict := v.predict
	if o.With != "" {
		predict = v.predictWith
	}
	p, err := predict(x, out)
	switch {
	case errors.Is(err, ptrace.ErrGone):
		out.notComparable(endReason(err))
		return v.reportOne(out)
	case errors.Is(err, errTimeUp):
		out.notComparable(errTimeUp.Error())
		return cmp.Or(v.reportOne(out), err)
	}
	if why, ok := asIncomparable(err); ok {
		out.notComparable(why)
	} else if err != nil {
		return err
	}
	if o.Keep != "" && (p != nil || out.Status == Different) { // malformed frames are a difference at once
		t, err := v.session.Target()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("verify-%d-%d.core", v.session.PID(), v.number)
		if out.Core, err = t.KeepCore(v.ctx, o.Keep, name, ptrace.RecordOptions{Memory: ptrace.Writable, Thread: x.Thread.ID}); err != nil {
			return err
		}
	}
	if p == nil {
		v.countSkipped(record, x.Frame)
		return v.reportOne(out)
	}
	e := v.activationOf(p)
	if e != nil {
		v.compareWithEntry(e, p)
	}
	switch {
	case v.byLayout():
		out.exitOnly = v.exitOnlyReason(e, p)
	case e != nil:
		out.exitOnly = out.Baseline.State.Why
	}
	for _, q := range v.pending {
		if q.next.p == nil && !q.next.inexact && q.with == nil && q.entry == nil && q.call == p.call && q.origin.fn == p.origin.fn && q.origin.start.Point == p.origin.start.Point {
			q.next.p = p
		}
	}
	v.addPending(p)
	return nil
}

// addPending adds a prediction to the pending ones.
func (v *verifier) addPending(p *prediction) {
	v.predictions++
	v.pending = append(v.pending, p)
	if !v.call.within(p.call) {
		v.call = p.call
	}
}

// countSkipped records a hit of a record, in a frame (nil: unknown), from which nothing was predicted.
func (v *verifier) countSkipped(record uint64, f *deopt.Frame) {
	for _, q := range v.pending {
		switch {
		case q.entry != nil || q.next.p != nil || q.origin.frame.Record.ID != record:
		case f == nil || f.Physical() == nil:
			q.next.inexact = true
		case f.Physical().CFA == q.origin.to.CFA:
			q.next.between++
		}
	}
}

// handleEntry handles a thread at the entry of a function that is followed.
func (v *verifier) handleEntry(x *trace.Exited) error {
	o := &v.options
	if o.EntriesOf != nil { // entries are verified instead of exits
		v.number++
		if v.number <= o.Skip || o.Every > 1 && v.number%o.Every != 0 {
			v.skip(x.Point, 1, skippedByFlags)
			return nil
		}
	}
	if v.limitReached() || !v.roomForEntry() {
		v.notFollowed(x, "too many activations are followed at once")
		if o.EntriesOf != nil {
			v.skip(x.Point, 1, v.entrySkipReason())
		}
		return nil
	}
	if why := v.reasonNotToFollow(x); why != "" {
		v.notFollowed(x, why)
		return nil
	}
	v.entries++
	v.summary.Exits += oneIf(o.EntriesOf != nil)
	before := len(v.pending)
	err := v.followFromEntry(x)
	why, ok := asIncomparable(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ptrace.ErrGone):
		why = endReason(err)
	case errors.Is(err, errTimeUp):
		why = errTimeUp.Error() // it ends the next wait, too
	case !ok:
		return err
	}
	for _, p := range v.pending[before:] {
		p.finish()
	}
	v.pending = v.pending[:before]
	v.updateCall()
	switch {
	case v.byLayout():
		v.notFollowed(x, why)
		return nil
	case o.EntriesOf == nil:
		why = fmt.Sprintf("@%s is not compared with a baseline from its entry: %s", x.Point.Function, why)
		if !v.warned[why] && len(v.warned) < maxWarned {
			v.warned[why] = true
			o.Warn(why)
		}
		return nil
	}
	out := &Verified{Exit: x, Entry: x.Point.Function, Number: v.entries, Hit: v.entries}
	out.notComparable(why)
	return v.reportOne(out)
}

// entrySkipReason returns the reason why a further activation is not followed from its entry.
func (v *verifier) entrySkipReason() string {
	if v.limitReached() {
		return skippedByLimit
	}
	return fmt.Sprintf("%d activations were followed at once", maxEntries)
}

// entriesPending counts the runs from entries.
func (v *verifier) entriesPending() (n int) {
	for _, p := range v.pending {
		n += int(oneIf(p.entry != nil))
	}
	return n
}

// roomForEntry reports whether one more activation may be followed from its entry, which takes up to two runs.
func (v *verifier) roomForEntry() bool { return v.entriesPending()+2 <= maxEntries }

// recordProvenance records how certain it is that the code at a breakpoint was compiled from the module, and warns if it was not. It asks once for each
// breakpoint.
func (v *verifier) recordProvenance(at machine.Addr, ask func() *frame.CompiledFrom) {
	if v.checkedCode[at] || len(v.checkedCode) == maxWarned {
		return
	}
	v.checkedCode[at] = true
	f := ask() // nil: its module is not known
	if f == nil || slices.Contains(v.summary.CompiledFrom, *f) {
		return
	}
	v.summary.CompiledFrom = append(v.summary.CompiledFrom, *f)
	if f.Sure == string(sites.Contradicted) {
		v.options.Warn(f.Why)
	}
}

// warnOnce drops repeated warnings: a mismatch of a module is found both when breakpoints are set and at an exit.
func warnOnce(warn func(string)) func(string) {
	said := map[string]bool{}
	return func(text string) {
		if said[text] {
			return
		}
		if len(said) < maxWarned {
			said[text] = true
		}
		warn(text)
	}
}

// maxWarned bounds the number of different warnings of one kind.
const maxWarned = 50

func oneIf(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// reportOne reports the outcome of an exit. It removes the core of an exit without a difference.
func (v *verifier) reportOne(out *Verified) error {
	if v.session.Released() { // the compared states may be of different moments
		out.notComparable(endReason(ptrace.ErrReleased))
	}
	if out.Status != Different && out.Core != "" {
		if err := os.Remove(out.Core); err != nil {
			return err
		}
		out.Core = ""
	}
	if out.Status == NotComparable && out.Why == errTimeUp.Error() { // Options.For stopped it, so that it has no result
		v.summary.Exits--
		v.skip(out.Exit.Point, 1, out.Why)
		return nil
	}
	v.summary.add(out)
	return v.outcome(out)
}

// runNative runs native code until no prediction is pending.
func (v *verifier) runNative() error {
	defer func() {
		for _, p := range v.pending { // after an error
			p.finish()
		}
		v.memory, v.nativeCalls, v.call = nil, nil, nil
	}()
	budget := newBudget(&v.options)
	for len(v.pending) > 0 {
		atSpeed := budget.steps == 0
		if atSpeed && !v.mayRunAtSpeed() {
			return v.abandon(fmt.Sprintf("native code did not come to the return: it ran %d instructions", v.options.Steps))
		}
		first := v.pending[0]
		exits, _ := v.exitsPending(0)
		full := exits >= maxInAll || v.options.EntriesOf != nil && !v.roomForEntry() || v.limitReached()
		var before []ptrace.Hits
		var pass []machine.Addr
		if !full && !v.lockstep {
			pass = v.placesWithoutStop()
		}
		if full || pass != nil {
			var err error
			if before, err = v.session.Hits(); err != nil {
				return err
			}
		}
		o := ptrace.AloneOptions{Hits: !full, Pass: pass, Loads: v.options.With != "", Fatal: !v.lockstep, Steps: budget.next(v.lockstep), Time: budget.time, Tail: v.options.Tail}
		hurries := v.atFullSpeed()
		switch {
		case v.call == nil: // the stack has no pending prediction
			for _, p := range v.pending {
				p.native.ranOutside = true
			}
		case v.call.native != nil:
		case hurries, atSpeed:
			for _, p := range v.pending {
				p.native.ranOutside = true // it may have called outside code, unseen
			}
		default:
			o.Inside = v.watcher.Code()
			for _, p := range v.inStep() {
				if p.interp.pending != nil {
					o.Entries = append(o.Entries, p.interp.callee)
				}
			}
			if v.lockstep && o.Entries == nil {
				o.Steps = min(o.Steps, maxStepped-v.stepped)
			}
		}
		if atSpeed { // these instructions are not counted
			o.Steps = 1
		}
		for _, c := range v.callsInProgress() {
			o.Returns = append(o.Returns, c.to)
		}
		o.Returns = append(o.Returns, v.outer...)
		began := time.Now()
		run, err := v.runThread(first.out.Exit.Thread.ID, o)
		if err != nil {
			if errors.Is(err, ptrace.ErrGone) {
				if errors.Is(err, ptrace.ErrReleased) {
					return v.abandon(endReason(err))
				}
				return v.handleProcessEnd("the process ended")
			}
			return err
		}
		if run.Passed > 0 {
			if err := v.countPassed(before, run); err != nil {
				return err
			}
		}
		for _, p := range v.pending {
			p.native.add(run, v.options.Tail)
		}
		for _, p := range v.inStep() { // for the others, these calls are part of a native call
			p.native.addCalls(run.Calls)
		}
		check := budget.spend(run, began)
		v.stepped += run.Steps
		if (check || run.Late) && !v.lockstep {
			done, err := v.endRunaway(run)
			if err != nil {
				return err
			}
			if done {
				return nil
			}
		}
		switch {
		case run.Fatal != 0:
			err = v.handleCrash(run)
		case run.Late && v.lockstep && budget.time > minTime:
			err = context.Cause(v.ctx) // nil: continue
		case run.Late && v.lockstep:
			err = v.abandon(fmt.Sprintf("native code did not come to a site: it took over %v", v.options.Time))
		case run.Stopped != "" && v.threadEnded:
			err = v.handleProcessEnd("native code did not come to the return: " + run.Stopped)
		case run.Stopped != "" && !hurries && v.atFullSpeed(): // continue at full speed
		case run.Stopped != "" && check && !run.Late && run.Steps >= o.Steps && budget.steps > 0 && !atSpeed: // stopped for the check
		case run.Stopped != "" && !run.Late && budget.steps == 0 && !atSpeed && v.mayRunAtSpeed():
		case run.Stopped != "":
			v.timedOutAtSpeed = v.timedOutAtSpeed || atSpeed && run.Late
			err = v.abandon("native code did not come to the return: " + v.bounded(run, &o))
		case run.Return >= 0:
			err = v.handleReturn(run)
		case run.Entered != 0:
			err = v.handleCall(run)
		default:
			begun := v.predictions
			err = v.watcher.HandleHit(run.Hit, run.Thread)
			// Start a new budget only for a new prediction: a program may load code, and a recursion may pass sites, without end.
			if v.predictions > begun || v.lockstep && !run.Load {
				budget = newBudget(&v.options)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayRunAtSpeed reports whether native code that has used up its steps may run at full speed for the rest of its time, to the return or crash of a
// whole activation, which cannot be compared at a next hit.
func (v *verifier) mayRunAtSpeed() bool { return v.options.EntriesOf != nil && !v.timedOutAtSpeed }

// bounded returns the reason why native code was stopped. It names the whole bound, not the rest that was left after calls and exits.
func (v *verifier) bounded(run *ptrace.AloneRun, o *ptrace.AloneOptions) string {
	switch {
	case run.Late:
		return fmt.Sprintf("it took over %v", v.options.Time)
	case run.Steps >= o.Steps:
		return fmt.Sprintf("it ran %d instructions", v.options.Steps)
	}
	return run.Stopped
}

// countPassed counts the exits that the thread passed without a stop.
func (v *verifier) countPassed(before []ptrace.Hits, run *ptrace.AloneRun) error {
	after, err := v.session.Hits()
	if err != nil {
		return err
	}
	counted := map[machine.Addr]uint64{}
	for _, h := range before {
		counted[h.Addr] = h.Count
	}
	for _, h := range after {
		n := h.Count - counted[h.Addr]
		if n > 0 && h.Addr == run.Hit && !run.Load {
			n-- // where it stopped
		}
		for _, point := range v.watcher.At(h.Addr) {
			if point.Entry {
				continue
			}
			v.number += n
			v.hits[point.Record] += n
			why := v.skipReason(h.Addr)
			if v.limitReached() {
				why = skippedByLimit
			} else if v.options.EntriesOf != nil {
				why = v.entrySkipReason()
			}
			v.skip(point, n, why)
			if n > 0 {
				v.countSkipped(point.Record, nil)
			}
		}
	}
	return nil
}

// handleProcessEnd handles the end of the process.
func (v *verifier) handleProcessEnd(why string) error {
	for _, p := range v.inStep() {
		if p.native.signal != 0 && p.native.handling && !v.lockstep {
			return v.concludeCrash(fatal{signal: p.native.signal, handler: true})
		}
	}
	return v.abandon(why)
}

// abandon gives up the pending predictions.
func (v *verifier) abandon(why string) error {
	pending := v.pending
	v.pending, v.nativeCalls, v.call = nil, nil, nil
	for _, p := range pending {
		p.finish()
		p.out.Native.Steps = p.native.steps
		if e := p.entry; e != nil && v.byLayout() {
			v.unfollow(p.origin.to, "the run from its entry was given up: "+why)
			if e.exits == 0 { // so would be the next activation
				v.exitless[e.function] = maxExitless
			}
		}
		if !v.comparison(p).atNextHit() {
			p.out.notComparable(why)
		}
	}
	return v.reportAll(pending)
}

// handleReturn handles the calls that the thread has returned from. Several exits of one activation return together, and a jump may have called a callee.
// A call that is still pending from a returned activation was left without a return.
func (v *verifier) handleReturn(run *ptrace.AloneRun) error {
	regs := run.Thread.Registers
	sp, err := regs.Addr(regs.Arch().SP)
	if err != nil {
		return err
	}
	pc, err := regs.Addr(regs.Arch().PC)
	if err != nil {
		return err
	}
	found := false
	for {
		c := innermost(slices.DeleteFunc(v.callsInProgress(), func(c *call) bool { return !c.returned(pc, sp) }))
		switch {
		case c == nil && found:
			return nil
		case c == nil: // a caller further out has returned
			return v.abandon(leftWithoutReturn)
		case c.native != nil:
			err = v.handleCalleeReturn(c.native, regs)
		default:
			err = v.compareReturned(c, regs)
		}
		if err != nil {
			return err
		}
		found = true
	}
}

// compareReturned compares the predictions that are pending in an activation that has returned.
func (v *verifier) compareReturned(c *call, regs *machine.Registers) error {
	var done, rest []*prediction
	for _, p := range v.pending {
		if p.call.within(c) {
			done = append(done, p)
		} else {
			rest = append(rest, p)
		}
	}
	waits := v.endNativeCalls(func(x *nativeCall) bool { return x.call.within(c) })
	v.pending, v.call = rest, c.outer
	v.updateCall()
	for _, p := range slices.Backward(done) {
		p.finish()
		switch {
		case p.call != c:
			p.out.notComparable(leftWithoutReturn)
		case waits[p]:
			p.out.notComparable(p.leftCallReason())
		default:
			v.comparison(p).atReturn(regs)
		}
	}
	return v.reportAll(done)
}

// reportAll reports the predictions that are done, innermost first. The exits of an activation have a verdict once all of it is compared.
func (v *verifier) reportAll(done []*prediction) error {
	for _, p := range done {
		if p.entry != nil && p == p.entry.baseline {
			p.entry.conclude()
			v.exitless[p.entry.function] += int(oneIf(p.entry.exits == 0))
		}
	}
	for _, p := range done {
		if e := p.out.entry; e != nil {
			e.setVerdict(p.out)
		}
	}
	for _, p := range slices.Backward(done) {
		e := p.entry
		switch {
		case e != nil && p == e.own: // the baseline's prediction reports the activation
		case e != nil && v.options.EntriesOf == nil && (p.out.Status != Different || e.exits > 0 || v.byLayout()): // its exits report it
		default:
			if e != nil && v.options.EntriesOf == nil {
				v.summary.Entries++
			}
			if err := v.reportOne(p.out); err != nil {
				return err
			}
		}
	}
	return nil
}
