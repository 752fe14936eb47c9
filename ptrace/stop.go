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

// seizer runs ptrace requests. Linux wants all of them from the thread that
// seized the target, so they run on one thread that does nothing else; when
// that thread ends, the kernel lets go of all that it had seized.
type seizer struct {
	requests chan func()
	done     chan struct{}
	tid      int // of that thread
}

func newSeizer() *seizer {
	t := &seizer{requests: make(chan func()), done: make(chan struct{})}
	go t.serve()
	return t
}

func (t *seizer) serve() {
	// Never unlocked: the thread ends with the goroutine. That holds for all threads but the program's first one, which Go parks forever, and which
	// would continue tracing.
	runtime.LockOSThread()
	if system.ThisThread() == os.Getpid() { // its first one
		elsewhere := make(chan struct{})
		go func() {
			runtime.LockOSThread() // while the first thread is still taken
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

// end ends the thread, and waits until it has: otherwise threads that were seized and not stopped before another one could not be seized, for
// example, would for a moment appear to be traced by this process.
func (t *seizer) end() {
	close(t.requests)
	<-t.done
	for begin := time.Now(); !system.Ended(os.Getpid(), t.tid) && time.Since(begin) < leavingPatience; {
		time.Sleep(50 * time.Microsecond)
	}
}

// stopped is a process that is being stopped, is stopped, or was resumed. Its methods run on the seizer's thread, through do: changing threads in
// the middle would prolong the stop.
type stopped struct {
	*seizer
	pid       int
	via       int // the thread through which memory is read
	stack     int // bytes of each stack that are copied
	room      int // bytes that are left for all stacks
	deep      int // bytes that are left for what deep stacks have beyond that
	ready     int // bytes that are left for stacks whose copies have their pages beforehand
	looks     int // at threads that had not stopped yet
	threads   []*stoppedThread
	byTID     map[int]*stoppedThread
	*gatherer               // of what a core is to hold; nil where none is made
	since     time.Time     // when the first thread was told to stop
	stopping  time.Duration // until the last one was stopped
	pause     time.Duration // until the last one was resumed
}

type stoppedThread struct {
	tid     int
	signal  syscall.Signal // caught before its delivery to the thread; delivered when it is resumed
	missing string         // why the thread is not stopped, or ""
	ended   bool           // it ended while it was being stopped: the thread no longer exists
	raw     rawRegisters
	sp, pc  machine.Addr // where it is stopped
	link    machine.Addr // the register that may have its return address; pc for none
	arch    *machine.Arch
	past    []span // of the stacks, after pages that cannot be read
	unread  []machine.Range
	stacks  []span // the one it runs on, then those that signals interrupted
	code    []system.Want
	deep    *int // bytes that are left for deep stacks; nil for none
}

// oneLook bounds how much the time between two checks of a stopping thread counts: if this process was not scheduled meanwhile, it has not waited.
const oneLook = time.Millisecond

// The stack of a thread, its registers and the code around return addresses are read into memory that is allocated before the stop.
const (
	redZone = 128 // below the stack pointer (System V ABI, AMD64 supplement, 3.2.2); other architectures have a smaller one or none

	usualStack = 32 << 10      // of it is in use
	readyStack = 16 << 20      // of all threads together: the copies of the first threads must not wait for the kernel to allocate pages
	maxStacks  = math.MaxInt32 // of all threads together; past it each gets leastStack
	leastStack = 4096
)

func newStopped(pid, via int, o Options) *stopped {
	return &stopped{seizer: newSeizer(), pid: pid, via: via, stack: o.StackBytes, deep: o.deep, room: maxStacks, ready: readyStack, byTID: map[int]*stoppedThread{}}
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
			// Seizing does not stop: it can be done before the clock runs.
			switch err := system.Request(ptraceSeize, tid, 0); {
			case errors.Is(err, syscall.ESRCH):
				continue // it ended since it was listed
			case errors.Is(err, syscall.EPERM) && system.Ended(s.pid, tid):
				// Of threads that have ended, the kernel keeps the first one until the last one ends.
				if tid != s.pid {
					continue
				}
				t.missing = "the thread has ended and the process goes on without it"
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

// eagerLooks is how often all threads are checked before this thread yields its processor: most stop within microseconds. A thread that must run to
// stop may wait for that very processor.
const eagerLooks = 64

// wait waits until the thread is stopped, and records the signal that it stopped with.
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
			// The first thread of a process that was killed is handed over only after all others.
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

// letGo resumes all threads, each with the signal that was being delivered to it. Those that sleep in a system call are first: one that runs takes
// the processor that the resuming of the others needs.
func (s *stopped) letGo() error {
	for _, asleep := range []bool{true, false} {
		for _, t := range s.threads {
			if t.missing == "" && t.raw.inSyscall() == asleep {
				// A thread that was killed meanwhile cannot be resumed, and need not be.
				_ = system.Request(ptraceDetach, t.tid, uintptr(t.signal))
			}
		}
	}
	if !s.since.IsZero() {
		s.pause = time.Since(s.since)
	}
	return nil
}
