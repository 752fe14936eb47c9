//go:build linux

package tracer

import (
	"golang.org/x/sys/unix"
)

// stepOver runs the instruction under a breakpoint, while no other thread runs. If a debug register holds it, the thread only gets permission to
// pass. Code that the target has written over another breakpoint is run here too: if the thread ran it by itself, the breakpoint could be set again
// before that, and the thread would reach it twice.
func (s *server) stepOver(t *thread, b *breakpoint, regs *General) {
	if b.held {
		regs.pass()
		_ = setRegs(t.tid, regs) // a thread that was killed reports that next
		return
	}
	taken := exchange(s.memory, b.Addr, Trap, s.under(b))
	b.lifted = true
	s.step(t, place{b.Addr, regs.sp()})
	b.lifted = false
	if taken && s.breakpoints[b.Addr] == b && s.pid != 0 {
		exchange(s.memory, b.Addr, b.original, Trap)
	}
}

// exchange writes code over known code, and reports whether it did. The target may have written or mapped something else there.
func exchange(memory memory, addr uint64, known, code Code) bool {
	if now, err := codeAt(memory, addr); err != nil || now != known {
		return false
	}
	n, err := memory.write(code[:], addr)
	return err == nil && n == len(code)
}

// codeAt reads what lies where a breakpoint is, or is to be.
func codeAt(memory memory, addr uint64) (code Code, err error) {
	n, err := memory.read(code[:], addr)
	if err == nil && n < len(code) {
		err = unix.ESRCH // its memory is gone (mem_rw of Linux's fs/proc/base.c)
	}
	return code, err
}

// step runs one instruction of a thread, and reports whether it was run. Signals that come meanwhile wait until it is done; one that the
// instruction itself raises is delivered when the thread resumes, and it may return to the same place then. SIGSTOP does not wait: a SIGCONT that
// follows cancels it only if the kernel keeps it; the thread leaves that stop for the instruction.
func (s *server) step(t *thread, at place) (done bool) {
	stop := unix.Signal(0)
	for {
		signal := stop
		stop = 0
		if ptrace(unix.PTRACE_SINGLESTEP, t.tid, uintptr(signal)) != nil {
			t.running = true // it was killed, which it reports next
			return false
		}
		t.running, t.stepping = true, true
		var ws unix.WaitStatus
		if !s.await(t.tid, &ws) {
			// A system call that takes its time, or memory that a thread which is stopped is to provide
			// (userfaultfd(2)): it reports when that is over, or starts the instruction anew.
			t.again, t.raised = &at, nil
			return false
		}
		t.running = false
		event := int(ws) >> 16
		switch {
		case !ws.Stopped():
			s.threadEnded(t, ws)
			return false
		case event == unix.PTRACE_EVENT_EXEC:
			s.becameAnother(t)
			return false
		case event == unix.PTRACE_EVENT_STOP: // that it was interrupted is no news
			t.rejoin = t.rejoin || ws.StopSignal() != unix.SIGTRAP
			continue
		case event != 0:
			s.news(t, event)
			continue
		}
		info, err := getSigInfo(t.tid)
		if err != nil {
			continue
		}
		switch {
		case t.stepped(&info):
			t.put.giveBack(t, true)
			return true
		case synchronous(&info):
			t.signal = ws.StopSignal()
			t.put.giveBack(t, true)
			var regs General
			if getRegs(t.tid, &regs) == nil && regs.pc() == at.pc {
				t.again, t.raised = &place{regs.pc(), regs.sp()}, &regs
			}
			return false
		case ws.StopSignal() == unix.SIGSTOP:
			stop = unix.SIGSTOP
			continue
		}
		t.put.add(t, &info)
	}
}

// disarm makes a thread that stays stopped after a step leave that state: where the tracer is killed, the kernel does not end the single-stepping of
// its threads (__ptrace_unlink of Linux's kernel/ptrace.c), and the next SIGTRAP would end the process. The thread runs no instruction, since it is
// interrupted before it resumes.
func (s *server) disarm(t *thread) {
	if !t.stepping || t.running || t.hasReport || t.signal != 0 || t.guest || t.ending {
		return
	}
	if ptrace(unix.PTRACE_INTERRUPT, t.tid, 0) != nil || ptrace(unix.PTRACE_CONT, t.tid, 0) != nil {
		return // it was killed, which it reports next
	}
	t.running, t.stepping = true, false
	s.halt(t)
}
