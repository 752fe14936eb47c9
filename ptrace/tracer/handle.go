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

// raisedAt handles an instruction that raised a signal. If its breakpoint is in a debug register, the thread must stop there again when the signal's
// handler returns, as at other breakpoints. Without raisedAt, the processor would let the thread pass.
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
	// An error means that the thread has been killed, which wait(2) reports next.
	_ = ptrace(request, t.tid, uintptr(signal))
	if t.rejoin {
		t.rejoin = false
		_ = ptrace(unix.PTRACE_INTERRUPT, t.tid, 0)
	}
}

// trap handles a SIGTRAP of one of the tracer's breakpoints, or of the target itself. It reports whether the caller must not resume the thread.
func (s *server) trap(t *thread) (done bool) {
	info, err := t.sigInfo()
	if err != nil {
		return true // it was killed, which wait(2) reports next
	}
	if t.stepped(&info) {
		return false // the end of a step that was abandoned
	}
	var regs General
	if getRegs(t.tid, &regs) != nil {
		return true
	}
	b, ours := s.hitBy(t, &info, &regs)
	switch {
	case !ours:
		t.signal = unix.SIGTRAP // raised by the target
		return false
	case b == nil:
		return false
	}
	return s.hit(t, b, &regs)
}

// hitBy returns the breakpoint that a thread has hit, for a thread that is stopped at a SIGTRAP. It moves the thread before the instruction there. b
// is nil if the breakpoint has been removed. ours is false if the trap is the target's own.
func (s *server) hitBy(t *thread, info *sigInfo, regs *General) (b *breakpoint, ours bool) {
	switch info.Code {
	case trapCode:
		if !t.rewound {
			return nil, false
		}
		t.rewound = false
		regs.arrive()
		if b = s.breakpoints[regs.pc()]; b != nil && b.held { // the breakpoint has been set again in a debug register
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

// news handles an event of ptrace(2), such as a fork or an exec, after which the thread resumes.
func (s *server) news(t *thread, event int) {
	switch event {
	case unix.PTRACE_EVENT_EXIT: // last access to the memory, if this is the last thread
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

// threadEnded forgets a thread. When the first thread of the process has ended, so has the process.
func (s *server) threadEnded(t *thread, ws unix.WaitStatus) {
	delete(s.threads, t.tid)
	if t.guest || t.tid != s.pid {
		return // the kernel reports the first thread of a process after all others
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
		if g.guest { // only the guest still has the memory
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

// started handles the event of a thread that has started another thread or a process.
func (s *server) started(t *thread) {
	var tid uint
	tid, err := unix.PtraceGetEventMsg(t.tid)
	if err != nil || s.threads[int(tid)] != nil {
		return
	}
	// The new thread is traced from its start and reports soon, unless it was killed.
	var ws unix.WaitStatus
	if s.await(int(tid), &ws) {
		s.stranger(int(tid), ws)
	}
}

// await waits for a report of one thread, and reports whether it came in time. The time between two checks counts as at most gather: if this process
// was not scheduled in between, the thread may not have been either.
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

// sleep calls wait4(2) for one thread. It returns EINTR when a request arrives, and at intervals.
func (s *server) sleep(tid int, ws *unix.WaitStatus) (int, error) {
	s.sleeps.Store(true)
	defer s.sleeps.Store(false)
	return s.collect(tid, ws, unix.WALL)
}

// stranger handles the first report of a new thread or process. A new thread belongs to the target. A new process has a copy of the target's memory,
// with the breakpoints. A child of vfork shares the memory with the target until its exec.
func (s *server) stranger(tid int, ws unix.WaitStatus) {
	if !ws.Stopped() {
		return
	}
	t := &thread{tid: tid}
	if int(ws)>>16 == unix.PTRACE_EVENT_EXEC && tid == s.pid { // another thread called exec after the first thread had ended
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
			same = false // only a child of vfork shares the memory; restoring the code for the child also restores it for the target
		}
		if !same {
			s.restoreCopy(t)
			if s.owed[tid] == nil { // otherwise the thread will report again
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

// belongs reports whether a thread belongs to the target.
func (s *server) belongs(tid int) bool {
	return unix.Access(fmt.Sprintf("/proc/%d/task/%d", s.pid, tid), unix.F_OK) == nil
}

// becameAnother handles an exec. An exec of the target removes the breakpoints together with the memory. After an exec, a guest has its own memory,
// and the tracer detaches from it.
func (s *server) becameAnother(t *thread) {
	if t.guest {
		delete(s.threads, t.tid)
		_ = ptrace(unix.PTRACE_DETACH, t.tid, 0)
		return
	}
	for tid, other := range s.threads {
		if !other.guest && tid != s.pid {
			delete(s.threads, tid) // the exec has ended these threads
			delete(s.owed, tid)
		}
	}
	if t.tid != s.pid { // the kernel reports the exec under the number of the process
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
	_ = s.openMemory() // if this fails, the next Insert reports it
	s.programs++
	s.standStill(&Event{Kind: Exec, Time: time.Now().UnixNano(), Raw: Raw{TID: s.pid}})
}
