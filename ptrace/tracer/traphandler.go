//go:build linux

package tracer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/trapcode"
)

// trapHandler is the handler of SIGTRAP that the target has while breakpoints lie in its code (package trapcode).
type trapHandler struct {
	base  uint64 // 0 where there is none
	tried bool   // without success, for a reason that lasts as long as this program
	why   string // the reason why there is none
}

// trapCodeHere is the handler for this machine.
var trapCodeHere, _ = trapcode.For(runtime.GOARCH)

// trapRoom is the size of the handler's mapping, and trapScratch is the offset of the page after it, to which the kernel writes.
var (
	trapRoom    = roundUp(trapcode.Size)
	trapScratch = trapRoom
	trapWhole   = trapRoom + uint64(os.Getpagesize())
)

func roundUp(n uint64) uint64 {
	page := uint64(os.Getpagesize())
	return (n + page - 1) &^ (page - 1)
}

// handleTraps gives the target a handler of SIGTRAP, unless it has one. All threads are stopped. Where the target cannot have one, a kill of the tracer may
// end it.
func (s *server) handleTraps() {
	h := &s.handler
	if h.tried || h.base != 0 || s.pid == 0 {
		return
	}
	h.why = ""
	if err := s.installHandler(); err != nil {
		h.why, h.tried = err.Error(), !passing(err)
	}
}

// passing reports whether the reason why there is no handler may soon be gone.
func passing(err error) bool {
	return errors.Is(err, errNoThread) || errors.Is(err, errFrozen) || errors.Is(err, errSequence) || errors.Is(err, errLateCall) || errors.Is(err, errNoCode)
}

// errNoCode means that no page in memory has the instruction.
var errNoCode = errors.New("no system call instruction was found in the process")

// installHandler maps the handler and makes it that of SIGTRAP.
func (s *server) installHandler() error {
	switch {
	case s.ledger == nil || s.ledger.fd < 0:
		return fmt.Errorf("cannot create the list of breakpoints (memfd_create)")
	case s.disposes("SigIgn"):
		return fmt.Errorf("the process ignores SIGTRAP")
	case s.disposes("SigCgt"):
		return s.adoptHandler()
	}
	t := s.able()
	if t == nil {
		return errNoThread
	}
	at, found := s.syscallAt()
	if !found {
		return errNoCode
	}
	return s.withoutFilter(t, func() error {
		r, err := s.newRemote(t, s.memory, at)
		if err != nil {
			return err
		}
		defer r.end()
		return r.install()
	})
}

// disposes reports whether SIGTRAP is in a set of signals of the process's status.
func (s *server) disposes(set string) bool {
	for tid := range s.threads {
		if mask, err := strconv.ParseUint(system.StatusField(tid, set), 16, 64); err == nil {
			return mask>>(unix.SIGTRAP-1)&1 != 0
		}
	}
	return true
}

// withoutFilter calls f while no seccomp filter applies to a thread: a filter may end the process at a system call that it does not make by itself. That
// takes CAP_SYS_ADMIN.
func (s *server) withoutFilter(t *thread, f func() error) error {
	if !filtered(t.tid) {
		return f()
	}
	const suspendSeccomp = 1 << 21 // PTRACE_O_SUSPEND_SECCOMP, linux/ptrace.h
	if err := ptrace(unix.PTRACE_SETOPTIONS, t.tid, options|suspendSeccomp); err != nil {
		return fmt.Errorf("a seccomp filter of the process may forbid it, and cannot be suspended: %w", err)
	}
	defer func() { _ = ptrace(unix.PTRACE_SETOPTIONS, t.tid, options) }() // it was killed
	return f()
}

