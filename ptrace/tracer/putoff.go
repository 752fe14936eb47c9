//go:build linux

package tracer

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// putOff are the signals that came to a thread while it was to run instructions of its own, and wait until it has.
type putOff struct {
	signals []sigInfo
	mask    uint64 // what the thread itself blocks
	masked  bool   // and it blocks more now
}

// Signals that an instruction may raise, and those that cannot be blocked.
const (
	raised = 1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) | 1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1)
	never  = 1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1)
	others = ^uint64(raised | never)
)

// Signals that cancel each other.
const (
	stops     = 1<<(unix.SIGSTOP-1) | 1<<(unix.SIGTSTP-1) | 1<<(unix.SIGTTIN-1) | 1<<(unix.SIGTTOU-1)
	continues = 1 << (unix.SIGCONT - 1)
)

const (
	getSigMask = 0x420a // PTRACE_GETSIGMASK, linux/ptrace.h
	setSigMask = 0x420b
)

// add puts off a signal that the thread is stopped at, and blocks others, except those that an instruction may raise: if one of these is blocked
// when it is raised, the kernel resets the program's handler for it (force_sig_info_to_task of Linux's kernel/signal.c).
func (p *putOff) add(t *thread, info *sigInfo) {
	p.signals = append(p.signals, *info)
	if now, ok := signalMask(t); ok && !p.blocks(now) {
		p.mask = now
		p.masked = setSignalMask(t, p.mask|others)
	}
}

// blocks reports whether a thread's mask is the one that was set last. It is not after sigreturn(2) or if the thread has set one by itself, which
// it then keeps.
func (p *putOff) blocks(now uint64) bool { return p.masked && now == p.mask|others }

// unblock makes the thread block what it blocked before.
func (p *putOff) unblock(t *thread) {
	if !p.masked {
		return
	}
	if now, ok := signalMask(t); ok && p.blocks(now) {
		setSignalMask(t, p.mask)
	}
	p.masked = false
}

func signalMask(t *thread) (mask uint64, ok bool) {
	ok = ptraceAt(getSigMask, t.tid, 8, unsafe.Pointer(&mask)) == nil
	return mask, ok
}

func setSignalMask(t *thread, mask uint64) bool {
	return ptraceAt(setSigMask, t.tid, 8, unsafe.Pointer(&mask)) == nil
}

// giveBack delivers the put-off signals to the thread when it resumes. If it is stopped at a signal that is not for it, it gets the first one in
// its place; the others are sent anew, and their senders are lost.
func (p *putOff) giveBack(t *thread, place bool) {
	list := valid(p.signals, func() uint64 { return pending(t.tid) })
	for i := range list {
		signal := unix.Signal(list[i].Signo)
		if place && t.signal == 0 && setSigInfo(t.tid, &list[i]) == nil {
			t.signal = signal
			continue
		}
		_, _, _ = unix.RawSyscall(unix.SYS_TKILL, uintptr(t.tid), uintptr(signal), 0)
	}
	p.signals = nil
	p.unblock(t)
}

// valid leaves out what the kernel would have dropped by now: SIGCONT takes the stop signals before it out of the queues, and
// one of these takes SIGCONT (prepare_signal of Linux's kernel/signal.c). pending returns a mask of those that came since.
func valid(list []sigInfo, pending func() uint64) (out []sigInfo) {
	for i := range list {
		against := uint64(0)
		switch bit := list[i].bit(); {
		case bit&stops != 0:
			against = continues
		case bit == continues:
			against = stops
		}
		undone := slices.ContainsFunc(list[i+1:], func(later sigInfo) bool { return later.bit()&against != 0 })
		if !undone && (against == 0 || pending()&against == 0) {
			out = append(out, list[i])
		}
	}
	return out
}

func (info *sigInfo) bit() uint64 { return 1 << (uint(info.Signo-1) & 63) }
