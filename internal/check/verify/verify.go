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
// runs natively, alone, and the results are compared. On its way it may reach other exits, which are verified in the same way: the pending
// predictions form a stack.
type verifier struct {
	watcher *trace.Watcher
	session *ptrace.Session
	options Options
	ctx     context.Context // of the whole verification
	told    func(*Verified) error
	pending []*prediction
	// crossings are the native calls in progress.
	crossings []*crossing
	now       *call           // the innermost call in progress that the thread is in; nil if it is in none
	memory    *memoryImage    // of the process at the last exit, while a prediction is pending
	child     *protocol.Child // the user's own interpreter; nil before its start
	number    uint64          // number of exits so far, or of entries if EntriesOf is set
	entries   uint64          // number of followed activations
	begun     uint64          // number of followed predictions
	warned    map[string]bool
	asked     map[machine.Addr]bool // breakpoints whose code was compared with the module
	hits      map[uint64]uint64
	summary   Summary
	records   skippedRecords
	others    map[sharedFile]bool // files that other processes map
	// aside reports whether the owner of a [Beside] waits, who may stop the thread. outer holds the return addresses of its frame's callers.
	aside    bool
	outer    []ptrace.Return
	gone     bool   // the thread has ended
	vainly   bool   // native code ran at full speed after its last step, and its time was used up
	followed uint64 // native instructions single-stepped for a Beside
	// For ByLayout: the reason why an activation is not followed from its entry, and for each function the number of activations without an exit.
	unfollowed map[ptrace.Return]string
	vain       map[string]int
}

// Run verifies each exit as it happens, until the process or the verification ends. The process must be stopped when Run begins; the caller detaches.
// Run calls told with each outcome, which is valid until told returns. An error of told ends the verification and is returned.
//
// Run returns the summary with any error. When ctx is done the error is its cause.
func Run(ctx context.Context, s *ptrace.Session, o Options, told func(*Verified) error) (*Summary, error) {
	o.setDefaults()
	o.MapsInQuestion = true
	o.Warn = once(o.Warn)
	if o.For > 0 { // the deadline also stops the interpreter and native code
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.For, errTimeUp)
		defer cancel()
	}
	v := &verifier{session: s, options: o, ctx: ctx, told: told, hits: map[uint64]uint64{}, warned: map[string]bool{}, asked: map[machine.Addr]bool{}, unfollowed: map[ptrace.Return]string{}, vain: map[string]int{}}
	at := o.At
	if o.EntriesOf != nil {
		at = o.EntriesOf
	}
	v.watcher = trace.NewWatcher(s, trace.Options{Options: o.Options, ExitFilter: o.ExitFilter, At: at, Entries: v.entriesOf(), Wants: v.wants, Full: true, Wait: o.Wait, Warn: o.Warn, Describe: o.Describe}, v.exit)
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

// vanished is the reason why an exit has no result: the thread ended, by another one's execve(2) or with the process.
const vanished = "the process ended or became another program"

// gone returns the reason why an exit has no result, for the error that ended its thread.
func gone(err error) string {
	if errors.Is(err, ptrace.ErrReleased) {
		return ptrace.ErrReleased.Error()
	}
	return vanished
}

// errTimeUp ends a verification when Options.For is over.
var errTimeUp = errors.New("the time for the verification is over")

// errEnough ends a verification when Options.Limit exits are verified.
var errEnough = errors.New("enough exits are verified")

