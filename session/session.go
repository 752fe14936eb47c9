package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"reframe/deopt"
	"reframe/deopt/described"
	"reframe/deopt/frame"
	"reframe/deopt/ir"
	"reframe/deopt/object"
	"reframe/deopt/sites"
	"reframe/deopt/trace"
	"reframe/deopt/vmlayout"
	"reframe/deopt/vmproto"
	"reframe/ptrace"
)

// Config says what is known about the code of a target.
type Config struct {
	deopt.Options
	Limits deopt.Limits // of the interpreter, from an exit on
	// Describe is asked once of each file and each registered object what it says of itself, as in [trace.Options]. Nil: none is asked.
	Describe described.Ask
	// With starts the virtual machine's own interpreter, which goes on from exits in the place of the reference interpreter: once, and again where it
	// was ended. Nil: there is none.
	With func(context.Context, *ptrace.Target) (*vmproto.Child, error)
	// Warn is given what the user should know. It is not nil.
	Warn func(string)
}

// Session is a target that is debugged. It is not safe for concurrent use; what it returns is good until it goes on.
type Session struct {
	config  Config
	asked   map[*object.Image]bool
	process *ptrace.Session // nil of a core
	core    *ptrace.Target  // nil of a process

	breakpoints []*Breakpoint
	number      int // of the last breakpoint that was set
	stop        Stop

	view      *deopt.View // of this moment; nil where it is to be made
	unsourced bool        // its frames' places in the source were not looked for yet
	thread    int         // its number, that the user looks at
	level     int         // of the backtrace, that the user looks at

	stack  *deopt.Stack   // that the interpreter goes on from; nil where it does not
	run    *Run           // nil where it does not
	vm     *VMRun         // nil where the virtual machine's interpreter does not go on
	child  *vmproto.Child // that interpreter; nil where it has not been started
	pair   *Pair          // the last one; nil where there was none since the process went on
	result string         // what the call returns for which the innermost frame waits
	done   []Done
}

// Done is what was done at this exit that a script can do again.
type Done struct{ Slot, Value string }

// OfProcess begins a session with a process that is stopped. Whoever gives it ends it.
func OfProcess(p *ptrace.Session, c Config) *Session { return &Session{config: c, process: p} }

// OfCore begins a session with a core, or with another target that stands. Whoever gives it closes it.
func OfCore(t *ptrace.Target, c Config) *Session { return &Session{config: c, core: t} }

// learn asks an image what it says of itself.
func (s *Session) learn(where string, img *object.Image) ([]*ir.Module, []*vmlayout.Layout) {
	if s.config.Describe == nil || img == nil || s.asked[img] {
		return nil, nil
	}
	if s.asked == nil {
		s.asked = map[*object.Image]bool{}
	}
	s.asked[img] = true
	modules, layouts := s.config.Describe(where, img)
	for _, m := range modules {
		if !slices.Contains(s.config.Modules, m) {
			s.config.Modules = append(slices.Clip(s.config.Modules), m)
		}
	}
	s.config.VMs = vmlayout.Join(s.config.VMs, layouts)
	return modules, layouts
}

// Runs says that the target is a process that has not ended.
func (s *Session) Runs() bool { return s.process != nil && s.stop.Why != Ended }

// errEndedProcess is the answer to who asks for what is no more.
var errEndedProcess = errors.New("the process has ended")

// Target is what is looked at. The error says that it is no more.
func (s *Session) Target() (*ptrace.Target, error) {
	switch {
	case s.core != nil:
		return s.core, nil
	case s.stop.Why == Ended:
		return nil, errEndedProcess
	}
	return s.process.Target()
}

// View is the frames of all threads at this moment.
func (s *Session) View() (*deopt.View, error) {
	if s.view != nil {
		if s.unsourced {
			s.view.Sources(deopt.QuickSources)
			s.unsourced = false
		}
		return s.view, nil
	}
	s.unsourced = false
	t, err := s.Target()
	if err != nil {
		return nil, err
	}
	sites.EachImage(t, func(where string, img *object.Image) { s.learn(where, img) })
	v, err := deopt.Frames(t, s.config.Options)
	if err != nil {
		return nil, err
	}
	v.Sources(deopt.QuickSources)
	s.look(v)
	return v, nil
}

