//go:build linux

package tracer

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// putOff holds the signals that arrived while a thread was single-stepped. They are delivered afterwards.
type putOff struct {
	signals []sigInfo
	mask    uint64 // the thread's own signal mask
	masked  bool   // the thread now blocks more signals than mask
}

// Masks of signals: those that an instruction may raise, those that cannot be blocked, and all others.
const (
	raised = 1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) | 1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1)
	never  = 1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1)
	others = ^uint64(raised | never)
)

// Masks of signals that cancel each other.
const (
	stops     = 1<<(unix.SIGSTOP-1) | 1<<(unix.SIGTSTP-1) | 1<<(unix.SIGTTIN-1) | 1<<(unix.SIGTTOU-1)
	continues = 1 << (unix.SIGCONT - 1)
)

const (
	getSigMask = 0x420a // PTRACE_GETSIGMASK, linux/ptrace.h
	setSigMask = 0x420b
)

// add postpones the signal at which the thread is stopped. It blocks other signals, except those that an instruction may raise: if such a signal is
// blocked when it is raised, the kernel resets the program's handler (force_sig_info_to_task of Linux's kernel/signal.c).
func (p *putOff) add(t *thread, info *sigInfo) {
	p.signals = append(p.signals, *info)
	if now, ok := signalMask(t); ok && !p.blocks(now) {
		p.mask = now
		p.masked = setSignalMask(t, p.mask|others)
	}
}

// blocks reports whether the thread's mask is still the one that add has set. A sigreturn(2) or the thread itself may have set another mask, which
// then stays.
func (p *putOff) blocks(now uint64) bool { return p.masked && now == p.mask|others }

// unblock restores the thread's own signal mask.
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

// giveBack delivers the postponed signals. If place is set, the thread is stopped at a signal that the target must not get, and the first postponed
// signal replaces it. The other signals are sent again, with the tracer as their sender.
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

// valid returns a list of postponed signals without those that the kernel would have dropped by now. SIGCONT removes earlier stop signals from the
// queues, and a stop signal removes SIGCONT (prepare_signal of Linux's kernel/signal.c). pending returns the mask of the signals that arrived since.
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
