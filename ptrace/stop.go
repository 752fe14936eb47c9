package ptrace

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// Requests of ptrace(2), linux/ptrace.h.
const (
	ptraceDetach    = 17
	ptraceSeize     = 0x4206
	ptraceInterrupt = 0x4207
)

// seizer runs ptrace requests. Linux requires that the thread which seized the target makes all requests, so they run on a thread that does nothing
// else. When that thread ends, the kernel releases all threads that it had seized.
type seizer struct {
	requests chan func()
	done     chan struct{}
	tid      int // number of that thread
}

func newSeizer() *seizer {
	t := &seizer{requests: make(chan func()), done: make(chan struct{})}
	go t.serve()
	return t
}

func (t *seizer) serve() {
	// Never unlock, so that the thread ends with the goroutine. The program's first thread is an exception: Go parks it forever, and it would
	// continue to trace.
	runtime.LockOSThread()
	if system.ThisThread() == os.Getpid() { // the first thread
		elsewhere := make(chan struct{})
		go func() {
			runtime.LockOSThread() // lock another thread while the first one is still locked
			close(elsewhere)
			t.serve()
		}()
		<-elsewhere
		runtime.UnlockOSThread()
		return
	}
	system.WakeOnTime()
	t.tid = system.ThisThread()
	for f := range t.requests {
		f()
		t.done <- struct{}{}
	}
	close(t.done)
}

func (t *seizer) do(f func() error) (err error) {
	t.requests <- func() { err = f() }
	<-t.done
	return err
}

func (t *seizer) doUrgently(f func() error) error {
	return t.do(func() error { return system.Urgently(f) })
}

// end ends the thread, and waits until it has ended. Otherwise this process could still trace seized threads for a moment, and another tracer could
// not seize them.
func (t *seizer) end() {
	close(t.requests)
	<-t.done
	for begin := time.Now(); !system.Ended(os.Getpid(), t.tid) && time.Since(begin) < leavingPatience; {
		time.Sleep(50 * time.Microsecond)
	}
}

// stopped is a process that is being stopped, is stopped, or was resumed. Its methods run on the seizer's thread, through do, because switching
// threads during the stop would prolong it.
type stopped struct {
	*seizer
	pid        int
	via        int // the thread through which memory is read
	stack      int // number of bytes of each stack to copy
	room       int // remaining bytes for all stacks
	deep       int // remaining bytes for the deeper parts of deep stacks
	ready      int // remaining bytes of stack copies that are touched before the stop, beyond the usual size of each stack
	looks      int // number of checks that found a thread not yet stopped
	threads    []*stoppedThread
	byTID      map[int]*stoppedThread
	goroutines *goCopy       // copies goroutines that no thread runs; nil if they are not requested
	*gatherer                // collects data for a core; nil if no core will be written
	also       []system.Want // further memory to copy
	since      time.Time     // time of the first stop request
	stopping   time.Duration // time from since until the last thread had stopped
	pause      time.Duration // time from since until the last thread was resumed
}

type stoppedThread struct {
	tid     int
	signal  syscall.Signal // a signal that was intercepted before delivery; it is delivered when the thread is resumed
	missing string         // why the thread is not stopped, or ""
	ended   bool           // the thread ended while it was being stopped
	raw     rawRegisters
	sp, pc  machine.Addr // registers at the stop
	link    machine.Addr // the link register, which may hold the return address; pc if the architecture has none
	arch    *machine.Arch
	block   machine.Addr // the thread pointer; 0 if unknown
	past    []span       // parts of the stacks after unreadable pages
	unread  []machine.Range
	stacks  []span         // the current stack, then stacks that signals interrupted
	runtime []span         // structures of Go's run time
	running []machine.Addr // goroutines to which the thread refers
	code    []system.Want
	deep    *int // remaining bytes for deep stacks; nil for none
}

// oneLook limits how much each interval between two checks of a stopping thread counts towards the time limit, because this process may not have been
// scheduled in between.
const oneLook = time.Millisecond

// Stacks, registers and the code around return addresses are copied into memory that is allocated before the stop.
const (
	// Size of the red zone below the stack pointer (System V ABI, AMD64 supplement, 3.2.2); other architectures have a smaller one or none.
	redZone = 128

	usualStack = 32 << 10      // the usual size of the used part of a stack
	readyStack = 16 << 20      // for all threads together, so that copying the first stacks does not wait for page allocation
	maxStacks  = math.MaxInt32 // for all threads together: if the stacks are larger, leastStack of each is copied
	leastStack = 4096
)

