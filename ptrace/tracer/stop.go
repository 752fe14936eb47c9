//go:build linux

package tracer

import (
	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/system"
)

// stopAll stops all threads. Reports other than their stops are handled when they resume. Threads that they start meanwhile are also stopped.
func (s *server) stopAll() {
	if s.stopped {
		return
	}
	s.stopped, s.stopping = true, true
	defer func() { s.stopping = false }()
	for range system.Rounds {
		var asked []*thread
		for _, t := range s.threads {
			if t.running && !t.late {
				if ptrace(unix.PTRACE_INTERRUPT, t.tid, 0) == nil {
					asked = append(asked, t)
				}
			}
		}
		if len(asked) == 0 {
			return
		}
		for _, t := range asked {
			s.halt(t)
		}
	}
}

// halt waits until a thread has stopped, after PTRACE_INTERRUPT.
func (s *server) halt(t *thread) {
	var ws unix.WaitStatus
	if !s.await(t.tid, &ws) {
		t.late = true // this includes the first thread of a process that is ending, which reports after all others
		return
	}
	s.took(t, ws)
}

// took records a report of a thread while all threads are being stopped.
func (s *server) took(t *thread, ws unix.WaitStatus) {
	event := int(ws) >> 16
	t.late = false
	switch {
	case !ws.Stopped() && t.tid != s.pid:
		delete(s.threads, t.tid)
		return
	case event == unix.PTRACE_EVENT_CLONE || event == unix.PTRACE_EVENT_FORK || event == unix.PTRACE_EVENT_VFORK || event == unix.PTRACE_EVENT_VFORK_DONE:
		t.running = false
		s.news(t, event)
		return
	case event == unix.PTRACE_EVENT_EXIT: // it will no longer execute its own code
		t.running = false
		s.news(t, event)
		s.run(t)
		return
	case event == unix.PTRACE_EVENT_EXEC: // its memory has already been replaced
		s.becameAnother(t)
		return
	case event != unix.PTRACE_EVENT_STOP:
		t.running, t.report, t.hasReport = false, ws, true
		return
	}
	t.running = false
	t.group = ws.StopSignal() != unix.SIGTRAP
	s.settle(t)
}

// settle makes a thread report the breakpoint that it hit just before it was stopped, or the end of a step. Otherwise the SIGTRAP would end the
// process after a detach.
func (s *server) settle(t *thread) {
	var regs General
	if len(s.breakpoints) == 0 && len(s.placed) == 0 && !t.stepping || getRegs(t.tid, &regs) != nil {
		return
	}
	mayTrap := t.stepping || s.breakpoints[regs.trapped()] != nil || s.isPlaced(regs.trapped()) || t.debug.holds(regs.pc())
	if !mayTrap || !trapPending(t.tid) {
		return
	}
	// The thread reports the signal before it executes any instruction, but after other reports, such as a group-stop by SIGSTOP.
	for range system.Rounds {
		if ptrace(unix.PTRACE_CONT, t.tid, 0) != nil {
			return
		}
		var ws unix.WaitStatus
		if !s.await(t.tid, &ws) {
			break
		}
		if int(ws)>>16 == unix.PTRACE_EVENT_STOP {
			t.group = ws.StopSignal() != unix.SIGTRAP
			continue
		}
		t.report, t.hasReport = ws, true
		t.group, t.rejoin = false, t.rejoin || t.group
		return
	}
	t.running, t.late = true, true
}

// isPlaced reports whether a breakpoint for a thread that runs alone is at an address.
func (s *server) isPlaced(addr uint64) bool {
	_, placed := s.placed[addr]
	return placed
}

// resume resumes all threads. First it handles, one by one, the reports that were recorded while the threads were being stopped. If one of these
// leads to an event with Held, the threads stay stopped.
func (s *server) resume() {
	if s.pid == 0 || !s.stopped {
		return
	}
	if s.limit {
		s.reachLimit()
		return
	}
	before := s.standing
	s.leave()
	for _, t := range s.ordered() {
		if !t.hasReport {
			continue
		}
		t.hasReport = false
		s.handle(t.tid, t.report)
		if s.standing != before || s.pid == 0 {
			return
		}
	}
	if s.standing != before || s.pid == 0 {
		return
	}
	s.stopped = false
	for _, t := range s.ordered() {
		if t.backs = nil; !t.running {
			s.run(t)
		}
	}
}

// leave makes each thread that is at a breakpoint execute the instruction under it.
func (s *server) leave() {
	for _, t := range s.ordered() {
		if t.at == nil {
			continue
		}
		b := s.breakpoints[t.at.Addr] // the breakpoint may have been removed and set again, but this hit was already reported
		t.at = nil
		var regs General
		if b != nil && getRegs(t.tid, &regs) == nil && regs.pc() == b.Addr {
			s.stepOver(t, b, &regs)
		}
	}
}
