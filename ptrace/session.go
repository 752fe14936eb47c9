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

// Session is a process that runs from one breakpoint to the next. Another process, the tracer (package ptrace/tracer), does the tracing: it
// restores what was written into the process when this one ends, however it ends.
//
// The process is stopped when a Session begins, whenever [Session.Next] returns an event that stops it, and until Next is called again. A Session
// is not safe for concurrent use.
type Session struct {
	pid     int
	tracer  *tracer.Conn
	stands  bool // all threads are stopped
	stopped bool // by a signal, before it was traced
	ended   bool
	memory  *sessionMemory
	base    *Target  // modules and registered objects, without threads
	kept    bool     // its files stay open when it is dropped
	given   []Object // the given objects that the targets know
	stale   bool     // mappings or registered objects may have changed since
	changed bool     // what is registered has changed since
	reads   map[machine.Addr][]Read
	vectors map[machine.Addr]bool
	names   map[int]string // of threads

	shadowless []byte // the mappings without a shadow stack when that was last determined

	away time.Time // since when the process runs without breakpoints, until they are set again, or zero
}

// Breakpoint is a place in the code and what is to happen there.
type Breakpoint struct {
	Addr machine.Addr
	// Hold stops all threads at each hit until [Session.Next] is called again. Without it a hit is recorded and the thread resumes at once.
	Hold bool
	// Uncounted hits are always reported and count neither for Every nor for Limit: those that show what the process loads.
	Uncounted bool
	// Vectors requests all registers, including the vector registers, and not only the general ones.
	Vectors bool
	// Hardware requests a debug register, of which x86-64 has four: then nothing is written into the code, which the process may read and
	// overwrite. If none is free, or the machine has none, it is an ordinary breakpoint.
	Hardware bool
	// Reads is memory that comes with each hit, as of then.
	Reads []Read
}

// Read is memory whose address is a register and an offset. At most [MaxReads] of at most
// [MaxRead] bytes come with a hit.
type Read struct {
	Reg    machine.DWARFReg
	Offset int64
	Size   int
}

// Bounds of what comes with a hit.
const (
	MaxReads = 64
	MaxRead  = 4096
)

// HardwareBreakpoints returns how many breakpoints can be in debug registers at once ([Breakpoint].Hardware). On some virtual machines they are
// never hit: then it is 0.
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
	// Exec: the process became another program; its breakpoints are gone. It is stopped.
	Exec
	// Ended: the process has ended; no more events follow.
	Ended
	// LimitReached: the requested number of hits was reached. All counted breakpoints are removed; the process is stopped.
	LimitReached
	// Missed: the process has overwritten a breakpoint, or a thread cannot have it. Hits of it may have been missed since it was last checked.
	Missed
	// Away: the process was let run ([Session.Yield], [Session.LetRun]), and all breakpoints were removed at Time. It runs, also if an event before this one
	// has stopped it.
	Away
)

// Event is the result of [Session.Next].
type Event struct {
	Kind EventKind
	Time time.Time
	At   machine.Addr // the breakpoint
	// Number is the number of the counted hit in the session, from 1; hits that Every skips count too. Without Hold, hits of several threads may
	// come in another order than their numbers; those of one thread never do.
	Number uint64
	// Thread has the registers before the instruction at the breakpoint. It has vector registers if the breakpoint requested them.
	Thread machine.Thread
	// Data holds the bytes of each of the breakpoint's Reads, nil if they cannot be read.
	Data [][]byte
	// ExitCode or Signal is the end of a process that the session launched, or that was traced to its end; Signal is 0 if it exited.
	ExitCode, Signal int
	// Armed means, for Missed, that the breakpoint is set again; otherwise Why is the reason. Thread is the one that cannot have it; otherwise it
	// has no number.
	Armed bool
	Why   string

	held bool // all threads are stopped since this hit
}

// Counting selects the hits that [Session.Next] reports. The zero value: all, without end.
type Counting struct {
	Every uint64 // report each Every-th hit; 0 and 1: each
	Limit uint64 // [LimitReached] after this many reported hits; 0: no limit
	Quiet bool   // none is reported: they are only counted, up to the limit too
}

