//go:build linux

package tracer

import (
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kicker wakes the loop from wait4(2) by sending a signal to the loop's thread. The signal's handler has no SA_RESTART, unlike those that Go
// installs, so the signal ends the wait.
type kicker struct {
	tid    int
	asleep *atomic.Bool // the loop is in a wait that a signal ends
	asks   atomic.Int32 // number of requests that have arrived but were not taken; the end of the connection counts as one
}

// kick is the signal that wakes the loop. The tracer uses it for no other purpose.
const kick = unix.SIGIO

// kernelAction is struct sigaction as rt_sigaction(2) takes it.
type kernelAction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// prepare removes SA_RESTART from Go's handler of the signal. It also unblocks the signal in the calling thread, because the parent of this program
// may have blocked it.
func (k *kicker) prepare() error {
	const restart = 0x10000000 // SA_RESTART
	if err := changeAction(kick, func(flags uint64) uint64 { return flags &^ restart }); err != nil {
		return err
	}
	var set unix.Sigset_t
	set.Val[0] = 1 << (kick - 1)
	return unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}

// noStops prevents a SIGCHLD for each stop of a traced thread. The loop waits for stops anyway, and each such signal would stop the tracer for the
// watchdog.
func noStops() error {
	const noChildStops = 1 // SA_NOCLDSTOP of sigaction(2)
	return changeAction(unix.SIGCHLD, func(flags uint64) uint64 { return flags | noChildStops })
}

// changeAction changes the flags of Go's handler of a signal.
func changeAction(signal unix.Signal, change func(flags uint64) uint64) error {
	var a kernelAction
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), 0, uintptr(unsafe.Pointer(&a)), 8, 0, 0); errno != 0 {
		return errno
	}
	a.flags = change(a.flags)
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&a)), 0, 8, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func (k *kicker) asked() bool { return k.asks.Load() > 0 }

// wake makes the loop check for requests. A signal that arrives just before the loop begins to wait is lost, so wake repeats it.
func (k *kicker) wake() {
	k.asks.Add(1)
	go func() {
		for pause := 50 * time.Microsecond; k.asked(); pause = min(2*pause, gather) {
			if k.asleep.Load() {
				k.kick()
			}
			time.Sleep(pause)
		}
	}()
}

// watch wakes the loop at intervals while one of the reasons is set: output must be flushed, the loop waits for one thread with a time limit, or
// breakpoints must be checked.
func (k *kicker) watch(reasons ...*atomic.Bool) {
	for {
		time.Sleep(gather)
		if slices.ContainsFunc(reasons, (*atomic.Bool).Load) {
			k.kick()
		}
	}
}

func (k *kicker) kick() { _ = unix.Tgkill(unix.Getpid(), k.tid, kick) }
