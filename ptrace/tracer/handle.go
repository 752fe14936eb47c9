//go:build linux

package tracer

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/system"
)

// handle handles a report of a thread. The thread resumes afterwards, unless all are stopped or it has ended.
func (s *server) handle(tid int, ws unix.WaitStatus) {
	t := s.threads[tid]
	if t == nil {
		s.stranger(tid, ws)
		return
	}
	t.running, t.group = false, false
	t.late = false
	if ws.Stopped() {
		t.put.giveBack(t, false)
	}
	switch event := int(ws) >> 16; {
	case !ws.Stopped():
		s.threadEnded(t, ws)
		return
	case event == unix.PTRACE_EVENT_STOP:
		if ws.StopSignal() != unix.SIGTRAP {
			t.group = true
		}
	case event == unix.PTRACE_EVENT_EXEC:
		s.becameAnother(t)
		return
	case event != 0:
		s.news(t, event)
	case ws.StopSignal() == unix.SIGTRAP:
		if s.trap(t) {
			return
		}
	default:
		t.signal = ws.StopSignal()
		s.raisedAt(t)
	}
	if !s.stopped && !t.running {
		s.run(t)
	}
}

// raisedAt makes debug registers stop a thread whose instruction has raised a signal wherever it resumes after its handler, as other breakpoints
// do: the processor would let it pass.
func (s *server) raisedAt(t *thread) {
	if t.debug == (debugRegisters{}) {
		return
	}
	var regs General
	info, err := getSigInfo(t.tid)
	if err != nil || !synchronous(&info) || getRegs(t.tid, &regs) != nil {
		return
	}
	regs.arrive()
	if setRegs(t.tid, &regs) == nil && t.debug.holds(regs.pc()) {
		t.again, t.raised = &place{regs.pc(), regs.sp()}, &regs
	}
}

// run resumes one thread, with the signal that was being delivered to it.
func (s *server) run(t *thread) {
	request, signal := unix.PTRACE_CONT, t.signal
	if t.group {
		request = unix.PTRACE_LISTEN
	}
	s.arm(t)
	t.running, t.stepping, t.signal = true, false, 0
	// A thread that was killed meanwhile reports that next.
	_ = ptrace(request, t.tid, uintptr(signal))
	if t.rejoin {
		t.rejoin = false
		_ = ptrace(unix.PTRACE_INTERRUPT, t.tid, 0)
	}
}

// trap handles a SIGTRAP: a breakpoint, or else one for the target itself. It reports whether the thread is done with.
func (s *server) trap(t *thread) (done bool) {
	info, err := t.sigInfo()
	if err != nil {
		return true // it was killed, which it reports next
	}
	if t.stepped(&info) {
		return false // a step that was abandoned
	}
	var regs General
	if getRegs(t.tid, &regs) != nil {
		return true
	}
	b, ours := s.hitBy(t, &info, &regs)
	switch {
	case !ours:
		t.signal = unix.SIGTRAP // one of its own
		return false
	case b == nil:
		return false
	}
	return s.hit(t, b, &regs)
}

// hitBy returns the breakpoint that a thread hit which is stopped at a SIGTRAP, with its registers before the instruction there; nil if it
// is gone. ours is false if the trap is the target's own.
func (s *server) hitBy(t *thread, info *sigInfo, regs *General) (b *breakpoint, ours bool) {
	switch info.Code {
	case trapCode:
		if !t.rewound {
			return nil, false
		}
		t.rewound = false
		regs.arrive()
		if b = s.breakpoints[regs.pc()]; b != nil && b.held { // set anew since
			b = nil
		}
		return b, true
	case trapHardware:
		if b = s.breakpoints[regs.pc()]; b != nil && b.held {
			return b, true
		}
		return nil, t.debug.holds(regs.pc())
	}
	return nil, false
}

// news handles a report of a thread that resumes afterwards.
func (s *server) news(t *thread, event int) {
	switch event {
	case unix.PTRACE_EVENT_EXIT: // the last chance to access the memory, if it is the last thread
		t.ending = true
		s.look(ending)
		return
	case unix.PTRACE_EVENT_VFORK_DONE:
		t.vforks = false
		s.arm(t)
		return
	case unix.PTRACE_EVENT_VFORK:
		t.vforks = true
		s.arm(t)
	}
	s.started(t)
}