// look takes a view, and looks at the innermost frame that has a record, or else at the first thread's innermost one.
func (s *Session) look(v *deopt.View) {
	s.view, s.level = v, 0
	if !slices.ContainsFunc(v.Threads, func(t deopt.Thread) bool { return t.ID == s.thread }) && len(v.Threads) > 0 {
		s.thread = v.Threads[0].ID
	}
	if stack, err := v.Pick(deopt.Choice{Frame: -1}); err == nil {
		s.thread = stack.Thread.ID
		s.level = slices.Index(stack.Thread.Frames, stack.Frames[0])
	}
}

// moved forgets what was seen: the process is elsewhere.
func (s *Session) moved() {
	s.view, s.result = nil, ""
	s.leaveRun()
	s.done, s.pair = nil, nil
}

// leaveRun gives the interpreter's run up.
func (s *Session) leaveRun() { s.stack, s.run, s.vm = nil, nil, nil }

// Modules are those that are known: that were given, and that the target has told so far.
func (s *Session) Modules() []*ir.Module { return s.config.Modules }

// Threads are those of the target, with what is known of each.
func (s *Session) Threads() ([]deopt.Thread, error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	return v.Threads, nil
}

// Thread is the one that is looked at.
func (s *Session) Thread() (*deopt.Thread, error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	for n := range v.Threads {
		if v.Threads[n].ID == s.thread {
			return &v.Threads[n], nil
		}
	}
	return nil, errors.New("no thread could be looked at")
}

// SetThread looks at another thread, at its innermost frame that has a record. An interpreter's run is given up.
func (s *Session) SetThread(id int) error {
	v, err := s.View()
	if err != nil {
		return err
	}
	for n := range v.Threads {
		t := &v.Threads[n]
		if t.ID != id {
			continue
		}
		if id != s.thread {
			s.leaveRun()
		}
		s.thread = id
		s.level = max(0, slices.IndexFunc(t.Frames, func(f *deopt.Frame) bool { return f.Record != nil }))
		return nil
	}
	return deopt.NoThread(v.Target(), id)
}

// Level is a line of the backtrace: a function that the interpreter runs, a method that the virtual machine's interpreter runs, or a physical frame.
type Level struct {
	Number int
	// Run is where the interpreter stands; nil of others.
	Run *Frame
	// VM is where the virtual machine's interpreter stands; nil of others.
	VM *VMLevel
	// Physical is nil of one that the interpreter runs.
	Physical *deopt.Frame
}

// Levels are those of the thread that is looked at, innermost first: where the interpreter goes on, its functions stand in the place of the
// frames that it has taken over.
func (s *Session) Levels() ([]Level, error) {
	t, err := s.Thread()
	if err != nil {
		return nil, err
	}
	return s.LevelsOf(t.ID)
}

// LevelsOf is [Session.Levels] of another thread.
func (s *Session) LevelsOf(thread int) (list []Level, err error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(v.Threads, func(t deopt.Thread) bool { return t.ID == thread })
	if k < 0 {
		return nil, deopt.NoThread(v.Target(), thread)
	}
	frames := v.Threads[k].Frames
	if s.run != nil && thread == s.thread {
		for n, f := range s.run.Frames() {
			list = append(list, Level{Number: n, Run: &f})
		}
		frames = frames[s.place(frames, s.stack.Frames[len(s.stack.Frames)-1])+1:]
	}
	if s.vm != nil && thread == s.thread {
		for _, l := range s.vm.levels() {
			list = append(list, Level{Number: len(list), VM: l})
		}
		frames = frames[slices.Index(frames, s.vm.taken())+1:]
	}
	for _, f := range frames {
		list = append(list, Level{Number: len(list), Physical: f})
	}
	return list, nil
}

