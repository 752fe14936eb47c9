//go:build linux

package tracer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/system"
)

// server is the tracer: it holds one target with its threads and breakpoints.
type server struct {
	sleeps   atomic.Bool // set while the loop waits for one thread, which it must check at intervals
	asked    func() bool // reports whether a request is pending, or the client has ended
	out      *writer
	pid      int
	memory   memory
	threads  map[int]*thread
	stopped  bool // all threads are stopped, until resume
	stopping bool // stopAll is running

	breakpoints map[uint64]*breakpoint
	debug       debugRegisters // the contents that all threads' debug registers must have
	looking     looking
	lingering   map[int]*thread   // threads that do not stop, and have debug registers set
	owed        map[int]func()    // functions that restore the registers of running threads at their next report
	shadowed    bool              // the target has a shadow stack
	acting      int               // the thread whose instruction is emulated
	placed      map[uint64]Code   // breakpoints for a thread that runs alone, with the code under them
	counts      map[uint64]uint64 // hits of breakpoints that were removed
	counting    Counting
	number      uint64 // number of counted hits
	chosen      uint64 // number of hits that count for the limit
	standing    uint64 // number of events with Held that were reported
	ledger      *ledger
	handler     trapHandler
	asleep      atomic.Bool // the loop is in a wait that a signal ends
	programs    uint64      // number of Exec events, and of times that the target was resumed without a request
	client      client
	lease       *lease
	bound       bool // kill the target when the client has ended
	away        bool // the breakpoints are removed until the client sets some again
	limit       bool // the requested number of hits was reached
}

// options are the ptrace(2) options of the traced threads. Threads and processes that these start are traced too.
const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEVFORKDONE |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEEXIT

// serve executes a request, and reports whether it was the last one.
func (s *server) serve(r Request, open bool) (last bool) {
	s.client.spoke()
	if !open {
		if s.bound && s.pid != 0 {
			_ = unix.Kill(s.pid, unix.SIGKILL)
		}
		s.detach()
		return true
	}
	if r.Op == Go {
		if r.Seen == s.standing { // otherwise the client must first see an event
			s.resume()
		}
		return false
	}
	reply := &Reply{PID: s.pid}
	err := s.do(r, reply)
	if err != nil {
		reply.Error, reply.Errno = err.Error(), errnoOf(err)
		if errno := unix.Errno(0); errors.As(err, &errno) {
			reply.Errno = errno
			reply.Error = ""
			if text, whole := err.Error(), errno.Error(); len(text) > len(whole) {
				reply.Error = text[:len(text)-len(whole)]
			}
		}
	}
	s.out.reply(reply)
	return r.Op == Detach
}

func (s *server) do(r Request, reply *Reply) error {
	switch r.Op {
	case Attach, Launch, Count, Hits, Yield, LetRun, Detach: // these requests need no process
	default:
		if s.pid == 0 || r.Programs != s.programs && r.Op != Stop && r.Op != Insert && r.Op != Remove {
			return unix.ESRCH
		}
	}
	switch r.Op {
	case Attach:
		return s.attach(r.PID)
	case Launch:
		defer func() { reply.PID = s.pid }()
		return s.launch(r.Command, r.Launching)
	case Stop:
		s.stopAll()
		return nil
	case Yield:
		s.out.yields = r.On
		return nil
	case LetRun:
		if r.Programs == s.programs {
			s.letRun()
		}
		return nil
	case Insert:
		defer func() { reply.Unhandled = s.handler.why }()
		return s.still(r.Programs, func() error {
			s.away = false
			return s.insert(r.Breakpoints, reply)
		})
	case Remove:
		return s.still(r.Programs, func() error { s.remove(r.Addrs); return nil })
	case Count:
		s.counting, s.number, s.chosen = r.Counting, 0, 0
		return nil
	case Pass:
		t := s.threads[r.TID]
		if t == nil || !s.stopped {
			return unix.ESRCH
		}
		t.passes = r.Pass
		return nil
	case Hits:
		reply.Hits = s.hits()
		return nil
	case Look:
		s.look(all)
		return nil
	case Clear:
		return s.clear(r.Addrs)
	case Restore:
		for _, c := range r.Changes {
			if len(c.Data) == len(Code{}) && exchange(s.memory, c.Addr, Trap, Code(c.Data)) {
				reply.Restored++
			}
		}
		return nil
	case Unhandle:
		if s.handler.base = s.leftHandler(); s.handler.base != 0 {
			s.restoreLeft(s.handler.base)
			s.removeHandler()
		}
		return nil
	case Threads:
		reply.Threads = s.registers()
		return nil
	case Alone:
		run, err := s.alone(r.TID, r.Alone)
		reply.Alone = run
		return err
	case Commit:
		return s.commit(r.Changes, r.Raw)
	case Rseq:
		reply.Rseq = rseq(r.TID)
		return nil
	case Detach:
		s.detach()
		return nil
	}
	return fmt.Errorf("unknown request %d", r.Op)
}

