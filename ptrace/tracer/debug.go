//go:build linux

package tracer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// debugRegisters holds the addresses of the breakpoints that the processor holds for a thread; 0 means none. They do not change the code, which the
// target may read, compare, keep and overwrite. Each thread has its own; all get the same ones before they resume. A new thread or process has
// none, and an exec clears them (copy_thread and flush_thread of Linux's arch/x86/kernel/process.c). The end of a tracer does not.
type debugRegisters [HardwareBreakpoints]uint64

func (d *debugRegisters) holds(addr uint64) bool { return addr != 0 && slices.Contains(d[:], addr) }

// errTaken reports that a thread uses debug registers for another purpose.
var errTaken = errors.New("somebody else uses its debug registers")

// hold puts a breakpoint into debug registers, and reports whether one was free in all threads.
func (s *server) hold(addr uint64) bool {
	slot := slices.Index(s.debug[:], 0)
	if slot < 0 || addr == 0 || !DebugFires() {
		return false
	}
	s.debug[slot] = addr
	for _, t := range s.threads {
		if t.guest || t.vforks || t.running { // it gets them when it resumes
			continue
		}
		if err := t.setDebug(s.debug); err != nil && err != unix.ESRCH {
			s.debug[slot] = 0 // those that have it by now lose it when they resume
			return false
		}
	}
	return true
}

// release drops a breakpoint from debug registers: the threads, which are stopped, have it until they resume.
func (s *server) release(addr uint64) {
	if slot := slices.Index(s.debug[:], addr); slot >= 0 {
		s.debug[slot] = 0
	}
}

// arm sets the debug registers of a thread that is about to resume.
func (s *server) arm(t *thread) {
	want := s.debug
	if t.guest || t.vforks {
		want = debugRegisters{}
	}
	err := t.setDebug(want)
	if err == nil || err == unix.ESRCH { // it was killed, which it reports next
		return
	}
	for _, addr := range want {
		if b := s.breakpoints[addr]; b != nil && !t.debug.holds(addr) {
			s.out.event(&Event{Kind: Missed, Time: time.Now().UnixNano(), Addr: addr, Raw: Raw{TID: t.tid}, Why: err.Error()})
		}
	}
}

// linger waits for threads that did not stop when all others were released, and that a debug register would kill later, or whose registers are those of
// a system call for the tracer: they sleep in the kernel. No client waits for it.
func (s *server) linger() {
	for len(s.lingering)+len(s.owed) > 0 {
		var ws unix.WaitStatus
		tid, err := wait(-1, &ws, unix.WALL)
		if err != nil {
			return // there are no more
		}
		t := s.lingering[tid]
		if t == nil {
			t = &thread{tid: tid} // started by one of them
		}
		t.stepping = t.stepping || s.owed[tid] != nil
		s.payBack(tid, ws.Stopped(), int(ws)>>16)
		if !ws.Stopped() {
			delete(s.lingering, tid)
			continue
		}
		signal := unix.Signal(0)
		if info, err := t.sigInfo(); int(ws)>>16 == 0 && !(err == nil && (info.Code == trapHardware || t.stepped(&info)) && ws.StopSignal() == unix.SIGTRAP) {
			signal = ws.StopSignal()
		}
		_ = t.setDebug(debugRegisters{})
		_ = ptrace(unix.PTRACE_DETACH, tid, uintptr(signal))
		delete(s.lingering, tid)
	}
}

// clear takes out the debug registers that a tracer has left which was killed.
func (s *server) clear(addrs []uint64) error {
	for _, t := range s.threads {
		if t.running {
			return fmt.Errorf("thread %d does not stop", t.tid)
		}
		if err := t.clearDebug(addrs); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}
