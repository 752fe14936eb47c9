package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// Config holds the modules, layouts and options of a session.
type Config struct {
	deopt.Options
	Limits deopt.Limits // limits of the interpreter's run from an exit
	// Describe is called once for each file and each registered object, and returns the modules and layouts that it contains, as in [trace.Options]. It
	// may be nil.
	Describe described.Ask
	// With starts the virtual machine's own interpreter, which replaces the reference interpreter for resuming from exits. It is called again if that
	// interpreter has ended. It may be nil.
	With func(context.Context, *ptrace.Target) (*protocol.Child, error)
	// Warn receives warnings for the user. It is not nil.
	Warn func(string)
}

// Session is a debugging session with a target. It is not safe for concurrent use. Its results are valid until the target resumes.
type Session struct {
	config  Config
	asked   map[*object.Image]bool
	process *ptrace.Session // nil for a core
	core    *ptrace.Target  // nil for a process

	breakpoints []*Breakpoint
	number      int // number of the last breakpoint that was set
	stop        Stop

	view      *deopt.View // the view of the current stop; nil until it is needed
	unsourced bool        // the source positions of the view's frames were not read yet
	thread    int         // number of the selected thread
	level     int         // the selected line of the backtrace

	stack  *deopt.Stack    // the frames from which the interpreter runs; nil without a run
	run    *Run            // the run of the interpreter, or nil
	vm     *VMRun          // the run of the virtual machine's interpreter, or nil
	child  *protocol.Child // that interpreter; nil until it is started
	pair   *Pair           // the last pair since the process last resumed, or nil
	result string          // the user's result of the call that the innermost frame waits for
	done   []Done
}

// Done is a user's action at the current exit, which a script can repeat.
type Done struct{ Slot, Value string }

// OfProcess starts a session with a stopped process. The caller closes the process.
func OfProcess(p *ptrace.Session, c Config) *Session { return &Session{config: c, process: p} }

// Still names the kind of a target that does not run: a core, or a process that a debugger holds. It returns "" for a process.
func (s *Session) Still() string {
	switch {
	case s.core == nil:
		return ""
	case s.core.Debugger != "":
		return "a process that a debugger holds"
	}
	return "a core"
}

// OfCore starts a session with a core, or with another stopped target. The caller closes the target.
func OfCore(t *ptrace.Target, c Config) *Session { return &Session{config: c, core: t} }

// learn returns the modules and layouts that an image contains.
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

// Runs reports whether the target is a process that has not ended.
func (s *Session) Runs() bool { return s.process != nil && s.stop.Why != Ended }

// errEndedProcess is returned after the process has ended.
var errEndedProcess = errors.New("the process has ended")

// Target returns the target, or an error if the process has ended.
func (s *Session) Target() (*ptrace.Target, error) {
	switch {
	case s.core != nil:
		return s.core, nil
	case s.stop.Why == Ended:
		return nil, errEndedProcess
	}
	return s.process.Target()
}

// View returns the frames of all threads at this moment.
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
	o := s.config.Options
	o.Direct = true
	v, err := deopt.Frames(t, o)
	if err != nil {
		return nil, err
	}
	v.Sources(deopt.QuickSources)
	s.look(v)
	return v, nil
}

// look makes v the view of the current stop. It selects the innermost frame with a record or, without one, the first thread's innermost frame.
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

// moved discards the view and everything derived from it, after the process has moved.
func (s *Session) moved() {
	s.view, s.result = nil, ""
	s.leaveRun()
	s.done, s.pair = nil, nil
}

// leaveRun discards the interpreter's run.
func (s *Session) leaveRun() { s.stack, s.run, s.vm = nil, nil, nil }

// Modules lists the known modules: the given ones, and those that the target has contained so far.
func (s *Session) Modules() []*ir.Module { return s.config.Modules }

// Threads lists the threads of the target.
func (s *Session) Threads() ([]deopt.Thread, error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	return v.Threads, nil
}

// Thread returns the selected thread.
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
	return nil, errors.New("no thread could be read")
}

// SetThread selects another thread, at its innermost frame with a record. It discards an interpreter's run.
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
	// Run is the function in which the interpreter is stopped; nil for other lines.
	Run *Frame
	// VM is the method in which the virtual machine's interpreter is stopped; nil for other lines.
	VM *VMLevel
	// Physical is the physical frame; nil for a line of an interpreter.
	Physical *deopt.Frame
}

