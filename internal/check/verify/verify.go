package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// verifier is a verification in progress. Its [trace.Watcher] reports exits to it.
//
// At an exit all threads are stopped. The interpreter runs from the exit to the return of the function, over a copy-on-write view. Then the thread
// runs as native code, while the others are stopped, and the results are compared. Before it returns it may reach other exits, which are verified in
// the same way, so the pending predictions form a stack.
type verifier struct {
	watcher *trace.Watcher
	session *ptrace.Session
	options Options
	ctx     context.Context // context of the whole verification
	outcome func(*Verified) error
	progress
	memory      *memoryImage    // memory of the process at the last exit, while a prediction is pending
	child       *protocol.Child // the user's own interpreter; nil before its start
	number      uint64          // number of exits so far, or of entries if EntriesOf is set
	entries     uint64          // number of followed activations
	predictions uint64          // number of predictions so far
	warned      map[string]bool
	checkedCode map[machine.Addr]bool // breakpoints whose code was compared with the module
	hits        map[uint64]uint64
	summary     Summary
	records     skippedRecords
	shared      sharedFiles
	// lockstep is true if the verifier belongs to a [Lockstep], whose owner may stop the thread. outer holds the return addresses of the callers of the
	// Lockstep's frame.
	lockstep        bool
	outer           []ptrace.Return
	threadEnded     bool   // the thread has ended
	timedOutAtSpeed bool   // native code ran at full speed after its last step, and its time was used up
	stepped         uint64 // native instructions single-stepped for a Lockstep
	// These are for ByLayout: the reason why an activation is not followed from its entry, and for each function the number of activations without an
	// exit.
	unfollowed map[ptrace.Return]error
	exitless   map[string]int
	groups     map[string]int // index in Summary.Groups, by key
}

// Run verifies each exit as it happens, until the process or the verification ends. The process must be stopped when Run begins; the caller detaches.
// Run passes each result to outcome; the result is valid until outcome returns. An error from outcome ends the verification, and Run returns it.
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
	v := &verifier{session: s, options: o, ctx: ctx, outcome: outcome, hits: map[uint64]uint64{}, warned: map[string]bool{}, checkedCode: map[machine.Addr]bool{}, unfollowed: map[ptrace.Return]error{}, exitless: map[string]int{}}
	at := o.At
	if o.EntriesOf != nil {
		at = o.EntriesOf
	}
	v.watcher = trace.NewWatcher(s, trace.Options{Options: o.Options, ExitFilter: o.ExitFilter, At: at, Entries: v.entriesOf(), Wants: v.wants, Full: true, WatchCalls: true, Wait: o.Wait, Warn: o.Warn, Describe: o.Describe}, v.handleExit)
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

// processGone is the reason why an exit has no result: the thread ended with the process, or because another thread called execve(2).
const processGone = "the process ended or became another program"

// endReason returns the reason why an exit has no result, for the error that ended its thread.
func endReason(err error) string {
	if errors.Is(err, ptrace.ErrReleased) {
		return ptrace.ErrReleased.Error()
	}
	return processGone
}

// errTimeUp ends a verification after the time Options.For.
var errTimeUp = errors.New("the time for the verification is over")

// errLimit ends a verification when Options.Limit exits are verified.
var errLimit = errors.New("enough exits are verified")

// run verifies until the end, and returns the kind of the end if the watcher does not know it.
func (v *verifier) run() (end string, err error) {
	err = v.watcher.Run(v.ctx, func() error {
		if err := v.runNative(); err != nil {
			if !errors.Is(err, ptrace.ErrProcessExited) {
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

// limitReached reports whether Options.Limit exits are verified or in progress.
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
	case errors.Is(err, ptrace.ErrProcessExited):
		out.notComparable(errors.New(endReason(err)))
		return v.reportOne(out)
	case errors.Is(err, errTimeUp):
		out.notComparable(errTimeUp)
		return cmp.Or(v.reportOne(out), err)
	}
	if why, ok := asIncomparable(err); ok {
		out.notComparable(why)
	} else if err != nil {
		return err
	}
	if o.Keep != "" && (p != nil || out.Status == Different) { // malformed frames are a difference without a prediction
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
	case o.With != "":
	case v.byLayout():
		out.exitOnly = v.exitOnlyReason(e, p)
	case e != nil:
		out.exitOnly = out.Baseline.State.reason
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

// countSkipped counts a hit that is not verified, for the pending exits of the same record in the same activation. f is the frame of the hit, nil if
// unknown.
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
		v.notFollowed(x, errors.New("too many activations are followed at once"))
		if o.EntriesOf != nil {
			v.skip(x.Point, 1, v.entrySkipReason())
		}
		return nil
	}
	if why := v.reasonNotToFollow(x); why != "" {
		v.notFollowed(x, errors.New(why))
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
	case errors.Is(err, ptrace.ErrProcessExited):
		why = errors.New(endReason(err))
	case errors.Is(err, errTimeUp):
		why = errTimeUp // errTimeUp also ends the next wait
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
		text := fmt.Sprintf("@%s is not compared with a baseline from its entry: %v", x.Point.Function, why)
		if !v.warned[text] && len(v.warned) < maxWarned {
			v.warned[text] = true
			o.Warn(text)
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
	return fmt.Sprintf("too many runs from entries are pending; the limit is %d", maxEntries)
}

// recordProvenance records the certainty that the code at a breakpoint was compiled from the module, and warns if it was not. It calls ask once for
// each breakpoint.
func (v *verifier) recordProvenance(at machine.Addr, ask func() *frame.CompiledFrom) {
	if v.checkedCode[at] || len(v.checkedCode) == maxWarned {
		return
	}
	v.checkedCode[at] = true
	f := ask() // nil if the module is unknown
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
	out.conclude(v.session.Released())
	v.group(out)
	if (out.Status != Different || out.SameAs != 0) && out.Core != "" {
		if err := os.Remove(out.Core); err != nil {
			return err
		}
		out.Core = ""
	}
	if out.Status == NotComparable && out.reason == errTimeUp { // Options.For stopped the exit, so it has no result
		v.summary.Exits--
		v.skip(out.Exit.Point, 1, out.Why)
		return nil
	}
	v.summary.add(out)
	return v.outcome(out)
}

// conclude sets the final verdict of an exit. If the process was released in the meantime, states that were compared after the exit may be from
// different moments. Only a difference at the exit then counts.
func (v *Verified) conclude(released bool) {
	if released {
		v.notComparable(ptrace.ErrReleased)
		if v.VMState != nil && v.VMState.atReturn {
			v.VMState = nil
		}
	}
	if v.VMState.different() {
		v.Status, v.Why = Different, ""
	}
}

// reportAll reports the predictions that are done, innermost first. The exits of an activation get a verdict once the whole activation is compared.
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
		case e != nil && v.options.EntriesOf == nil && (p.out.Status != Different || e.exits > 0 || v.byLayout()): // the exits of the activation report it
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
