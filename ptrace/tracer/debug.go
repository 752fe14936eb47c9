//go:build linux

package tracer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// debugRegisters holds the addresses of a thread's breakpoints in debug registers; 0 means none. Debug registers leave the code unchanged, so the
// target may read, compare, save and overwrite it. Each thread has its own registers; all get the same addresses before they resume. A new thread or
// process has no addresses, and an exec clears them (copy_thread and flush_thread of Linux's arch/x86/kernel/process.c). They are not cleared when a
// tracer ends.
type debugRegisters [HardwareBreakpoints]uint64

func (d *debugRegisters) holds(addr uint64) bool { return addr != 0 && slices.Contains(d[:], addr) }

// errTaken reports that a thread uses debug registers for another purpose.
var errTaken = errors.New("its debug registers are already in use")

// hold sets a breakpoint in a debug register of all threads, and reports whether each thread had a free one.
func (s *server) hold(addr uint64) bool {
	slot := slices.Index(s.debug[:], 0)
	if slot < 0 || addr == 0 || !DebugFires() {
		return false
	}
	s.debug[slot] = addr
	for _, t := range s.threads {
		if t.guest || t.vforks || t.running { // arm sets them when the thread resumes
			continue
		}
		if err := t.setDebug(s.debug); err != nil && err != unix.ESRCH {
			s.debug[slot] = 0 // threads that already have the breakpoint lose it when they resume
			return false
		}
	}
	return true
}

// release frees the debug register of a breakpoint. The stopped threads keep the breakpoint until they resume.
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
	if err == nil || err == unix.ESRCH { // ESRCH: the thread was killed, which wait(2) reports next
		return
	}
	for _, addr := range want {
		if b := s.breakpoints[addr]; b != nil && !t.debug.holds(addr) {
			s.out.event(&Event{Kind: Missed, Time: time.Now().UnixNano(), Addr: addr, Raw: Raw{TID: t.tid}, Why: err.Error()})
		}
	}
}

// linger waits for threads that did not stop when all others were released, because they sleep in the kernel. If the tracer ended before, a debug
// register would later kill them, or they would keep the registers of a system call that the tracer has set. No client waits for linger.
func (s *server) linger() {
	for len(s.lingering)+len(s.owed) > 0 {
		var ws unix.WaitStatus
		tid, err := wait(-1, &ws, unix.WALL)
		if err != nil {
			return // no thread is left
		}
		t := s.lingering[tid]
		if t == nil {
			t = &thread{tid: tid} // a thread that one of the lingering threads has started
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

// clear clears the debug registers that a killed tracer left set.
func (s *server) clear(addrs []uint64) error {
	ours := func(addr uint64) bool { return slices.Contains(addrs, addr) }
	for _, t := range s.threads {
		if t.running {
			return fmt.Errorf("thread %d does not stop", t.tid)
		}
		if err := t.clearDebug(ours); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}