// threadEnded forgets a thread. The process has ended with its last one.
func (s *server) threadEnded(t *thread, ws unix.WaitStatus) {
	delete(s.threads, t.tid)
	if t.guest || t.tid != s.pid {
		return // of a process the first thread is reported after all others
	}
	e := &Event{Kind: Ended, Time: time.Now().UnixNano()}
	if ws.Exited() {
		e.Code = ws.ExitStatus()
	} else {
		e.Signal = int(ws.Signal())
	}
	guests := s.threads
	s.threads = map[int]*thread{}
	for _, g := range guests {
		if g.guest { // it has the memory for itself now
			s.threads[g.tid] = g
		}
	}
	if len(s.threads) > 0 {
		s.stopAll()
		s.restoreAll()
		s.removeHandler()
		s.letGo()
	}
	s.out.event(e)
	s.gone()
}

// started takes note of what a thread has started: another thread, or a process.
func (s *server) started(t *thread) {
	var tid uint
	tid, err := unix.PtraceGetEventMsg(t.tid)
	if err != nil || s.threads[int(tid)] != nil {
		return
	}
	// It is traced from its start and reports that soon, if it was not killed.
	var ws unix.WaitStatus
	if s.await(int(tid), &ws) {
		s.stranger(int(tid), ws)
	}
}

// await waits for a report of one thread, and reports whether it came in time. The time between two checks counts as gather at most: if this
// process was not scheduled meanwhile, the thread may not have been either.
func (s *server) await(tid int, ws *unix.WaitStatus) bool {
	for waited, looked := time.Duration(0), time.Now(); ; {
		switch got, err := s.sleep(tid, ws); {
		case err != nil && err != unix.EINTR:
			return false
		case got == tid:
			return true
		}
		now := time.Now()
		waited, looked = waited+min(now.Sub(looked), gather), now
		if _, late := system.Late(tid, tid, waited); late {
			return false
		}
	}
}

// sleep is wait4(2) for one thread. It ends with EINTR when there is a request, and now and then without one.
func (s *server) sleep(tid int, ws *unix.WaitStatus) (int, error) {
	s.sleeps.Store(true)
	defer s.sleeps.Store(false)
	return s.collect(tid, ws, unix.WALL)
}

// stranger handles the first report of what a thread has started. A new thread belongs to the target; a new process has
// a copy of its memory, breakpoints and all, or, up to its exec, the memory itself.
func (s *server) stranger(tid int, ws unix.WaitStatus) {
	if !ws.Stopped() {
		return
	}
	t := &thread{tid: tid}
	if int(ws)>>16 == unix.PTRACE_EVENT_EXEC && tid == s.pid { // by another thread: the first one had ended before all this
		s.threads[tid] = t
		s.becameAnother(t)
		return
	}
	if int(ws)>>16 == unix.PTRACE_EVENT_STOP && ws.StopSignal() != unix.SIGTRAP {
		t.group = true
	}
	if int(ws)>>16 == 0 && ws.StopSignal() != unix.SIGTRAP {
		t.signal = ws.StopSignal()
	}
	own := s.belongs(tid)
	if !own {
		same, known := sameMemory(s.pid, tid)
		if !known {
			same = false // a vfork's child alone shares it; its bytes are put back there, for both
		}
		if !same {
			s.restoreCopy(t)
			if s.owed[tid] == nil { // otherwise it reports again
				_ = ptrace(unix.PTRACE_DETACH, tid, uintptr(t.deliverable()))
			}
			return
		}
		t.guest = true
	}
	s.threads[tid] = t
	if !s.stopped {
		s.run(t)
	}
}

// belongs reports whether a thread is one of the target's.
func (s *server) belongs(tid int) bool {
	return unix.Access(fmt.Sprintf("/proc/%d/task/%d", s.pid, tid), unix.F_OK) == nil
}

// becameAnother handles an exec: of the target, whose breakpoints went with its memory, or of a guest, which is not a guest any more.
func (s *server) becameAnother(t *thread) {
	if t.guest {
		delete(s.threads, t.tid)
		_ = ptrace(unix.PTRACE_DETACH, t.tid, 0)
		return
	}
	for tid, other := range s.threads {
		if !other.guest && tid != s.pid {
			delete(s.threads, tid) // they ended with the exec
			delete(s.owed, tid)
		}
	}
	if t.tid != s.pid { // the kernel reports it under the number of the process
		delete(s.threads, t.tid)
		t = &thread{tid: s.pid}
		s.threads[s.pid] = t
	}
	t.running = false
	for _, b := range s.breakpoints {
		s.keep(b)
	}
	s.breakpoints, s.placed, s.looking.changed = map[uint64]*breakpoint{}, nil, true
	s.debug, t.debug = debugRegisters{}, debugRegisters{} // the kernel has cleared them
	t.at, t.again, t.vforks = nil, nil, false
	s.stopAll()
	s.handler = trapHandler{}
	s.ledger.clear()
	_ = s.openMemory() // without it nothing can be inserted, which is reported there
	s.programs++
	s.standStill(&Event{Kind: Exec, Time: time.Now().UnixNano(), Raw: Raw{TID: s.pid}})
}