// Hits counts the hits of a breakpoint.
type Hits struct {
	Addr  machine.Addr
	Count uint64
}

// Open takes control of a running process. It is stopped then.
func Open(ctx context.Context, pid int) (*Session, error) {
	if err := needLive("to control a running process"); err != nil {
		return nil, &Error{pid, "cannot attach", err, ""}
	}
	if err := exists(pid); err != nil {
		return nil, err
	}
	if err := check64(firstAlive(pid)); err != nil {
		return nil, err
	}
	if pid == os.Getpid() { // its tracer would stop this process, which then waits for it without end
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
	s := newSession(pid, conn)
	s.stopped = stopped
	return s, nil
}

// Controls returns an error if processes cannot be controlled on this platform, or nil.
func Controls() error { return needLive("to control a program") }

// LaunchOptions describe how a program is started. Empty fields mean those of this process: the directory, the environment, standard input, and
// where output and errors go, all of which are paths of files. With Group it leads a process group of its own, with Bound it is killed when this
// process ends without [Session.Detach].
type LaunchOptions tracer.Launching

// Launch starts a program under control, found as a shell finds it. It is stopped before its first instruction, with standard input, output and
// error of this process.
func Launch(ctx context.Context, command []string) (*Session, error) {
	return LaunchWith(ctx, command, LaunchOptions{})
}

// LaunchWith is [Launch] of a program that is not to have all that this process has. The program itself is
// looked for from here.
func LaunchWith(ctx context.Context, command []string, o LaunchOptions) (*Session, error) {
	if len(command) == 0 {
		return nil, errors.New("no command to start")
	}
	if err := needLive("to start a program"); err != nil {
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
	s := newSession(reply.PID, conn)
	if err := check64(s.pid); err != nil {
		if p, gone := os.FindProcess(s.pid); gone == nil {
			_ = p.Kill()
		}
		return nil, errors.Join(err, s.Detach())
	}
	return s, nil
}

// Kill ends the session, and the process with it. ended means that the process has ended already: its number may be another's now, and nothing is
// killed.
func (s *Session) Kill(ended bool) error {
	if p, err := os.FindProcess(s.pid); err == nil && !ended {
		_ = p.Kill() // it may have been killed meanwhile
	}
	return s.Detach()
}

func newSession(pid int, conn *tracer.Conn) *Session {
	s := &Session{pid: pid, tracer: conn, stands: true, memory: &sessionMemory{pid: pid, via: pid, originals: map[machine.Addr]tracer.Code{}},
		reads: map[machine.Addr][]Read{}, vectors: map[machine.Addr]bool{}, names: map[int]string{}}
	s.memory.released = s.Released
	conn.Changed = func(e *tracer.Event) { s.memory.change(machine.Addr(e.Addr), e) }
	return s
}

// Stopped reports whether a signal had stopped the process before the session began (SIGSTOP; signal(7)). It does not run until it is continued
// (SIGCONT), and it stays stopped when the session ends.
func (s *Session) Stopped() bool { return s.stopped }

// PID returns the number of the process.
func (s *Session) PID() int { return s.pid }

// Target returns the process at its current stop. Its memory is read on demand, and is valid until Next is called. It need not be closed: the
// session closes its files.
//
// Without an Exec or a [Session.Refresh] between two calls, the new Target shares modules and registered objects (the same pointers) with the one
// before; after a Refresh it shares those that have not changed.
func (s *Session) Target() (*Target, error) {
	if s.ended || !s.stands {
		return nil, &Error{s.pid, "cannot look at it", ErrGone, ""}
	}
	if err := s.survey(); err != nil {
		return nil, err
	}
	reply, err := s.tracer.Do(tracer.Request{Op: tracer.Threads})
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

// Give sets the objects that a runtime has copied and not registered. It must be called before [Session.Target], which then fails with an
// [*ObjectError] if they are not in memory.
func (s *Session) Give(objects []Object) { s.given = objects }

// survey makes the base of targets, or brings it up to date.
func (s *Session) survey() error {
	if s.base == nil {
		t := newTarget(s.pid, nil)
		t.wanted = s.given
		if err := t.survey(); err != nil {
			t.Close()
			return err
		}
		t.readAllObjects()
		t.perf.live = true
		s.base, s.stale = t, false
	}
	if s.changed && !s.stale && !s.base.registered() {
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
		if err := s.base.again(); err != nil {
			return err
		}
		s.stale = false
	}
	if l := s.base.process; l.tid == s.memory.via {
		s.memory.source = l // which knows the mappings
	}
	return nil
}

// Refresh makes the next [Session.Target] look anew at what is mapped and registered.
func (s *Session) Refresh() { s.stale = true }

// RefreshRegistered makes the next [Session.Target] read only the registered objects again, at a cost that does not grow with their number: for a
// thread that is stopped in __jit_debug_register_code.
func (s *Session) RefreshRegistered() { s.changed = true }

// Count sets which hits are reported from now on; the next one is number 1.
func (s *Session) Count(c Counting) error {
	return s.request("cannot count", tracer.Request{Op: tracer.Count, Counting: tracer.Counting(c)})
}

// Yield sets whether the process waits for this one where this one cannot go on. With on, all breakpoints are removed and the process runs on where many
// hits without [Breakpoint].Hold wait for Next, and where a signal has stopped this process for a moment. [Away] follows the events before that. What this
// process asks of it in between fails with [ErrReleased], and so does a read of its memory that may have come after that.
func (s *Session) Yield(on bool) error {
	return s.request("cannot control it", tracer.Request{Op: tracer.Yield, On: on})
}

// LetRun removes all breakpoints and lets the process run, until the caller has seen [Away] and stops it ([Session.Stop]).
func (s *Session) LetRun() error {
	return s.request("cannot let it run", tracer.Request{Op: tracer.LetRun})
}

// Released reports whether the process runs, without breakpoints, although Next has stopped it and did not return [Away] yet. What was read of the
// stopped process before is right if Released is false afterwards.
func (s *Session) Released() bool { return s.stands && s.tracer.Released() }

// Away returns since when the process runs without breakpoints because it was let run, or the zero time.
func (s *Session) Away() time.Time {
	for _, e := range s.tracer.TakeAway() {
		s.released(e)
	}
	return s.away
}

// released notes that the process was let run.
func (s *Session) released(e *tracer.Event) {
	s.memory.originals, s.memory.held = map[machine.Addr]tracer.Code{}, nil
	s.stale, s.stands = true, false
	if s.away.IsZero() {
		s.away = time.Unix(0, e.Time)
	}
}

// explain returns the error of a request.
func (s *Session) explain(op string, err error) error {
	if errors.Is(err, syscall.ESRCH) && s.Released() {
		return &Error{s.pid, op, ErrReleased, ""}
	}
	return explain(s.pid, op, err)
}

// Pass makes a thread pass its next n counted hits: they are counted, and none is reported, however the breakpoints are set. All threads must be
// stopped, and the thread at a hit. A run alone ([Session.Alone]) does not count.
func (s *Session) Pass(tid int, n uint64) error {
	return s.request("cannot count", tracer.Request{Op: tracer.Pass, TID: tid, Pass: n})
}

// request makes a request whose reply only reports whether it succeeded.
func (s *Session) request(op string, r tracer.Request) error {
	if s.ended {
		return &Error{s.pid, op, ErrGone, ""}
	}
	if _, err := s.tracer.Do(r); err != nil {
		return s.explain(op, err)
	}
	return nil
}

// Insert sets breakpoints. An existing one is changed to the new settings. The error names the first address that cannot be written; the others are
// set.
func (s *Session) Insert(list ...Breakpoint) error {
	r := tracer.Request{Op: tracer.Insert}
	for _, b := range list {
		to := tracer.Breakpoint{Addr: uint64(b.Addr), Hold: b.Hold, Uncounted: b.Uncounted, Vectors: b.Vectors, Hardware: b.Hardware}
		if len(b.Reads) > MaxReads {
			return fmt.Errorf("ptrace: %d reads at %v; %d can come with a hit", len(b.Reads), b.Addr, MaxReads)
		}
		for _, read := range b.Reads {
			word, ok := registerWord(read.Reg)
			if !ok || read.Size < 0 || read.Size > MaxRead {
				return fmt.Errorf("ptrace: %d bytes at %s%+d cannot come with a hit", read.Size, arch.RegisterName(read.Reg), read.Offset)
			}
			to.Reads = append(to.Reads, tracer.Read{Reg: word, Offset: read.Offset, Size: uint32(read.Size)})
		}
		s.memory.cover(b.Addr)
		s.reads[b.Addr], s.vectors[b.Addr] = b.Reads, b.Vectors
		r.Breakpoints = append(r.Breakpoints, to)
	}
	if s.ended {
		return &Error{s.pid, "cannot set a breakpoint", ErrGone, ""}
	}
	reply, err := s.tracer.Do(r)
	if reply != nil {
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

// Look looks whether the process has written over breakpoints, and returns what [Session.Next] would of that.
func (s *Session) Look() ([]Event, error) {
	if err := s.request("cannot look at it", tracer.Request{Op: tracer.Look}); err != nil {
		return nil, err
	}
	var list []Event
	for _, e := range s.tracer.Take(tracer.Missed) {
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
	if err := s.request("cannot take a breakpoint out", r); err != nil {
		return err
	}
	for _, a := range addrs {
		s.memory.uncover(a)
	}
	return nil
}

// Hits returns how often each counted breakpoint was hit, those too that are taken out, by address.
func (s *Session) Hits() ([]Hits, error) {
	reply, err := s.tracer.Do(tracer.Request{Op: tracer.Hits})
	if err != nil {
		return nil, explain(s.pid, "cannot count", err)
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

// Next resumes the stopped process, and waits for the next event. If ctx is done it returns its cause, and the process keeps running.
func (s *Session) Next(ctx context.Context) (Event, error) {
	if s.ended {
		return Event{}, &Error{s.pid, "cannot run it", ErrGone, ""}
	}
	if s.stands && !s.tracer.Waiting() {
		if err := s.tracer.Send(tracer.Request{Op: tracer.Go}); err != nil {
			return Event{}, err
		}
		s.stands = false
	}
	e, err := s.tracer.Event(ctx)
	if err != nil {
		return Event{}, err
	}
	out := s.event(e)
	switch e.Kind {
	case tracer.Hit:
		out.Thread = s.thread(&e.Raw, s.vectors[out.At])
		out.Data = split(s.reads[out.At], e.Data, e.Got)
		out.held = e.Held
		s.stands = s.stands || e.Held
	case tracer.Exec:
		s.forget()
		s.stands = true
	case tracer.Ended:
		s.ended = true // the files of its program stay open until Detach: they show what was there
	case tracer.LimitReached:
		s.stands = true
	case tracer.Away:
		s.released(e)
	}
	return out, nil
}

// KeepFiles leaves the files of the target open when the session forgets it, as [Session.Detach] does: debug information is read from them later.
// It returns a function that closes them.
func (s *Session) KeepFiles() (closeFiles func()) {
	if s.base == nil {
		return func() {}
	}
	s.kept = true
	return s.base.Close
}

// forget drops what is known about a program that is gone.
func (s *Session) forget() {
	if s.base != nil && !s.kept {
		s.base.Close()
	}
	s.base, s.kept, s.given = nil, false, nil // another program has none of them
	s.names, s.shadowless = map[int]string{}, nil
	s.memory.originals, s.memory.held = map[machine.Addr]tracer.Code{}, nil
}

// split takes the bytes of all reads apart.
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

// maxNames bounds the names of threads that are kept.
const maxNames = 1 << 12

// thread makes a thread of what the tracer sent.
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
		t.Registers = machine.NewRegisters(arch, "it was not asked for at this breakpoint")
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
	s.Away() // it was let run before that
	s.stands = true
	return nil
}

// Detach restores everything and resumes the process. A process that has ended is no error.
func (s *Session) Detach() error {
	_, err := s.tracer.Do(tracer.Request{Op: tracer.Detach})
	s.ended = true
	if end := s.tracer.Close(); err == nil {
		err = end
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