// place is which of the frames is one that the interpreter has taken over, -1 where its function has returned: it may have gone on since ([Session.Both]).
func (s *Session) place(frames []*deopt.Frame, taken *deopt.Frame) int {
	if n := slices.Index(frames, taken); n >= 0 || s.pair == nil {
		return n
	}
	return slices.IndexFunc(frames, func(f *deopt.Frame) bool {
		return f.Physical().NoCFA == "" && f.CFA == taken.CFA && f.Function == taken.Function
	})
}

// Level is the line of the backtrace that is looked at.
func (s *Session) Level() (Level, error) {
	list, err := s.Levels()
	switch {
	case err != nil:
		return Level{}, err
	case s.level >= len(list):
		return Level{}, fmt.Errorf("there is no frame %d; there are %d", s.level, len(list))
	}
	return list[s.level], nil
}

// SetLevel looks at another line of the backtrace.
func (s *Session) SetLevel(n int) error {
	list, err := s.Levels()
	switch {
	case err != nil:
		return err
	case n < 0 || n >= len(list):
		return fmt.Errorf("there is no frame %d; they go from 0 to %d", n, len(list)-1)
	}
	s.level = n
	return nil
}

// Run is the interpreter's run; nil where it does not go on from an exit.
func (s *Session) Run() *Run { return s.run }

// Resume has the interpreter stand at the frame that is looked at, ready to go on, unless it stands somewhere already.
func (s *Session) Resume() (*Run, error) {
	if s.run != nil {
		return s.run, nil
	}
	if s.vm != nil {
		s.LeaveRun()
	}
	stack, err := s.picked()
	if err != nil {
		return nil, err
	}
	stack.Result = s.result
	r, err := Start(stack, s.config.Limits)
	if err != nil {
		return nil, err
	}
	s.stack, s.run, s.level = stack, r, 0
	return r, nil
}

// picked is the frame that is looked at, as one that can be resumed.
func (s *Session) picked() (*deopt.Stack, error) {
	v, at, err := s.here()
	if err != nil {
		return nil, err
	}
	if at.Physical == nil {
		return s.stack, nil
	}
	return s.threadOnly(v).Pick(deopt.Choice{Frame: at.Physical.Index})
}

// here is the view, and the line of the backtrace that is looked at.
func (s *Session) here() (*deopt.View, Level, error) {
	v, err := s.View()
	if err != nil {
		return nil, Level{}, err
	}
	at, err := s.Level()
	return v, at, err
}

// threadOnly is a view in which only the thread is that is looked at.
func (s *Session) threadOnly(v *deopt.View) *deopt.View {
	one := *v
	one.Threads = slices.DeleteFunc(slices.Clone(v.Threads), func(t deopt.Thread) bool { return t.ID != s.thread })
	return &one
}

// LeaveRun goes back to the exit itself: the interpreter's run is given up, and the physical frames are looked at again.
func (s *Session) LeaveRun() {
	var taken *deopt.Frame
	switch {
	case s.run != nil:
		taken = s.stack.Frames[0]
	case s.vm != nil:
		taken = s.vm.stack.Frames[0]
	default:
		return
	}
	s.leaveRun()
	s.level = taken.Index
	if t, err := s.Thread(); err == nil {
		s.level = max(0, s.place(t.Frames, taken))
	}
}

// SetResult says what the call returns for which the frame waits that is resumed.
func (s *Session) SetResult(text string) {
	s.LeaveRun()
	s.result = text
}

// Set gives a slot of the frame that is looked at another value, for what the interpreter makes of it; the target stays as it is. A run begins anew at
// the exit. It returns the slot as it is now.
func (s *Session) Set(slot, text string) (*frame.Slot, error) {
	s.LeaveRun()
	v, at, err := s.here()
	if err != nil {
		return nil, err
	}
	f := at.Physical
	is, err := slotOf(f, slot)
	if err != nil {
		return nil, err
	}
	var changed *deopt.View
	if is.OfVM() {
		changed, f, err = v.SetVM(f, is.Name, text)
	} else {
		if is.Name == "" {
			return nil, fmt.Errorf("slot %s has no name by which the code could take it", slot)
		}
		changed, f, err = v.Set(f, is.Name, text)
	}
	if err != nil {
		return nil, err
	}
	s.view = changed
	s.done = append(slices.DeleteFunc(s.done, func(d Done) bool { return d.Slot == is.Name }), Done{is.Name, text})
	return slotOf(f, slot)
}

