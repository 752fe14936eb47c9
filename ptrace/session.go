package ptrace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/regset"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/tracer"
)

// Session is a process that runs from one breakpoint to the next. Another process, the tracer (package ptrace/tracer), traces it. When this process
// ends for any reason, the tracer restores the code that was changed. If another debugger holds the process ([OpenSession]), that debugger is used
// instead of the tracer. Operations that it does not support return [ErrLacks].
//
// The process is stopped when a Session begins, and from each event of [Session.Next] that stops it until the next call of Next. A Session is not
// safe for concurrent use.
type Session struct {
	pid     int
	driver  driver
	held    *debugger // the driver, if another debugger holds the process; otherwise nil
	stands  bool      // all threads are stopped, and the caller has not resumed them
	stopped bool      // a signal had stopped the process before it was traced
	ended   bool
	memory  *sessionMemory
	base    *Target  // modules and registered objects, without threads
	kept    bool     // keep the files of base open when the session drops base
	given   []Object // the given objects that the targets include
	stale   bool     // mappings or registered objects may have changed
	changed bool     // the list of registered objects may have changed
	reads   map[machine.Addr][]Read
	vectors map[machine.Addr]bool
	names   map[int]string // names of threads by their numbers

	shadowless []byte // contents of the mappings file at the last check that found no shadow stack

	away time.Time // time at which the process was resumed without breakpoints; zero if it was not
}

// Breakpoint is an address in the code, and the options of the breakpoint there.
type Breakpoint struct {
	Addr machine.Addr
	// Hold stops all threads at each hit until the next call of [Session.Next]. Without Hold, a hit is recorded and the thread resumes immediately.
	Hold bool
	// Uncounted means that each hit is reported, and that Every and Limit do not apply to it. This is for breakpoints that report loaded code.
	Uncounted bool
	// Vectors requests the vector registers in addition to the general ones.
	Vectors bool
	// Hardware requests a debug register; x86-64 has four. The code, which the process may read and overwrite, then stays unchanged. If no debug
	// register is free, or the machine has none, the breakpoint is an ordinary one.
	Hardware bool
	// Reads are ranges of memory that are read at each hit and reported with it.
	Reads []Read
	// Expects is memory whose contents are known. If it is not empty, Hold applies only to hits at which some of that memory differs. It has at most
	// [MaxExpects] parts and [MaxExpected] bytes. If a debugger holds the process, each hit stops all threads.
	Expects []Expected
}

// Expected is memory with known contents. If Data is empty, it is Lost bytes that must be unreadable, which end at or below the address [MaxLost].
type Expected struct {
	Addr machine.Addr
	Data []byte
	Lost int
}

// Read is a range of memory whose address is a register plus an offset. A hit reports at most [MaxReads] of them, each of at most [MaxRead] bytes.
type Read struct {
	Reg    machine.DWARFReg
	Offset int64
	Size   int
}

// Bounds of the memory that is reported with a hit.
const (
	MaxReads    = 64
	MaxRead     = 4096
	MaxExpects  = tracer.MaxExpects
	MaxExpected = tracer.MaxExpected
	MaxLost     = tracer.MaxLost
)

// HardwareBreakpoints returns the number of breakpoints that can be in debug registers at the same time ([Breakpoint].Hardware). It returns 0 on
// virtual machines whose processors never stop at such breakpoints.
func HardwareBreakpoints() int {
	if !tracer.DebugFires() {
		return 0
	}
	return tracer.HardwareBreakpoints
}

// EventKind is the kind of an event.
type EventKind int

const (
	// Hit: a thread reached a breakpoint. With [Breakpoint].Hold all threads are stopped.
	Hit EventKind = iota
	// Exec: the process executed another program, in which no breakpoints are set. The process is stopped.
	Exec
	// Ended: the process has ended; no more events follow.
	Ended
	// LimitReached: the requested number of hits was reached. All counted breakpoints are removed; the process is stopped.
	LimitReached
	// Missed: the process has overwritten a breakpoint, or a thread cannot have it. Hits since the last check may have been missed.
	Missed
	// Away: all breakpoints were removed at Time, and the process was resumed ([Session.Yield], [Session.LetRun]). It runs, even if an earlier event
	// stopped it.
	Away
)

