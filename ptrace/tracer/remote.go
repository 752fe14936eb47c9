//go:build linux

package tracer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// remote makes a stopped thread of the target run system calls while all other threads are stopped.
type remote struct {
	s        *server
	t        *thread
	memory   memory
	at       uint64 // the address of a system call instruction
	before   General
	programs uint64 // server.programs when the remote was created
	keepCall func()
	again    *place
	raised   *General
}

// Reasons why a thread cannot make a system call now.
var (
	errNoThread = errors.New("no thread of the process can make a system call now")
	errFrozen   = errors.New("the control group of the process is frozen")
	errSequence = errors.New("the thread is in a restartable sequence (rseq)")
	errLateCall = errors.New("the thread did not return from a system call in time")
)

// newRemote returns a remote for a thread. The caller must call end.
func (s *server) newRemote(t *thread, m memory, at uint64) (*remote, error) {
	switch {
	case frozen(t.tid):
		return nil, errFrozen
	case inSequence(t.tid, m):
		return nil, errSequence
	}
	r := &remote{s: s, t: t, memory: m, at: at, programs: s.programs, keepCall: keepCall(t.tid), again: t.again, raised: t.raised}
	if err := getRegs(t.tid, &r.before); err != nil {
		return nil, err
	}
	t.group, t.rejoin = false, t.rejoin || t.group
	return r, nil
}

// call makes a system call.
func (r *remote) call(number uint64, args ...uint64) (uint64, error) {
	t := r.t
	if t.running {
		return 0, errLateCall
	}
	if t.signal != 0 { // the signal arrived during the last call
		if info, err := getSigInfo(t.tid); err == nil {
			info.Signo, t.signal = int32(t.signal), 0
			t.put.add(t, &info)
		}
	}
	var six [6]uint64
	copy(six[:], args)
	regs := r.before
	regs.setCall(r.at, number, six)
	if err := setGeneral(t.tid, regs); err != nil {
		return 0, err
	}
	if !r.s.step(t, place{regs.pc(), regs.sp()}) {
		t.signal = 0 // the call raised it
		if t.running {
			return 0, errLateCall
		}
		return 0, errors.New("the thread did not return from a system call")
	}
	if err := getRegs(t.tid, &regs); err != nil {
		return 0, err
	}
	result, ok := regs.called(r.at)
	if !ok {
		return 0, errors.New("the thread did not return from a system call")
	}
	if errno := -result; errno != 0 && errno <= maxErrno {
		return 0, unix.Errno(errno)
	}
	return result, nil
}

// maxErrno is the largest error of a system call (MAX_ERRNO of Linux's include/linux/err.h).
const maxErrno = 4095

// end restores the thread. If the thread has not returned from its call, end interrupts it. If it does not stop, it is restored at its next report.
func (r *remote) end() {
	t := r.t
	t.again, t.raised = r.again, r.raised
	if r.programs != r.s.programs {
		return
	}
	if t.running {
		r.s.owe(t.tid, r.restore)
		if ptrace(unix.PTRACE_INTERRUPT, t.tid, 0) != nil { // the thread has ended
			delete(r.s.owed, t.tid)
			return
		}
		if r.s.halt(t); t.running {
			return
		}
	} else {
		r.restore()
	}
	r.s.disarm(t)
}

// restore restores the registers that the thread had before its calls.
func (r *remote) restore() {
	_ = setRegs(r.t.tid, &r.before) // an error means that it was killed
	r.keepCall()
}

// able returns a thread of the target that can make system calls: one that is stopped, and whose reports were all handled. It returns nil if there is
// none, or if any thread is in the kernel, where it may hold a lock that a call needs.
func (s *server) able() (able *thread) {
	for _, t := range s.ordered() {
		if t.running || t.late {
			return nil
		}
		if able == nil && !t.guest && t.able() && !inSequence(t.tid, s.memory) && s.leaveEvent(t) {
			able = t
		}
	}
	return able
}

// leaveEvent makes a thread leave the system call in which it reports an event (clone, fork, vfork, exec), and whose result it has not yet received.
// The thread executes no instruction, because it is interrupted before it resumes.
func (s *server) leaveEvent(t *thread) bool {
	info, err := getSigInfo(t.tid) // fails with EINVAL in a group-stop (ptrace(2))
	event := info.Code >> 8
	if err == unix.EINVAL || err == nil && (info.Code&0xff != int32(unix.SIGTRAP) || event == 0 || event == unix.PTRACE_EVENT_STOP) {
		return true
	}
	if err != nil || ptrace(unix.PTRACE_INTERRUPT, t.tid, 0) != nil || ptrace(unix.PTRACE_CONT, t.tid, 0) != nil {
		return false
	}
	t.running = true
	s.halt(t)
	return s.threads[t.tid] == t && t.able()
}

// able reports whether a stopped thread can make system calls.
func (t *thread) able() bool {
	return !t.running && !t.late && !t.hasReport && !t.ending && !t.vforks && t.signal == 0 && !t.killed()
}

// maxSought bounds the number of pages that are searched for a system call instruction.
const maxSought = 1 << 12

// syscallAt finds a system call instruction in the target. Usually a thread has just executed one.
func (s *server) syscallAt() (at uint64, found bool) {
	size := uint64(len(syscallCode))
	var code [8]byte
	for _, t := range s.threads {
		var regs General
		if t.guest || t.running || getRegs(t.tid, &regs) != nil {
			continue
		}
		if n, err := s.memory.read(code[:size], regs.pc()-size); err == nil && n == int(size) && bytes.Equal(code[:size], syscallCode) {
			return regs.pc() - size, true
		}
	}
	x := s.sharing()
	defer x.close()
	if x.pages == nil || x.maps == nil {
		return 0, false
	}
	return s.seekSyscall(x)
}

// seekSyscall searches the pages of the target that are in memory. It skips pages that the kernel would first have to read.
func (s *server) seekSyscall(x *sharing) (at uint64, found bool) {
	pageSize := uint64(os.Getpagesize())
	page := make([]byte, pageSize)
	lines, left := bufio.NewScanner(x.maps), maxSought
	for n := 0; n < maxMaps && lines.Scan(); n++ {
		var from, to uint64
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "r-x") {
			continue
		}
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
			continue
		}
		for a := from; a < to && left > 0; a += pageSize {
			left--
			if !x.present(a / pageSize) {
				continue
			}
			if got, err := s.memory.read(page, a); err != nil || got < len(page) {
				continue
			}
			if i := indexOf(page, syscallCode, seekStep); i >= 0 {
				return a + uint64(i), true
			}
		}
	}
	return 0, false
}

// present reports whether the process has a page in memory.
func (x *sharing) present(number uint64) bool {
	const present, entrySize = 1 << 63, 8
	var entry [entrySize]byte
	n, err := x.pages.ReadAt(entry[:], int64(number*entrySize))
	return err == nil && n == entrySize && binary.NativeEndian.Uint64(entry[:])&present != 0
}

// indexOf returns the lowest multiple of step that is the index of code in b, or -1.
func indexOf(b, code []byte, step int) int {
	for i := 0; i+len(code) <= len(b); i += step {
		if bytes.HasPrefix(b[i:], code) {
			return i
		}
	}
	return -1
}
