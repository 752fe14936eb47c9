//go:build linux

package tracer

import (
	"golang.org/x/sys/unix"
)

// owe records that the registers of a running thread must be restored when it next reports, before anything else. Such a thread has not returned from
// a system call that it made for the tracer.
func (s *server) owe(tid int, restore func()) {
	if s.owed == nil {
		s.owed = map[int]func(){}
	}
	s.owed[tid] = restore
}

// payBack restores the registers of a thread when it reports. After an execve(2), or at its end, the thread has other registers, which are left
// unchanged.
func (s *server) payBack(tid int, stopped bool, event int) {
	restore := s.owed[tid]
	if restore == nil {
		return
	}
	delete(s.owed, tid)
	if stopped && event != unix.PTRACE_EVENT_EXEC {
		restore()
	}
}