// Levels lists the backtrace of the selected thread, innermost first. The functions of an interpreter's run replace the frames from which it
// started.
func (s *Session) Levels() ([]Level, error) {
	t, err := s.Thread()
	if err != nil {
		return nil, err
	}
	return s.LevelsOf(t.ID)
}

// LevelsOf is [Session.Levels] for any thread.
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

// place returns the index of the frame from which the interpreter started, or -1 if its function has returned. Native code may have moved since
// ([Session.Both]).
func (s *Session) place(frames []*deopt.Frame, taken *deopt.Frame) int {
	if n := slices.Index(frames, taken); n >= 0 || s.pair == nil {
		return n
	}
	return slices.IndexFunc(frames, func(f *deopt.Frame) bool {
		return f.Physical().NoCFA == "" && f.CFA == taken.CFA && f.Function == taken.Function
	})
}

// Level returns the selected line of the backtrace.
func (s *Session) Level() (Level, error) {
	list, err := s.Levels()
	switch {
	case err != nil:
		return Level{}, err
	case s.level >= len(list):
		return Level{}, fmt.Errorf("frame %d not found; there are %d", s.level, len(list))
	}
	return list[s.level], nil
}

// SetLevel selects a line of the backtrace.
func (s *Session) SetLevel(n int) error {
	list, err := s.Levels()
	switch {
	case err != nil:
		return err
	case n < 0 || n >= len(list):
		return fmt.Errorf("frame %d not found; frames are 0 to %d", n, len(list)-1)
	}
	s.level = n
	return nil
}

// Run returns the interpreter's run, or nil.
func (s *Session) Run() *Run { return s.run }

// Resume starts a run of the interpreter at the selected frame, or returns the current run.
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

// picked returns the selected frame as a stack that can be resumed.
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

// here returns the view and the selected line of the backtrace.
func (s *Session) here() (*deopt.View, Level, error) {
	v, err := s.View()
	if err != nil {
		return nil, Level{}, err
	}
	at, err := s.Level()
	return v, at, err
}

// threadOnly returns a view of the selected thread only.
func (s *Session) threadOnly(v *deopt.View) *deopt.View {
	one := *v
	one.Threads = slices.DeleteFunc(slices.Clone(v.Threads), func(t deopt.Thread) bool { return t.ID != s.thread })
	return &one
}

// LeaveRun returns to the exit: it discards the interpreter's run, and selects the physical frame again.
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

// SetResult sets the result of the call that the resumed frame waits for.
func (s *Session) SetResult(text string) {
	s.LeaveRun()
	s.result = text
}

// Set changes a slot of the selected frame for the interpreter; the target does not change. A current run restarts at the exit. It returns the
// changed slot.
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
			return nil, fmt.Errorf("slot %s names no value of a module, so interpreted code cannot use it", slot)
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

// Stop describes the place and the reason of a stop. The zero value describes a target that has not been resumed yet.
type Stop struct {
	Why        Reason
	Breakpoint *Breakpoint // the breakpoint that was hit
	End        trace.End   // how the process ended
}

// Reason is the reason why a target is stopped.
type Reason int

// These are the values of [Reason].
const (
	Began       Reason = iota // the target has not been resumed yet
	AtExit                    // it hit a breakpoint
	Interrupted               // the user interrupted it
	Stepped                   // it ran to the next site together with the interpreter
	Committed                 // the interpreter's result was written into it
	Different                 // it has passed an exit after which native code and the interpreter differ
	Ended                     // the process has ended
	Reversed                  // it went back, or failed to
	AtEntry                   // it went back to the entry of an activation
	AtWrite                   // it went back to before the last write of a slot
	AtBegin                   // it went back to the start of the recording
)

// Stop returns the place and the reason of the current stop.
func (s *Session) Stop() Stop { return s.stop }

// Continue resumes the process to the next exit with a breakpoint, or to its end. When ctx is done it stops the process, and returns no error.
func (s *Session) Continue(ctx context.Context) (Stop, error) {
	if s.process == nil {
		return s.stop, fmt.Errorf("cannot run native code in %s: step, until and finish run the interpreter", s.Still())
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
	o.Selects = func(x *trace.Exited) bool {
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

// toEnd runs the process to its end.
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

// interrupted handles a process that was stopped while it ran.
func (s *Session) interrupted(ctx context.Context, err error) (Stop, error) {
	if ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) || errors.Is(err, ptrace.ErrProcessExited) {
		return s.stop, err
	}
	if err := s.process.Stop(); err != nil {
		return s.stop, err
	}
	s.process.Refresh()
	s.stop = Stop{Why: Interrupted}
	return s.stop, nil
}
