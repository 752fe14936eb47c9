//go:build linux

package tracer

import (
	"slices"

	"golang.org/x/sys/unix"
)

// detach restores all code and releases all threads.
func (s *server) detach() {
	if s.pid == 0 {
		return
	}
	s.stopAll()
	s.restoreAll()
	s.removeHandler()
	s.letGo()
	s.out.flush()
	s.pid = 0
}

// restoreAll removes all breakpoints from memory.
func (s *server) restoreAll() {
	var addrs []uint64
	for addr := range s.breakpoints {
		addrs = append(addrs, addr)
	}
	s.remove(addrs)
	for addr, code := range s.placed {
		exchange(s.memory, addr, Trap, code)
	}
}

// letGo detaches from all threads, and delivers to each its pending signal.
func (s *server) letGo() {
	for _, t := range s.ordered() {
		if t.running { // the thread did not stop earlier; its wait in the kernel may have ended since
			var ws unix.WaitStatus
			if s.await(t.tid, &ws) {
				t.running, t.report, t.hasReport = false, ws, true
			}
		}
		signal := t.deliverable()
		t.put.giveBack(t, false)
		_ = t.setDebug(debugRegisters{}) // an error means that the thread ends, has no debug registers, or is not stopped
		if ptrace(unix.PTRACE_DETACH, t.tid, uintptr(signal)) != nil && (t.debug != (debugRegisters{}) || t.left || s.owed[t.tid] != nil) && !t.ended() {
			s.lingering[t.tid] = t
		}
	}
	s.threads = map[int]*thread{}
}

// deliverable returns the signal to deliver to a thread when it is released, or 0.
func (t *thread) deliverable() unix.Signal {
	if !t.hasReport || !t.report.Stopped() || int(t.report)>>16 != 0 {
		return t.signal
	}
	if info, err := getSigInfo(t.tid); t.rewound || err == nil && t.stepped(&info) {
		return 0
	}
	return t.report.StopSignal()
}

// restoreCopy removes the breakpoints and the SIGTRAP handler from a child, which has a copy of the target's memory.
func (s *server) restoreCopy(child *thread) {
	pid := child.tid
	m, err := openMemory(memoryOf(pid, pid), slices.Values([]int{pid}))
	if err != nil {
		return // the child was killed
	}
	defer m.close()
	for _, b := range s.breakpoints {
		if !b.held {
			exchange(m, b.Addr, Trap, s.under(b))
		}
	}
	for addr, code := range s.placed {
		exchange(m, addr, Trap, code)
	}
	if s.handler.base != 0 && child.able() {
		s.removeFrom(child, m, s.handler.base, true)
	}
}