// install maps the handler, fills it in, and makes it that of SIGTRAP.
func (r *remote) install() error {
	const inFixed = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED
	base, err := r.mapHandler()
	if err != nil {
		return fmt.Errorf("mmap in the process: %w", err)
	}
	undo := func(err error) error {
		_, _ = r.call(unix.SYS_MUNMAP, base, trapWhole) // it was killed
		return err
	}
	if err := whole(r.memory.write, trapCodeHere.At(base), base); err != nil {
		return undo(err)
	}
	if _, err := r.call(unix.SYS_MMAP, base+trapScratch, trapWhole-trapScratch, unix.PROT_READ|unix.PROT_WRITE, inFixed, ^uint64(0), 0); err != nil {
		return undo(fmt.Errorf("mmap in the process: %w", err))
	}
	r.s.ledger.mirror(r.memory, base)
	if err := r.setAction(trapCodeHere.Own(base), 0); err != nil {
		r.s.ledger.mirror(memory{file: -1}, 0)
		return undo(fmt.Errorf("rt_sigaction in the process: %w", err))
	}
	r.s.handler.base = base
	return nil
}

// mapHandler maps the pages of the handler, above the stack where there is room: elsewhere later mappings of the program would get other addresses than
// without it.
func (r *remote) mapHandler() (base uint64, err error) {
	const private = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if hint := r.s.aboveStack(); hint != 0 {
		base, err = r.call(unix.SYS_MMAP, hint, trapWhole, unix.PROT_READ|unix.PROT_EXEC, private|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
		if err == nil {
			return base, nil
		}
	}
	return r.call(unix.SYS_MMAP, 0, trapWhole, unix.PROT_READ|unix.PROT_EXEC, private, ^uint64(0), 0)
}

// stackGap is the distance to the end of the stack.
const stackGap = 1 << 16

// aboveStack returns an address above the stack of the first thread, or 0.
func (s *server) aboveStack() (hint uint64) {
	s.eachMapping(func(from, to uint64, kind, name string) bool {
		if name == "[stack]" {
			hint = roundUp(to + stackGap)
		}
		return hint == 0
	})
	return hint
}

// eachMapping calls f with the mappings of the target until it returns false.
func (s *server) eachMapping(f func(from, to uint64, kind, name string) bool) {
	x := s.sharing()
	defer x.close()
	if x.maps == nil {
		return
	}
	lines := bufio.NewScanner(x.maps)
	for n := 0; n < maxMaps && lines.Scan(); n++ {
		var from, to uint64
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
			continue
		}
		if !f(from, to, fields[1], strings.Join(fields[5:], " ")) {
			return
		}
	}
}

// setAction sets the action for SIGTRAP; either address may be 0, as for sigaction(2).
func (r *remote) setAction(action, old uint64) error {
	_, err := r.call(sysSigaction, uint64(unix.SIGTRAP), action, old, 8)
	return err
}

// adoptHandler takes over the handler of a tracer that was killed. A handler of the program's own stays.
func (s *server) adoptHandler() error {
	itself := errors.New("the process handles SIGTRAP itself")
	base := s.leftHandler()
	if base == 0 {
		return itself
	}
	s.restoreLeft(base)
	t := s.able()
	if t == nil {
		return errNoThread
	}
	ours, err := s.hasHandler(t, base)
	switch {
	case err != nil:
		return err
	case !ours:
		return itself
	}
	s.handler.base = base
	s.ledger.mirror(s.memory, base)
	return nil
}

// leftHandler finds the handler of a tracer that was killed, or returns 0.
func (s *server) leftHandler() (base uint64) {
	code := trapCodeHere.Code()
	s.eachMapping(func(from, to uint64, kind, name string) bool {
		b := make([]byte, len(code))
		if kind == "r-xp" && name == "" && to-from == trapRoom && whole(s.memory.read, b, from) == nil && bytes.Equal(b, code) {
			base = from
		}
		return base == 0
	})
	return base
}

// restoreLeft restores the code under the breakpoints of a tracer that was killed, which the table of its handler at base lists.
func (s *server) restoreLeft(base uint64) {
	var count [4]byte
	if whole(s.memory.read, count[:], base+trapcode.Table) != nil {
		return
	}
	left := make([]byte, min(binary.LittleEndian.Uint32(count[:]), trapcode.Slots)*trapcode.SlotSize)
	if whole(s.memory.read, left, base+trapcode.Table+trapcode.SlotSize) != nil {
		return
	}
	for ; len(left) > 0; left = left[trapcode.SlotSize:] {
		addr, code := binary.LittleEndian.Uint64(left), Code(left[trapcode.SlotCode:])
		if left[trapcode.SlotUsed] == trapcode.Planted && s.breakpoints[addr] == nil && !s.isPlaced(addr) {
			exchange(s.memory, addr, Trap, code)
		}
	}
}