// still calls f while all threads are stopped, and then resumes them if they were running.
func (s *server) still(programs uint64, f func() error) error {
	if programs != s.programs {
		return nil // the program was replaced or resumed, which the client will see
	}
	if s.stopped {
		return f()
	}
	before := s.standing
	s.stopAll()
	if s.standing != before {
		return nil // the process has just executed another program
	}
	err := f()
	s.resume()
	return err
}

// attach seizes all threads of a process and stops them.
func (s *server) attach(pid int) error {
	s.pid = pid
	err := system.EachRound(pid, func(tids []int) (found bool, err error) {
		for _, tid := range tids {
			if s.threads[tid] != nil {
				continue
			}
			err := ptrace(unix.PTRACE_SEIZE, tid, options)
			switch {
			case err == unix.ESRCH:
				continue // the thread has ended since it was listed
			case err == unix.EPERM && system.ThreadState(pid, tid) == 'Z':
				continue // an ended leader remains a zombie while other threads of the process live
			case err == unix.EPERM && system.StatusField(tid, "TracerPid") == strconv.Itoa(unix.Gettid()):
				// A thread that was already seized has started this one, so this one is traced already.
			case err != nil:
				return false, err
			}
			s.threads[tid] = &thread{tid: tid, running: true}
			found = true
		}
		return found, nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a process that has ended has no threads, which is checked below
		s.detach()
		return err
	}
	if len(s.threads) == 0 {
		s.pid = 0
		return unix.ESRCH
	}
	s.stopAll()
	spare()
	err = s.openMemory()
	dropPrivileges(s.needed())
	return err
}

// openMemory opens the memory of the target. An exec replaces that memory.
func (s *server) openMemory() (err error) {
	s.memory.close()
	for tid := range s.threads {
		if s.memory, err = openMemory(memoryOf(s.pid, tid), s.atRest); err != unix.ENOENT && err != unix.ESRCH {
			s.ledger.memory(s.memory.file)
			s.memory.served = serving(tid)
			return err
		}
	}
	return unix.ESRCH
}

// atRest yields the stopped threads first, because ptrace requests require a stopped thread, and then the others.
func (s *server) atRest(yield func(int) bool) {
	for _, running := range []bool{false, true} {
		for tid, t := range s.threads {
			if t.running == running && !yield(tid) {
				return
			}
		}
	}
}

// launch starts a program, seizes it and stops it before its first instruction.
func (s *server) launch(command []string, l Launching) error {
	files, err := l.open()
	if err != nil {
		return err
	}
	p, err := os.StartProcess(command[0], command[1:], &os.ProcAttr{Dir: l.Dir, Env: l.Env, Files: files[:], Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: l.Group}})
	for n, own := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if files[n] != own {
			files[n].Close()
		}
	}
	if err != nil {
		return err
	}
	pid := p.Pid
	_ = p.Release() // the loop waits for the process
	spare()
	// The program is stopped after its exec. Because PTRACE_TRACEME cannot stop a thread without a signal, the tracer detaches from the program with
	// a SIGSTOP, seizes it in that stop, and continues it.
	var ws unix.WaitStatus
	if _, err := wait(pid, &ws, unix.WALL); err != nil {
		return err
	}
	if !ws.Stopped() {
		return fmt.Errorf("%s ended before its first instruction", command[0])
	}
	// Unblock SIGCONT, because the continuation is reported as this signal.
	var mask uint64
	err = ptraceAt(unix.PTRACE_GETSIGMASK, pid, unsafe.Sizeof(mask), unsafe.Pointer(&mask))
	open := mask &^ (1 << (unix.SIGCONT - 1))
	if err == nil {
		err = ptraceAt(unix.PTRACE_SETSIGMASK, pid, unsafe.Sizeof(open), unsafe.Pointer(&open))
	}
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		return err
	}
	if err := ptrace(unix.PTRACE_DETACH, pid, uintptr(unix.SIGSTOP)); err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_SEIZE, pid, options); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		return err
	}
	s.pid, s.bound = pid, l.Bound
	t := &thread{tid: pid, running: true}
	s.threads[pid] = t
	err = s.untilContinued(t)
	if err == nil {
		err = ptraceAt(unix.PTRACE_SETSIGMASK, pid, unsafe.Sizeof(mask), unsafe.Pointer(&mask))
	}
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		return err
	}
	s.stopped = true
	err = s.openMemory()
	dropPrivileges(s.needed())
	return err
}

