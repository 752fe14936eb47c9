//go:build linux

package tracer

import (
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kicker wakes the loop where it sleeps in wait4(2): by a signal to its thread, whose handler, unlike those
// that Go installs, does not make the kernel wait on.
type kicker struct {
	tid    int
	asleep *atomic.Bool // the loop is in a wait that a signal ends
	asks   atomic.Int32 // requests that have come, and have not been taken, and the end of them
}

// kick is a signal that nothing else here uses.
const kick = unix.SIGIO

// kernelAction is struct sigaction as rt_sigaction(2) takes it.
type kernelAction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// prepare removes SA_RESTART from the handler of the signal, which is Go's, and unblocks the signal in the calling thread: the parent of this
// program may have blocked it.
func (k *kicker) prepare() error {
	const restart = 0x10000000 // SA_RESTART
	if err := changeAction(kick, func(flags uint64) uint64 { return flags &^ restart }); err != nil {
		return err
	}
	var set unix.Sigset_t
	set.Val[0] = 1 << (kick - 1)
	return unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}

// noStops prevents a signal for each stop of a traced thread. The loop waits for stops, and each signal would stop the loop itself for the watchdog.
func noStops() error {
	const noChildStops = 1 // SA_NOCLDSTOP of sigaction(2)
	return changeAction(unix.SIGCHLD, func(flags uint64) uint64 { return flags | noChildStops })
}

// changeAction changes the flags of a signal's handler, which is Go's.
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

// wake makes the loop check for requests. A signal that comes just before the loop falls asleep is lost, and followed by another.
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

// watch wakes the loop when what it has written has waited long enough, where it waits for one thread, for which it must not
// wait for ever, and where it is to look at its breakpoints now and then.
func (k *kicker) watch(reasons ...*atomic.Bool) {
	for {
		time.Sleep(gather)
		if slices.ContainsFunc(reasons, (*atomic.Bool).Load) {
			k.kick()
		}
	}
}

func (k *kicker) kick() { _ = unix.Tgkill(unix.Getpid(), k.tid, kick) }
