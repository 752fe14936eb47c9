//go:build linux

package tracer

import (
	"golang.org/x/sys/unix"
)

// stepOver executes the instruction under a breakpoint while no other thread runs. If the breakpoint is in a debug register, it only lets the thread
// pass. Code that the target has written over another breakpoint is also stepped here. If the thread resumed normally, the breakpoint could be set
// again before that instruction is executed, and the thread would hit it twice.
func (s *server) stepOver(t *thread, b *breakpoint, regs *General) {
	if b.held {
		regs.pass()
		_ = setRegs(t.tid, regs) // an error means that the thread was killed, which wait(2) reports next
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

// exchange replaces known code, and reports whether it did. It writes nothing if the target has written or mapped other code there.
func exchange(memory memory, addr uint64, known, code Code) bool {
	if now, err := codeAt(memory, addr); err != nil || now != known {
		return false
	}
	n, err := memory.write(code[:], addr)
	return err == nil && n == len(code)
}

// codeAt reads the code at the address of a breakpoint.
func codeAt(memory memory, addr uint64) (code Code, err error) {
	n, err := memory.read(code[:], addr)
	if err == nil && n < len(code) {
		err = unix.ESRCH // the memory no longer exists (mem_rw of Linux's fs/proc/base.c)
	}
	return code, err
}

// step executes one instruction of a thread, and reports whether it was executed. Other signals wait until then. A signal that the instruction itself
// raises is delivered when the thread resumes, and its handler may return to the same place. SIGSTOP does not wait, because a later SIGCONT cancels
// it only while the kernel holds it. The thread leaves the group-stop to execute the instruction.
func (s *server) step(t *thread, at place) (done bool) {
	stop := unix.Signal(0)
	for {
		signal := stop
		stop = 0
		if ptrace(unix.PTRACE_SINGLESTEP, t.tid, uintptr(signal)) != nil {
			t.running = true // it was killed, which its next wait status reports
			return false
		}
		t.running, t.stepping = true, true
		var ws unix.WaitStatus
		if !s.await(t.tid, &ws) {
			// The instruction is a slow system call, or it accesses memory that a stopped thread must provide (userfaultfd(2)). The thread reports
			// when the instruction is done, or executes it again.
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
		case event == unix.PTRACE_EVENT_STOP: // an interrupt, or a group-stop
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

// disarm ends the single-stepping of a thread that stays stopped after a step. If the tracer is killed, the kernel does not disable single-stepping
// (__ptrace_unlink of Linux's kernel/ptrace.c), and the next SIGTRAP would end the process. The thread executes no instruction here, because it is
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