// Event is the result of [Session.Next].
type Event struct {
	Kind EventKind
	Time time.Time
	At   machine.Addr // the address of the breakpoint
	// Number is the number of the counted hit in the session, from 1. Hits that Every skips are also numbered. Without Hold, hits of different
	// threads may arrive in another order than that of their numbers. Hits of one thread arrive in order.
	Number uint64
	// Thread has the registers before the instruction at the breakpoint is executed, including vector registers if the breakpoint requested them.
	Thread machine.Thread
	// Data holds the bytes of each of the breakpoint's Reads. It is nil for a Read that failed.
	Data [][]byte
	// ExitCode and Signal describe the end of a process that the session launched, or traced until its end. Signal is 0 if the process exited.
	ExitCode, Signal int
	// Armed belongs to Missed: it means that the breakpoint is set again. Otherwise Why is the reason, and Thread is the thread that cannot have the
	// breakpoint. The thread's number is 0 if no single thread is the cause.
	Armed bool
	Why   string

	// Held reports, for a hit, that all threads are stopped until the next call of [Session.Next].
	Held bool
}

// Counting selects the hits that [Session.Next] reports. The zero value selects all hits, without a limit.
type Counting struct {
	Every uint64 // report each Every-th hit; 0 and 1 report all
	Limit uint64 // report [LimitReached] after this number of reported hits; 0 for no limit
	Quiet bool   // count hits, also towards the limit, but do not report them
}

// Hits holds the number of hits of a breakpoint.
type Hits struct {
	Addr  machine.Addr
	Count uint64
}