// Stop is where the target stands, and why. Its zero value is a target that has not gone on yet.
type Stop struct {
	Why        Reason
	Breakpoint *Breakpoint // that it came to
	End        trace.End   // how the process ended
}

// Reason is why a target stands.
type Reason int

// The reasons.
const (
	Began       Reason = iota // nothing has gone on yet
	AtExit                    // it came to a breakpoint
	Interrupted               // the user had it stop
	Stepped                   // it went on beside the interpreter
	Committed                 // what the interpreter came to was written into it
	Different                 // native code and the interpreter came to something else from an exit that it has passed
	Ended                     // the process is no more
)

// Stop is where the target stands.
func (s *Session) Stop() Stop { return s.stop }

// Continue lets the process go on to the next exit at which a breakpoint is, or to its end. When ctx is done it is stopped, which is no error.
func (s *Session) Continue(ctx context.Context) (Stop, error) {
	if s.process == nil {
		return s.stop, errors.New("a core does not go on; step, until and finish have the interpreter go on from here")
	}
	if s.stop.Why == Ended {
		return s.stop, errEndedProcess
	}
	list := slices.DeleteFunc(slices.Clone(s.breakpoints), func(b *Breakpoint) bool { return b.Disabled })
	s.moved()
	if len(list) == 0 {
		return s.toEnd(ctx)
	}
	o := trace.RunToOptions{Options: s.config.Options, Warn: s.config.Warn, Describe: s.learn}
	var filters []trace.ExitFilter
	for _, b := range list {
		if b.At != nil {
			o.At = append(o.At, b.At)
		} else {
			filters = append(filters, b.ExitFilter)
		}
	}
	if o.Sites = len(filters) > 0; o.Sites {
		o.ExitFilter, o.Also = filters[0], filters[1:]
	}
	var hit *Breakpoint
	o.Meant = func(x *trace.Exited) bool {
		for _, b := range list {
			if b.reached(x) {
				hit = cmp.Or(hit, b)
			}
		}
		return hit != nil
	}
	m, err := trace.RunTo(ctx, s.process, o)
	if early := (*trace.NotReachedError)(nil); errors.As(err, &early) {
		if early.Why != "" {
			s.config.Warn(early.Why)
		}
		return s.ended(early.End), nil
	}
	if err != nil {
		return s.interrupted(ctx, err)
	}
	s.stop = Stop{Why: AtExit, Breakpoint: hit}
	if hit.Once {
		s.Delete(hit.Number)
	}
	s.thread = m.View.Threads[0].ID
	s.view, s.unsourced = m.View, true
	s.level = max(0, slices.Index(m.View.Threads[0].Frames, m.Frame))
	return s.stop, nil
}

// toEnd lets the process run to its end.
func (s *Session) toEnd(ctx context.Context) (Stop, error) {
	for {
		e, err := s.process.Next(ctx)
		if err != nil {
			return s.interrupted(ctx, err)
		}
		if e.Kind == ptrace.Ended {
			return s.ended(trace.EndOf(e)), nil
		}
	}
}

func (s *Session) ended(end trace.End) Stop {
	s.stop = Stop{Why: Ended, End: end}
	return s.stop
}

// interrupted stands where a process was stopped that was going on.
func (s *Session) interrupted(ctx context.Context, err error) (Stop, error) {
	if ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) || errors.Is(err, ptrace.ErrGone) {
		return s.stop, err
	}
	if err := s.process.Stop(); err != nil {
		return s.stop, err
	}
	s.process.Refresh()
	s.stop = Stop{Why: Interrupted}
	return s.stop, nil
}
