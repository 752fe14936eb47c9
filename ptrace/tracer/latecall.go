//go:build linux

package tracer

import (
	"golang.org/x/sys/unix"
)

// owe notes that a thread which runs must have its registers restored at its next report, before anything else: it has not returned from a system
// call that it made for the tracer.
func (s *server) owe(tid int, restore func()) {
	if s.owed == nil {
		s.owed = map[int]func(){}
	}
	s.owed[tid] = restore
}

// payBack restores the registers of a thread at a report. After an execve(2), or at its end, it has others.
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