// Open attaches to a running process and stops it.
func Open(ctx context.Context, pid int) (*Session, error) {
	if err := needLive("controlling a running process"); err != nil {
		return nil, &Error{pid, "cannot attach", err, ""}
	}
	if err := exists(pid); err != nil {
		return nil, err
	}
	if err := check64(firstAlive(pid)); err != nil {
		return nil, err
	}
	if pid == os.Getpid() { // the tracer would stop this process, which waits for the tracer
		return nil, &Error{pid, "cannot attach", ErrPermission, (&denial{self: true}).hint()}
	}
	var conn *tracer.Conn
	stopped := false
	err := pastLeaving(pid, func() (err error) {
		stopped = bySignal(pid, firstAlive(pid))
		if conn, err = tracer.Start(true); err != nil {
			return err
		}
		if _, err = conn.Do(tracer.Request{Op: tracer.Attach, PID: pid}); err != nil {
			_ = conn.Close()
			return explain(pid, "cannot attach", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s := newTraced(pid, conn)
	s.stopped = stopped
	return s, nil
}

// Controls returns an error if sessions are not supported on this platform.
func Controls() error { return needLive("controlling a program") }

// LaunchOptions describe how a program is started. The directory, the environment, and the files for standard input, output and errors default to
// those of this process. Group makes the program the leader of a process group. Bound kills it if this process ends without [Session.Detach].
type LaunchOptions tracer.Launching

// Launch starts a traced program, which is stopped before its first instruction. It looks the program up in PATH, as a shell does. The program has
// this process's standard input, output and error.
func Launch(ctx context.Context, command []string) (*Session, error) {
	return LaunchWith(ctx, command, LaunchOptions{})
}

// LaunchWith is like [Launch], with options. The program is looked up from the directory of this process.
func LaunchWith(ctx context.Context, command []string, o LaunchOptions) (*Session, error) {
	if len(command) == 0 {
		return nil, errors.New("no command to start")
	}
	if err := needLive("starting a program"); err != nil {
		return nil, err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, err
	}
	conn, err := tracer.Start(false)
	if err != nil {
		return nil, err
	}
	reply, err := conn.Do(tracer.Request{Op: tracer.Launch, Command: append([]string{path}, command...), Launching: tracer.Launching(o)})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("cannot start %s: %w", command[0], err)
	}
	s := newTraced(reply.PID, conn)
	if err := check64(s.pid); err != nil {
		if p, gone := os.FindProcess(s.pid); gone == nil {
			_ = p.Kill()
		}
		return nil, errors.Join(err, s.Detach())
	}
	return s, nil
}

// Kill ends the session and kills the process. If ended is set, the process has already ended and another one may have its number, so Kill kills
// nothing. A process that another debugger holds is killed only through that debugger, because its number may be that of another machine.
func (s *Session) Kill(ended bool) error {
	if s.held != nil {
		if ended || s.ended {
			return s.Detach()
		}
		s.ended = true
		s.forget()
		if err := s.held.control.Kill(); err != nil {
			return s.failed("cannot kill it", err)
		}
		return nil
	}
	if p, err := os.FindProcess(s.pid); err == nil && !ended {
		_ = p.Kill() // an error means that it has ended
	}
	return s.Detach()
}

// newTraced returns a session with a tracer.
func newTraced(pid int, conn *tracer.Conn) *Session {
	s := newSession(pid, conn)
	s.memory.released = s.Released
	conn.Changed = func(e *tracer.Event) { s.memory.change(machine.Addr(e.Addr), e) }
	return s
}

func newSession(pid int, d driver) *Session {
	return &Session{pid: pid, driver: d, stands: true, memory: &sessionMemory{pid: pid, via: pid, originals: map[machine.Addr]tracer.Code{}},
		reads: map[machine.Addr][]Read{}, vectors: map[machine.Addr]bool{}, names: map[int]string{}}
}

// Stopped reports whether a signal had stopped the process before the session began (SIGSTOP; signal(7)). Such a process runs only after a SIGCONT,
// and stays stopped when the session ends.
func (s *Session) Stopped() bool { return s.stopped }

// PID returns the number of the process.
func (s *Session) PID() int { return s.pid }

// Target returns the process at its current stop. Its memory is read on demand, and is valid until the next call of Next. The caller need not close
// it: the session closes its files.
//
// The Target of a later call has the same pointers to modules and registered objects, unless an Exec or a [Session.Refresh] came between. After a
// Refresh, unchanged modules and objects have the same pointers.
func (s *Session) Target() (*Target, error) {
	if s.ended || !s.stands {
		return nil, s.failed("cannot read it", ErrProcessExited)
	}
	if s.held != nil {
		return s.heldTarget()
	}
	if err := s.survey(); err != nil {
		return nil, err
	}
	reply, err := s.driver.Do(tracer.Request{Op: tracer.Threads})
	if err != nil {
		return nil, s.explain("cannot read its threads", err)
	}
	t := *s.base
	t.memory, t.Stopped = unawaited{s.memory, &t}, s.stopped
	t.threads = nil
	for i := range reply.Threads {
		r := &reply.Threads[i]
		t.threads = append(t.threads, s.thread(r, true))
		if r.Missing == "" {
			t.raw = append(t.raw, coreThread{r.TID, tracerRegisters(r)})
		}
	}
	t.stands = true
	return &t, nil
}

// Give sets the objects that a runtime has copied and not registered. It must be called before [Session.Target], which fails with an [*ObjectError]
// if they are not in memory.
func (s *Session) Give(objects []Object) { s.given = objects }

// survey creates or updates the base of targets.
func (s *Session) survey() error {
	if s.base == nil {
		t := newTarget(s.pid, nil)
		t.wanted = s.given
		if err := t.reading().survey(); err != nil {
			t.Close()
			return err
		}
		t.reading().readAllObjects()
		t.perf.live = true
		s.base, s.stale = t, false
	}
	if s.changed && !s.stale && !s.base.reading().registered() {
		s.stale = true
	}
	s.changed = false
	if s.stale {
		s.base.via = firstAlive(s.pid)
		s.base.perf.via = s.base.via
		if l := s.base.process; l.tid != s.base.via {
			l.mem.Close()
			s.base.process = live(s.base.via)
			s.base.source = s.base.process
		}
		if err := s.base.reading().again(); err != nil {
			return err
		}
		s.stale = false
	}
	if l := s.base.process; l.tid == s.memory.via {
		s.memory.source = l // s.base.process contains the mappings
	}
	return nil
}

// Refresh makes the next [Session.Target] read the mappings and the registered objects again.
func (s *Session) Refresh() { s.stale = true }

// RefreshRegistered makes the next [Session.Target] read only the list of registered objects again. Its duration does not depend on their number. It
// is intended for stops in __jit_debug_register_code.
func (s *Session) RefreshRegistered() { s.changed = true }

// Count sets which hits are reported from now on. The next hit has number 1.
func (s *Session) Count(c Counting) error {
	return s.request("cannot count", tracer.Request{Op: tracer.Count, Counting: tracer.Counting(c)})
}

// Yield sets whether the process may continue without waiting for this one. If on is set, the process is resumed without breakpoints in two cases:
// many hits without [Breakpoint].Hold wait for Next, or a signal has stopped this process for a moment. [Away] follows the earlier events. Until Next
// has returned it, requests of this process fail with [ErrReleased], and so do reads of memory that may have happened after the release.
func (s *Session) Yield(on bool) error {
	return s.request("cannot control it", tracer.Request{Op: tracer.Yield, On: on})
}

// LetRun removes all breakpoints and resumes the process. The process runs until the caller has received [Away] and calls [Session.Stop].
func (s *Session) LetRun() error {
	return s.request("cannot let it run", tracer.Request{Op: tracer.LetRun})
}

// Released reports whether the process runs without breakpoints although Next has stopped it and has not yet returned [Away]. Data that was read from
// the stopped process is valid if Released returns false afterwards.
func (s *Session) Released() bool { return s.stands && s.driver.Released() }

// Away returns the time at which the process was resumed without breakpoints, or the zero time.
func (s *Session) Away() time.Time {
	for _, e := range s.driver.TakeAway() {
		s.released(e)
	}
	return s.away
}

// released records that the process was resumed without breakpoints.
func (s *Session) released(e *tracer.Event) {
	s.memory.originals, s.memory.held = map[machine.Addr]tracer.Code{}, nil
	s.stale, s.stands = true, false
	if s.away.IsZero() {
		s.away = time.Unix(0, e.Time)
	}
}

// failed returns the error of an operation that failed.
func (s *Session) failed(op string, err error) error {
	if s.held == nil {
		return &Error{s.pid, op, err, ""}
	}
	if already := (*HeldError)(nil); errors.As(err, &already) {
		return err
	}
	return &HeldError{s.held.addr, fmt.Errorf("%s: %w", op, err), ""}
}

// explain returns the error of a failed request.
func (s *Session) explain(op string, err error) error {
	if errors.Is(err, syscall.ESRCH) && s.Released() {
		return s.failed(op, ErrReleased)
	}
	if s.held != nil {
		return s.failed(op, err)
	}
	return explain(s.pid, op, err)
}

// Pass makes a thread pass its next n counted hits: these are counted but not reported, whatever the breakpoints' options are. All threads must be
// stopped, and the thread must be at a hit. Hits during [Session.RunSingleThread] do not count towards n.
func (s *Session) Pass(tid int, n uint64) error {
	return s.request("cannot count", tracer.Request{Op: tracer.Pass, TID: tid, Pass: n})
}

// request makes a request whose reply contains only an error.
func (s *Session) request(op string, r tracer.Request) error {
	if s.ended {
		return s.failed(op, ErrProcessExited)
	}
	if _, err := s.driver.Do(r); err != nil {
		return s.explain(op, err)
	}
	return nil
}

// Insert sets breakpoints. A breakpoint that exists gets the new options. The error names the first address that cannot be written; the other
// breakpoints are set.
func (s *Session) Insert(list ...Breakpoint) error {
	r := tracer.Request{Op: tracer.Insert}
	for _, b := range list {
		to := tracer.Breakpoint{Addr: uint64(b.Addr), Hold: b.Hold, Uncounted: b.Uncounted, Vectors: b.Vectors, Hardware: b.Hardware}
		if len(b.Reads) > MaxReads {
			return fmt.Errorf("ptrace: %d reads at %v; the limit of a breakpoint is %d", len(b.Reads), b.Addr, MaxReads)
		}
		for _, read := range b.Reads {
			word, ok := s.registerWord(read.Reg)
			if !ok || read.Size < 0 || read.Size > MaxRead {
				return fmt.Errorf("ptrace: cannot read %d bytes at register %d%+d at each hit of a breakpoint", read.Size, read.Reg, read.Offset)
			}
			to.Reads = append(to.Reads, tracer.Read{Reg: word, Offset: read.Offset, Size: uint32(read.Size)})
		}
		for _, e := range b.Expects {
			to.Expects = append(to.Expects, tracer.Expected{Addr: uint64(e.Addr), Data: e.Data, Lost: uint32(e.Lost)})
		}
		if s.held == nil {
			s.memory.cover(b.Addr)
		}
		s.reads[b.Addr], s.vectors[b.Addr] = b.Reads, b.Vectors
		r.Breakpoints = append(r.Breakpoints, to)
	}
	if s.ended {
		return s.failed("cannot set a breakpoint", ErrProcessExited)
	}
	reply, err := s.driver.Do(r)
	if reply != nil && s.held == nil {
		s.memory.hold(reply.Hardware)
		s.memory.unhandled = reply.Unhandled
	}
	if err != nil {
		return s.explain("cannot set a breakpoint", err)
	}
	if !s.Released() {
		s.away = time.Time{}
	}
	return nil
}

// Look checks whether the process has overwritten breakpoints. It returns a [Missed] event for each, which Next then does not return.
func (s *Session) Look() ([]Event, error) {
	if err := s.request("cannot read it", tracer.Request{Op: tracer.Look}); err != nil {
		return nil, err
	}
	var list []Event
	for _, e := range s.driver.Take(tracer.Missed) {
		list = append(list, s.event(e))
	}
	return list, nil
}

func (s *Session) event(e *tracer.Event) Event {
	return Event{Kind: EventKind(e.Kind), Time: time.Unix(0, e.Time), At: machine.Addr(e.Addr), Number: e.Number, ExitCode: e.Code, Signal: e.Signal, Armed: e.Armed, Why: e.Why,
		Thread: machine.Thread{ID: e.Raw.TID}}
}

// Remove removes breakpoints. Addresses without one are ignored.
func (s *Session) Remove(addrs ...machine.Addr) error {
	r := tracer.Request{Op: tracer.Remove}
	for _, a := range addrs {
		r.Addrs = append(r.Addrs, uint64(a))
	}
	if err := s.request("cannot remove a breakpoint", r); err != nil {
		return err
	}
	for _, a := range addrs {
		s.memory.uncover(a)
	}
	return nil
}

// Hits returns the number of hits of each counted breakpoint, sorted by address. It includes removed breakpoints.
func (s *Session) Hits() ([]Hits, error) {
	reply, err := s.driver.Do(tracer.Request{Op: tracer.Hits})
	if err != nil {
		return nil, s.explain("cannot count", err)
	}
	var list []Hits
	for addr, n := range reply.Hits {
		list = append(list, Hits{machine.Addr(addr), n})
	}
	slices.SortFunc(list, func(a, b Hits) int {
		if a.Addr < b.Addr {
			return -1
		}
		return 1
	})
	return list, nil
}

// Next resumes the stopped process and waits for the next event. If ctx is done, it returns ctx's cause, and the process continues to run.
func (s *Session) Next(ctx context.Context) (Event, error) {
	if s.ended {
		return Event{}, s.failed("cannot run it", ErrProcessExited)
	}
	if s.stands && !s.driver.Waiting() {
		if err := s.driver.Send(tracer.Request{Op: tracer.Go}); err != nil {
			return Event{}, err
		}
		s.stands = false
	}
	e, err := s.driver.Event(ctx)
	if s.held != nil && s.held.backwards {
		s.stale = true // code may not be loaded yet
		s.stands = err != nil
	}
	if err != nil && s.held != nil && ctx.Err() == nil {
		err = s.failed("cannot run it", err)
	}
	if err != nil {
		return Event{}, err
	}
	out := s.event(e)
	switch e.Kind {
	case tracer.Hit:
		if out.Thread, err = s.threadOfHit(&e.Raw, s.vectors[out.At]); err != nil {
			return Event{}, s.failed("cannot read its threads", err)
		}
		out.Data = split(s.reads[out.At], e.Data, e.Got)
		out.Held = e.Held
		s.stands = s.stands || e.Held
	case tracer.Exec:
		s.forget()
		s.stands = true
	case tracer.Ended:
		s.ended = true // the files of the program stay open until Detach, because callers still read them
	case tracer.LimitReached:
		s.stands = true
	case tracer.Away:
		s.released(e)
	}
	return out, nil
}

// KeepFiles makes the session leave the files of the target open when it drops the target, for example in [Session.Detach], so that debug information
// can be read from them later. It returns a function that closes the files.
func (s *Session) KeepFiles() (closeFiles func()) {
	if s.base == nil {
		return func() {}
	}
	s.kept = true
	return s.base.Close
}

// forget drops the data about a program that no longer runs.
func (s *Session) forget() {
	if s.base != nil && !s.kept {
		s.base.Close()
	}
	s.base, s.kept, s.given = nil, false, nil // these belong to the earlier program
	s.names, s.shadowless = map[int]string{}, nil
	s.memory.originals, s.memory.held = map[machine.Addr]tracer.Code{}, nil
}

// split splits data into the bytes of the reads.
func split(reads []Read, data []byte, got uint64) [][]byte {
	out := make([][]byte, len(reads))
	for i, r := range reads {
		if r.Size > len(data) {
			break
		}
		if got>>i&1 != 0 {
			out[i] = data[:r.Size:r.Size]
		}
		data = data[r.Size:]
	}
	return out
}

// maxNames bounds the number of thread names that are stored.
const maxNames = 1 << 12

// threadOfHit returns the thread of a hit. It fails if a debugger holds the process and no longer answers.
func (s *Session) threadOfHit(raw *tracer.Raw, vectors bool) (machine.Thread, error) {
	if s.held != nil {
		return s.held.control.Thread(raw.TID)
	}
	return s.thread(raw, vectors), nil
}

// thread returns a thread that the tracer has reported.
func (s *Session) thread(raw *tracer.Raw, vectors bool) machine.Thread {
	name, known := s.names[raw.TID]
	if !known {
		if len(s.names) >= maxNames {
			s.names = map[int]string{}
		}
		name = system.ThreadName(s.pid, raw.TID)
		s.names[raw.TID] = name
	}
	t := machine.Thread{ID: raw.TID, Name: name, Missing: raw.Missing}
	switch {
	case raw.Missing != "":
	case vectors:
		r := tracerRegisters(raw)
		t.Registers = r.decode()
	default:
		t.Registers = machine.NewRegisters(arch, "it was not requested at this breakpoint")
		setPlaces(t.Registers, regset.Notes[arch][0].Places, generalBytes(&raw.General))
	}
	return t
}

// Stop stops all threads.
func (s *Session) Stop() error {
	if s.stands && !s.Released() {
		return nil
	}
	if err := s.request("cannot stop it", tracer.Request{Op: tracer.Stop}); err != nil {
		return err
	}
	s.Away() // handles an Away event that came before the stop
	s.stands = true
	return nil
}

// Detach removes all breakpoints, restores all that the session changed for itself, and resumes the process. It returns no error if the process has
// ended.
func (s *Session) Detach() error {
	_, err := s.driver.Do(tracer.Request{Op: tracer.Detach})
	s.ended = true
	if end := s.driver.Close(); err == nil {
		err = end
	}
	if s.held != nil {
		s.forget()
		if err != nil {
			return s.failed("cannot detach", err)
		}
		return nil
	}
	if errors.Is(err, tracer.ErrKilled) {
		err = fmt.Errorf("%w: %s", err, s.memory.salvage())
	}
	s.forget()
	if err != nil {
		return &Error{s.pid, "cannot detach", err, ""}
	}
	return nil
}