// hasHandler reports whether the handler at base is that of the process of a stopped thread.
func (s *server) hasHandler(t *thread, base uint64) (ours bool, err error) {
	err = s.withoutFilter(t, func() error {
		r, err := s.newRemote(t, s.memory, trapCodeHere.Syscall(base))
		if err != nil {
			return err
		}
		defer r.end()
		handler, err := r.action(base)
		ours = handler == base
		return err
	})
	return ours, err
}

// action returns the address of the process's handler of SIGTRAP; base is that of the handler's pages.
func (r *remote) action(base uint64) (uint64, error) {
	if err := r.setAction(0, base+trapScratch); err != nil {
		return 0, err
	}
	var handler [8]byte
	err := whole(r.memory.read, handler[:], base+trapScratch)
	return binary.LittleEndian.Uint64(handler[:]), err
}

// keepHandler restores the handler where the kernel has reset it: it does so if a thread that has blocked SIGTRAP comes to a breakpoint
// (force_sig_info_to_task of Linux's kernel/signal.c).
func (s *server) keepHandler() {
	base := s.handler.base
	if base == 0 || s.stopped || s.disposes("SigCgt") || s.disposes("SigIgn") {
		return
	}
	_ = s.still(s.programs, func() error {
		t := s.able()
		if t == nil || s.handler.base != base {
			return nil // the next time
		}
		return s.withoutFilter(t, func() error {
			r, err := s.newRemote(t, s.memory, trapCodeHere.Syscall(base))
			if err != nil {
				return err
			}
			defer r.end()
			return r.setAction(trapCodeHere.Own(base), 0)
		})
	})
}

// removeHandler restores the action for SIGTRAP and takes the handler out. All threads are stopped. It stays, and does what the default action
// does, where no thread can make a system call, and where the program has set another action: it may restore the one before.
func (s *server) removeHandler() {
	base := s.handler.base
	s.handler = trapHandler{}
	if base == 0 {
		return
	}
	s.ledger.mirror(memory{file: -1}, 0)
	entered := s.inHandler(base)
	for _, g := range s.ordered() {
		if g.guest && (!g.able() || !s.leaveEvent(g) || !s.removeFrom(g, s.memory, base, false)) {
			entered = true
		}
	}
	if t := s.able(); t != nil {
		s.removeFrom(t, s.memory, base, !entered)
	}
}

// inHandler reports whether a thread runs the handler, as one does for a moment whose tracer was killed.
func (s *server) inHandler(base uint64) bool {
	for tid := range s.threads {
		var regs General
		if getRegs(tid, &regs) != nil || regs.pc()-base < trapWhole {
			return true
		}
	}
	return false
}

// removeFrom removes the handler from the process of a thread, and its pages too if unmap is set. It reports whether it did.
func (s *server) removeFrom(t *thread, m memory, base uint64, unmap bool) (done bool) {
	err := s.withoutFilter(t, func() error {
		r, err := s.newRemote(t, m, trapCodeHere.Syscall(base))
		if err != nil {
			return err
		}
		defer r.end()
		done, err = r.remove(base, unmap)
		return err
	})
	return done && err == nil
}

func (r *remote) remove(base uint64, unmap bool) (done bool, err error) {
	handler, err := r.action(base)
	if err != nil {
		return false, err
	}
	switch handler {
	case base:
		if err := r.setAction(trapCodeHere.Default(base), 0); err != nil {
			return false, err
		}
	case 0: // the kernel has reset it, for a thread that had blocked SIGTRAP
	default:
		return false, nil
	}
	if unmap {
		_, err = r.call(unix.SYS_MUNMAP, base, trapWhole)
	}
	return true, err
}