// open opens the standard files for a program that is about to start.
func (l *Launching) open() (files [3]*os.File, err error) {
	files = [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	if l.Stdin != "" {
		if files[0], err = os.Open(l.Stdin); err != nil {
			return files, err
		}
	}
	for n, path := range []string{l.Stdout, l.Stderr} {
		if path == "" {
			continue
		}
		if files[n+1], err = os.Create(path); err != nil {
			return files, err
		}
	}
	return files, nil
}

// untilContinued makes a thread leave the SIGSTOP in which it was seized. Afterwards the thread is stopped like any other.
func (s *server) untilContinued(t *thread) error {
	sent := false
	for range 100 {
		var ws unix.WaitStatus
		if _, err := wait(t.tid, &ws, unix.WALL); err != nil {
			return err
		}
		switch {
		case !ws.Stopped():
			return errors.New("it ended before its first instruction")
		case int(ws)>>16 == unix.PTRACE_EVENT_STOP && ws.StopSignal() != unix.SIGTRAP && !sent: // the stop by SIGSTOP
			if err := unix.Kill(t.tid, unix.SIGCONT); err != nil {
				return err
			}
			sent = true
			if err := ptrace(unix.PTRACE_LISTEN, t.tid, 0); err != nil {
				return err
			}
		case int(ws)>>16 == 0 && ws.StopSignal() == unix.SIGCONT:
			t.running = false
			return nil // the signal is dropped
		default:
			if err := ptrace(unix.PTRACE_CONT, t.tid, 0); err != nil {
				return err
			}
		}
	}
	return errors.New("it cannot be stopped before its first instruction")
}

// registers returns the registers of all threads of the target, which must be stopped. The first thread of the process comes first.
func (s *server) registers() []Raw {
	var list []Raw
	for _, t := range s.ordered() {
		if t.guest {
			continue
		}
		raw := Raw{TID: t.tid}
		switch {
		case t.late:
			raw.Missing = "it did not stop: it waits in the kernel for a device, or for its child of vfork"
		case t.running:
			raw.Missing = "it is running"
		case t.killed() || getRegs(t.tid, &raw.General) != nil:
			continue // the thread has ended
		default:
			raw.Others = getOthers(t.tid)
		}
		list = append(list, raw)
	}
	return list
}

// ordered returns the threads sorted by number, but with the first thread of the process first.
func (s *server) ordered() []*thread {
	list := make([]*thread, 0, len(s.threads))
	for _, t := range s.threads {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *thread) int {
		switch {
		case a.tid == s.pid:
			return -1
		case b.tid == s.pid:
			return 1
		}
		return a.tid - b.tid
	})
	return list
}

// end reports that the target has ended, and forgets it.
func (s *server) end() {
	if s.pid == 0 {
		return
	}
	s.out.event(&Event{Kind: Ended, Time: time.Now().UnixNano()})
	s.gone()
}

// gone removes the data about a target that has ended.
func (s *server) gone() {
	for _, b := range s.breakpoints {
		s.keep(b)
	}
	s.pid, s.threads, s.breakpoints, s.debug = 0, map[int]*thread{}, map[uint64]*breakpoint{}, debugRegisters{}
	s.stopped, s.looking.changed = true, true
	s.handler = trapHandler{}
	s.ledger.clear()
	s.out.flush()
}
