package ptrace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"reframe/deopt/machine"
	"reframe/ptrace/regset"
	"reframe/ptrace/system"
	"reframe/ptrace/tracer"
)

// Session is a process that runs from one breakpoint to the next. Another process, the
// tracer (package ptrace/tracer), does the tracing: what is written into the process is put
// back when this one ends, however it ends.
//
// The process is stopped when a Session begins, whenever [Session.Next] returns an event
// that says so, and until Next is called again. A Session is not safe for concurrent use.
type Session struct {
	pid     int
	tracer  *tracer.Conn
	stands  bool // all threads are stopped
	stopped bool // by a signal, before it was traced
	ended   bool
	memory  *sessionMemory
	base    *Target  // modules and registered objects, without threads
	kept    bool     // its files stay open when it is forgotten
	given   []Object // of which the targets know
	stale   bool     // what is mapped or registered may have changed since
	changed bool     // what is registered has changed since
	reads   map[machine.Addr][]Read
	vectors map[machine.Addr]bool
	names   map[int]string // of threads

	shadowless []byte // the mappings among which there was no shadow stack when that was last asked for
}

// Breakpoint is a place in the code and what is to happen there.
type Breakpoint struct {
	Addr machine.Addr
	// Hold stops all threads at each hit until [Session.Next] is called again.
	// Without it a hit is noted and the thread goes on at once.
	Hold bool
	// Uncounted hits are always reported and count neither for Every nor for Limit: those by which
	// the watcher learns what the process loads.
	Uncounted bool
	// Vectors asks for all registers, the vector registers among them, not for the general ones alone.
	Vectors bool
	// Hardware asks for a debug register, of which x86-64 has four: nothing is written into the code then, which the process may
	// read and write over. Where none is free, or the machine has none, it is a breakpoint as any other.
	Hardware bool
	// Reads is memory that comes with each hit, as it was then.
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

// HardwareBreakpoints is how many breakpoints can be in debug registers at once ([Breakpoint].Hardware). There are virtual machines on which none
// of them is ever hit: then it is 0.
func HardwareBreakpoints() int {
	if !tracer.DebugFires() {
		return 0
	}
	return tracer.HardwareBreakpoints
}

// EventKind says what happened.
type EventKind int

const (
	// Hit: a thread came to a breakpoint. With [Breakpoint].Hold all threads are stopped.
	Hit EventKind = iota
	// Exec: the process became another program; its breakpoints are gone. It is stopped.
	Exec
	// Ended: the process has ended; there is nothing more to come.
	Ended
	// LimitReached: so many hits came as were asked for. All counted breakpoints are taken out;
	// the process is stopped.
	LimitReached
	// Missed: the process has written over a breakpoint, or a thread cannot have it. Hits of it may not have been
	// seen, since it was last looked at.
	Missed
)

// Event is what [Session.Next] returns.
type Event struct {
	Kind EventKind
	Time time.Time
	At   machine.Addr // the breakpoint
	// Number is which counted hit of the session it is, from 1; those that Every leaves out are
	// counted too. Without Hold hits of several threads may come in another order than their
	// numbers say; those of one thread never do.
	Number uint64
	// Thread has the registers as they are before the instruction at the breakpoint. Vector
	// registers are there if the breakpoint asked for them.
	Thread machine.Thread
	// Data are the bytes of each of the breakpoint's Reads, nil where they cannot be read.
	Data [][]byte
	// ExitCode or Signal is how a process has ended that the session launched, or that was
	// traced to its end; Signal is 0 where it exited.
	ExitCode, Signal int
	// Armed says of Missed that the breakpoint is there again, and Why why not. Thread is the one that cannot have it, and else
	// has no number.
	Armed bool
	Why   string

	held bool // all threads are stopped since this hit
}

// Counting says which hits [Session.Next] tells. The zero value: all, without end.
type Counting struct {
	Every uint64 // each so-many-th hit; 0 and 1: each
	Limit uint64 // so many of those, then [LimitReached]; 0: no limit
	Quiet bool   // none is reported: they are only counted, up to the limit too
}

// Hits is how often a breakpoint was hit.
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

// Controls says why no process can be controlled where this program runs, or nil.
func Controls() error { return needLive("to control a program") }

// LaunchOptions say how a program is started. What is empty is as with this process: the directory, the environment,
// standard input, and where output and errors go, all of which are paths of files. With Group it leads a process group of its
// own, with Bound it is killed when this process ends without [Session.Detach].
type LaunchOptions tracer.Launching

// Launch starts a program under control, found as a shell finds it. It is stopped before its
// first instruction, with standard input, output and error of this process.
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

// Kill ends the session, and the process with it. ended says that the process has ended already: its number may be another's by now, and nothing
// is killed.
func (s *Session) Kill(ended bool) error {
	if p, err := os.FindProcess(s.pid); err == nil && !ended {
		_ = p.Kill() // who has killed it meanwhile was first
	}
	return s.Detach()
}

func newSession(pid int, conn *tracer.Conn) *Session {
	s := &Session{pid: pid, tracer: conn, stands: true, memory: &sessionMemory{pid: pid, via: pid, originals: map[machine.Addr]tracer.Code{}},
		reads: map[machine.Addr][]Read{}, vectors: map[machine.Addr]bool{}, names: map[int]string{}}
	conn.Changed = func(e *tracer.Event) { s.memory.change(machine.Addr(e.Addr), e) }
	return s
}

// Stopped says that a signal had stopped the process before the session began (SIGSTOP; signal(7)). Until it is continued
// (SIGCONT) it goes nowhere, and it stays stopped when the session ends.
func (s *Session) Stopped() bool { return s.stopped }

// PID returns the number of the process.
func (s *Session) PID() int { return s.pid }

// Target looks at the process where it stands. Its memory is read as it is asked for, and is good
// until Next is called. It need not be closed: what it keeps open, the session does.
//
// Between two calls without an Exec or a [Session.Refresh] in between, the new Target shares
// modules and registered objects (the same pointers) with the one before; after a Refresh it shares
// those that have not changed.
func (s *Session) Target() (*Target, error) {
	if s.ended || !s.stands {
		return nil, &Error{s.pid, "cannot look at it", ErrGone, ""}
	}
	if err := s.survey(); err != nil {
		return nil, err
	}
	reply, err := s.tracer.Do(tracer.Request{Op: tracer.Threads})
	if err != nil {
		return nil, explain(s.pid, "cannot read its threads", err)
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

// Give says which objects a runtime has copied and not registered. It is for a session whose [Session.Target] was not asked for yet,
// which then fails with an [*ObjectError] where they are not in memory.
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
		s.base.source = live(s.base.via)
		if err := s.base.again(); err != nil {
			return err
		}
		s.stale = false
	}
	return nil
}

// Refresh makes the next [Session.Target] look anew at what is mapped and registered.
func (s *Session) Refresh() { s.stale = true }

// RefreshRegistered makes the next [Session.Target] look anew at what is registered alone, which takes less and
// does not take longer the more there is: for a thread that stands in __jit_debug_register_code.
func (s *Session) RefreshRegistered() { s.changed = true }

// Count says which hits are reported from now on, of which the next is number 1.
func (s *Session) Count(c Counting) error {
	return s.request("cannot count", tracer.Request{Op: tracer.Count, Counting: tracer.Counting(c)})
}

// Pass has a thread pass its next n counted hits: they are counted, and none is reported, however the breakpoints are set. All threads are
// stopped, and the thread has come to a hit. What runs alone ([Session.Alone]) does not count.
func (s *Session) Pass(tid int, n uint64) error {
	return s.request("cannot count", tracer.Request{Op: tracer.Pass, TID: tid, Pass: n})
}

// request makes a request whose reply says only whether it was done.
func (s *Session) request(op string, r tracer.Request) error {
	if s.ended {
		return &Error{s.pid, op, ErrGone, ""}
	}
	if _, err := s.tracer.Do(r); err != nil {
		return explain(s.pid, op, err)
	}
	return nil
}

// Insert sets breakpoints. One that is there already is changed to what is asked for.
// The error names the first address that cannot be written to; the others are set.
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
	}
	if err != nil {
		return explain(s.pid, "cannot set a breakpoint", err)
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

// Remove takes breakpoints out. Where there is none nothing happens.
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

// Next lets the process go on where it is stopped, and waits for what happens next. When ctx
// is done it returns its cause, and the process runs on.
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
		s.ended = true // the files of its program stay open until Detach: they say what was there
	case tracer.LimitReached:
		s.stands = true
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

// forget drops what is known about a program that is no more.
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
	if s.stands {
		return nil
	}
	if err := s.request("cannot stop it", tracer.Request{Op: tracer.Stop}); err != nil {
		return err
	}
	s.stands = true
	return nil
}

// Detach puts everything back and lets the process go on. A process that has ended is no error.
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