// run verifies until the end, and returns the kind of the end if the watcher does not know it.
func (v *verifier) run() (end string, err error) {
	err = v.watcher.Run(v.ctx, func() error {
		if err := v.runNative(); err != nil {
			if !errors.Is(err, ptrace.ErrGone) {
				return err
			}
			if err := v.ended(gone(err)); err != nil {
				return err
			}
		}
		if v.enough() {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
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

// enough reports whether as many exits as Options.Limit are verified or in progress.
func (v *verifier) enough() bool {
	return v.options.Limit != 0 && v.summary.Exits >= v.options.Limit
}

// exit handles a thread at an exit. It makes a prediction, or records the reason why it cannot.
func (v *verifier) exit(x *trace.Exited) error {
	if err := v.locate(stackOf(x.Frames, x.End)); err != nil {
		return err
	}
	if v.isEntry(x.Point) {
		return v.entryHit(x)
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
	case v.enough():
		why = skippedByLimit
	default:
		why = v.tooMany(x.Point.Addr)
	}
	if why != "" {
		v.skip(x.Point, 1, why)
		v.passedBy(record, x.Frame)
		return nil
	}
	v.summary.Exits++
	v.records.of(x.Point).verified++
	if x.Frame != nil {
		v.from(x.Point.Addr, func() *frame.CompiledFrom { return deopt.ProvenanceOfFrame(x.Frame) })
	}
	out := &Verified{Exit: x, Number: v.number, Hit: v.hits[record], With: o.With != ""}
	predict := v.predict
	if o.With != "" {
		predict = v.predictWith
	}
	p, err := predict(x, out)
	switch {
	case errors.Is(err, ptrace.ErrGone):
		out.notComparable(gone(err))
		return v.tell(out)
	case errors.Is(err, errTimeUp):
		out.notComparable(errTimeUp.Error())
		return cmp.Or(v.tell(out), err)
	}
	if err != nil {
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
		v.passedBy(record, x.Frame)
		return v.tell(out)
	}
	e := v.entryOf(p)
	if e != nil {
		v.hold(e, p)
	}
	switch {
	case v.byLayout():
		out.exitOnly = v.exitOnly(e, p)
	case e != nil:
		out.exitOnly = out.Baseline.State.Why
	}
	for _, q := range v.pending {
		if q.next.p == nil && !q.next.inexact && q.with == nil && q.entry == nil && q.call == p.call && q.origin.fn == p.origin.fn && q.origin.start.Point == p.origin.start.Point {
			q.next.p = p
		}
	}
	v.follow(p)
	return nil
}

// follow adds a prediction to the pending ones.
func (v *verifier) follow(p *prediction) {
	v.begun++
	v.pending = append(v.pending, p)
	if !v.now.within(p.call) {
		v.now = p.call
	}
}

// passedBy records a hit of a record, in a frame (nil: unknown), from which nothing was predicted.
func (v *verifier) passedBy(record uint64, f *deopt.Frame) {
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

// entryHit handles a thread at the entry of a function that is followed.
func (v *verifier) entryHit(x *trace.Exited) error {
	o := &v.options
	if o.EntriesOf != nil { // entries are verified instead of exits
		v.number++
		if v.number <= o.Skip || o.Every > 1 && v.number%o.Every != 0 {
			v.skip(x.Point, 1, skippedByFlags)
			return nil
		}
	}
	if v.enough() || !v.roomForEntry() {
		v.notFollowed(x, "too many activations are followed at once")
		if o.EntriesOf != nil {
			v.skip(x.Point, 1, v.whyNoEntry())
		}
		return nil
	}
	if why := v.needless(x); why != "" {
		v.notFollowed(x, why)
		return nil
	}
	v.entries++
	v.summary.Exits += oneIf(o.EntriesOf != nil)
	before := len(v.pending)
	why, err := v.enter(x)
	switch {
	case errors.Is(err, ptrace.ErrGone):
		why, err = gone(err), nil
	case errors.Is(err, errTimeUp):
		why, err = errTimeUp.Error(), nil // it ends the next wait, too
	}
	if err != nil {
		return err
	}
	if why == "" {
		return nil
	}
	for _, p := range v.pending[before:] {
		p.finish()
	}
	v.pending = v.pending[:before]
	v.settle()
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
	return v.tell(out)
}

// whyNoEntry returns the reason why a further activation is not followed from its entry.
func (v *verifier) whyNoEntry() string {
	if v.enough() {
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

// from records how certain it is that the code at a breakpoint was compiled from the module, and warns if it was not. It asks once for each
// breakpoint.
func (v *verifier) from(at machine.Addr, ask func() *frame.CompiledFrom) {
	if v.asked[at] || len(v.asked) == maxWarned {
		return
	}
	v.asked[at] = true
	f := ask() // nil: its module is not known
	if f == nil || slices.Contains(v.summary.CompiledFrom, *f) {
		return
	}
	v.summary.CompiledFrom = append(v.summary.CompiledFrom, *f)
	if f.Sure == string(sites.Contradicted) {
		v.options.Warn(f.Why)
	}
}

// once drops repeated warnings: a mismatch of a module is found both when breakpoints are set and at an exit.
func once(warn func(string)) func(string) {
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

// tell reports the outcome of an exit. It removes the core of an exit without a difference.
func (v *verifier) tell(out *Verified) error {
	if v.session.Released() { // the compared states may be of different moments
		out.notComparable(gone(ptrace.ErrReleased))
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
	return v.told(out)
}

// runNative runs native code until no prediction is pending.
func (v *verifier) runNative() error {
	defer func() {
		for _, p := range v.pending { // after an error
			p.finish()
		}
		v.memory, v.crossings, v.now = nil, nil, nil
	}()
	stretch := newStretch(&v.options)
	for len(v.pending) > 0 {
		atSpeed := stretch.steps == 0
		if atSpeed && !v.followsAtSpeed() {
			return v.abandon(fmt.Sprintf("native code did not come to the return: it ran %d instructions", v.options.Steps))
		}
		first := v.pending[0]
		exits, _ := v.exitsPending(0)
		full := exits >= maxInAll || v.options.EntriesOf != nil && !v.roomForEntry() || v.enough()
		var before []ptrace.Hits
		var pass []machine.Addr
		if !full && !v.aside {
			pass = v.passing()
		}
		if full || pass != nil {
			var err error
			if before, err = v.session.Hits(); err != nil {
				return err
			}
		}
		o := ptrace.AloneOptions{Hits: !full, Pass: pass, Loads: v.options.With != "", Fatal: !v.aside, Steps: stretch.next(v.aside), Time: stretch.time, Tail: v.options.Tail}
		hurries := v.hurries()
		switch {
		case v.now == nil: // the stack has no pending prediction
			for _, p := range v.pending {
				p.native.ranOutside = true
			}
		case v.now.native != nil:
		case hurries, atSpeed:
			for _, p := range v.pending {
				p.native.ranOutside = true // it may have called outside code, unseen
			}
		default:
			o.Inside = v.watcher.Code()
			for _, p := range v.beside() {
				if p.interp.pending != nil {
					o.Entries = append(o.Entries, p.interp.callee)
				}
			}
			if v.aside && o.Entries == nil {
				o.Steps = min(o.Steps, followed-v.followed)
			}
		}
		if atSpeed { // these instructions are not counted
			o.Steps = 1
		}
		for _, c := range v.underWay() {
			o.Returns = append(o.Returns, c.to)
		}
		o.Returns = append(o.Returns, v.outer...)
		began := time.Now()
		run, err := v.alone(first.out.Exit.Thread.ID, o)
		if err != nil {
			if errors.Is(err, ptrace.ErrGone) {
				if errors.Is(err, ptrace.ErrReleased) {
					return v.abandon(gone(err))
				}
				return v.ended("the process ended")
			}
			return err
		}
		if run.Passed > 0 {
			if err := v.pass(before, run); err != nil {
				return err
			}
		}
		for _, p := range v.pending {
			p.native.add(run, v.options.Tail)
		}
		for _, p := range v.beside() { // for the others, these calls are part of a native call
			p.native.addCalls(run.Calls)
		}
		look := stretch.took(run, began)
		v.followed += run.Steps
		if (look || run.Late) && !v.aside {
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
			err = v.crashed(run)
		case run.Late && v.aside && stretch.time > least:
			err = context.Cause(v.ctx) // nil: continue
		case run.Late && v.aside:
			err = v.abandon(fmt.Sprintf("native code did not come to a site: it took over %v", v.options.Time))
		case run.Stopped != "" && v.gone:
			err = v.ended("native code did not come to the return: " + run.Stopped)
		case run.Stopped != "" && !hurries && v.hurries(): // continue at full speed
		case run.Stopped != "" && look && !run.Late && run.Steps >= o.Steps && stretch.steps > 0 && !atSpeed: // stopped for the check
		case run.Stopped != "" && !run.Late && stretch.steps == 0 && !atSpeed && v.followsAtSpeed():
		case run.Stopped != "":
			v.vainly = v.vainly || atSpeed && run.Late
			err = v.abandon("native code did not come to the return: " + v.bounded(run, &o))
		case run.Return >= 0:
			err = v.returned(run)
		case run.Entered != 0:
			err = v.entered(run)
		default:
			begun := v.begun
			err = v.watcher.Arrived(run.Hit, run.Thread)
			// Start a new stretch only for a new prediction: a program may load code, and a recursion may pass sites, without end.
			if v.begun > begun || v.aside && !run.Load {
				stretch = newStretch(&v.options)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// followsAtSpeed reports whether native code that has used up its steps may run at full speed for the rest of its time, to the return or crash of a
// whole activation, which cannot be compared at a next hit.
func (v *verifier) followsAtSpeed() bool { return v.options.EntriesOf != nil && !v.vainly }

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

// pass counts the exits that the thread passed without a stop.
func (v *verifier) pass(before []ptrace.Hits, run *ptrace.AloneRun) error {
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
			why := v.tooMany(h.Addr)
			if v.enough() {
				why = skippedByLimit
			} else if v.options.EntriesOf != nil {
				why = v.whyNoEntry()
			}
			v.skip(point, n, why)
			if n > 0 {
				v.passedBy(point.Record, nil)
			}
		}
	}
	return nil
}

// ended handles the end of the process.
func (v *verifier) ended(why string) error {
	for _, p := range v.beside() {
		if p.native.signal != 0 && p.native.handling && !v.aside {
			return v.ends(fatal{signal: p.native.signal, handler: true})
		}
	}
	return v.abandon(why)
}

// abandon gives up the pending predictions.
func (v *verifier) abandon(why string) error {
	pending := v.pending
	v.pending, v.crossings, v.now = nil, nil, nil
	for _, p := range pending {
		p.finish()
		p.out.Native.Steps = p.native.steps
		if e := p.entry; e != nil && v.byLayout() {
			v.unfollow(p.origin.to, "the run from its entry was given up: "+why)
			if e.exits == 0 { // so would be the next activation
				v.vain[e.function] = maxVain
			}
		}
		if !v.comparison(p).atNextHit() {
			p.out.notComparable(why)
		}
	}
	return v.report(pending)
}

// returned handles the calls that the thread has returned from. Several exits of one activation return together, and a jump may have called a callee.
// A call that is still pending from a returned activation was left without a return.
func (v *verifier) returned(run *ptrace.AloneRun) error {
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
		c := innermost(slices.DeleteFunc(v.underWay(), func(c *call) bool { return !c.returned(pc, sp) }))
		switch {
		case c == nil && found:
			return nil
		case c == nil: // a caller further out has returned
			return v.abandon(left)
		case c.native != nil:
			err = v.cameBack(c.native, regs)
		default:
			err = v.returnedFrom(c, regs)
		}
		if err != nil {
			return err
		}
		found = true
	}
}

// returnedFrom compares the predictions that are pending in an activation that has returned.
func (v *verifier) returnedFrom(c *call, regs *machine.Registers) error {
	var done, rest []*prediction
	for _, p := range v.pending {
		if p.call.within(c) {
			done = append(done, p)
		} else {
			rest = append(rest, p)
		}
	}
	waits := v.waiting(func(x *crossing) bool { return x.call.within(c) })
	v.pending, v.now = rest, c.outer
	v.settle()
	for _, p := range slices.Backward(done) {
		p.finish()
		switch {
		case p.call != c:
			p.out.notComparable(left)
		case waits[p]:
			p.out.notComparable(p.leftCall())
		default:
			v.comparison(p).atReturn(regs)
		}
	}
	return v.report(done)
}

// report reports the predictions that are done, innermost first. The exits of an activation have a verdict once all of it is compared.
func (v *verifier) report(done []*prediction) error {
	for _, p := range done {
		if p.entry != nil && p == p.entry.baseline {
			p.entry.conclude()
			v.vain[p.entry.function] += int(oneIf(p.entry.exits == 0))
		}
	}
	for _, p := range done {
		if e := p.out.entry; e != nil {
			e.judge(p.out)
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
			if err := v.tell(p.out); err != nil {
				return err
			}
		}
	}
	return nil
}