func newStopped(pid, via int, o Options) *stopped {
	var also []system.Want
	for _, r := range o.Also {
		w := system.Want{Addr: r.Start, Buf: make([]byte, r.End-r.Start)}
		touch(w.Buf)
		also = append(also, w)
	}
	return &stopped{also: also, seizer: newSeizer(), pid: pid, via: via, stack: o.StackBytes, deep: o.deep, room: maxStacks, ready: readyStack, byTID: map[int]*stoppedThread{}}
}

// stopAll seizes all threads and interrupts them.
func (s *stopped) stopAll() error {
	return system.EachRound(s.pid, func(tids []int) (found bool, err error) {
		var fresh []*stoppedThread
		for _, tid := range tids {
			if s.byTID[tid] != nil {
				continue
			}
			t := &stoppedThread{tid: tid, deep: &s.deep}
			// Seizing does not stop a thread, so it is done before the pause begins.
			switch err := system.Request(ptraceSeize, tid, 0); {
			case errors.Is(err, syscall.ESRCH):
				continue // the thread has ended since the list was read
			case errors.Is(err, syscall.EPERM) && system.Ended(s.pid, tid):
				// When threads end, the kernel keeps the first thread until the last one ends.
				if tid != s.pid {
					continue
				}
				t.missing = "the thread has ended, and the process continues without it"
			case err != nil:
				return false, err
			}
			t.raw = newRawRegisters(arch)
			room := min(s.stack, max(leastStack, s.room))
			s.room -= room
			t.stacks = []span{{data: make([]byte, room)}}
			touch(t.stacks[0].data[:min(room, max(usualStack, s.ready))])
			s.ready -= room
			s.byTID[tid] = t
			s.threads = append(s.threads, t)
			fresh = append(fresh, t)
		}
		if len(fresh) == 0 {
			if !s.since.IsZero() {
				s.stopping = time.Since(s.since)
			}
			return false, nil
		}
		if s.since.IsZero() {
			s.since = time.Now()
		}
		for _, t := range fresh {
			if t.missing == "" {
				if err := system.Request(ptraceInterrupt, t.tid, 0); err != nil {
					t.end()
				}
			}
		}
		for _, t := range fresh {
			if t.missing == "" {
				s.wait(t)
			}
		}
		return true, nil
	})
}

func (t *stoppedThread) end() { t.ended, t.missing = true, "it has ended" }

// eagerLooks is the number of checks of all threads before this thread yields its processor. Most threads stop within microseconds, but a thread that
// must run to stop may need this very processor.
const eagerLooks = 64

// wait waits until the thread is stopped, and records the signal with which it stopped.
func (s *stopped) wait(t *stoppedThread) {
	pid := s.pid
	waited, looked := time.Duration(0), time.Now()
	for {
		switch progress, signal := system.PollStop(t.tid); progress {
		case system.HasEnded:
			t.end()
			return
		case system.StandsStill:
			t.signal = signal
			return
		}
		now := time.Now()
		waited, looked = waited+min(now.Sub(looked), oneLook), now
		switch {
		case waited > system.StopPatience:
			if state, late := system.Late(pid, t.tid, waited); late {
				t.missing = fmt.Sprintf("it did not stop within %v: it is in state %c", waited.Round(system.StopPatience), state)
				if state == 'D' {
					t.missing += ", in which it waits in the kernel for a device, or for its child of vfork"
				}
				return
			}
			time.Sleep(oneLook)
		case waited > oneLook:
			// The kernel reports the first thread of a killed process only after all others.
			if system.Ended(pid, t.tid) {
				t.end()
				return
			}
			time.Sleep(50 * time.Microsecond)
		case s.looks < eagerLooks:
			s.looks++
		default:
			system.Nap()
		}
	}
}

// letGo resumes all threads, and delivers to each the signal that was being delivered. It resumes threads in system calls first, because a running
// thread would take the processor that is needed to resume the others.
func (s *stopped) letGo() error {
	for _, asleep := range []bool{true, false} {
		for _, t := range s.threads {
			if t.missing == "" && t.raw.inSyscall() == asleep {
				// An error means that the thread was killed.
				_ = system.Request(ptraceDetach, t.tid, uintptr(t.signal))
			}
		}
	}
	if !s.since.IsZero() {
		s.pause = time.Since(s.since)
	}
	return nil
}
