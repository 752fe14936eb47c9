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
)

// trapHandler is the state of the SIGTRAP handler that the tracer installs in the target while breakpoints are in its code (trapcode.go).
type trapHandler struct {
	base  uint64 // 0 if it is not installed
	tried bool   // installing failed, for a reason that remains while the target runs this program
	why   string // why it is not installed
}

// trapCodeHere is the handler for this architecture.
var trapCodeHere, _ = trapCodeFor(runtime.GOARCH)

// trapRoom is the size of the handler's pages. trapScratch is the offset of the page after them, to which the kernel writes. trapWhole is the total
// size.
var (
	trapRoom    = roundUp(trapSize)
	trapScratch = trapRoom
	trapWhole   = trapRoom + uint64(os.Getpagesize())
)

func roundUp(n uint64) uint64 {
	page := uint64(os.Getpagesize())
	return (n + page - 1) &^ (page - 1)
}

// handleTraps installs the SIGTRAP handler in the target unless it is installed already. All threads must be stopped. Without the handler, a kill of
// the tracer may end the target.
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

// passing reports whether the reason why the handler cannot be installed may soon disappear.
func passing(err error) bool {
	return errors.Is(err, errNoThread) || errors.Is(err, errFrozen) || errors.Is(err, errSequence) || errors.Is(err, errLateCall) || errors.Is(err, errNoCode)
}

// errNoCode reports that no page in memory contains a system call instruction.
var errNoCode = errors.New("no system call instruction was found in the process")

// installHandler maps the handler and makes it the SIGTRAP handler.
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

// disposes reports whether SIGTRAP is in a set of signals, such as SigIgn, in the status of the process. It returns true if the status cannot be
// read.
func (s *server) disposes(set string) bool {
	for tid := range s.threads {
		if mask, err := strconv.ParseUint(system.StatusField(tid, set), 16, 64); err == nil {
			return mask>>(unix.SIGTRAP-1)&1 != 0
		}
	}
	return true
}

// withoutFilter calls f while no seccomp filter applies to a thread, because a filter may end the process at a system call that the process itself
// does not make. Suspending a filter requires CAP_SYS_ADMIN.
func (s *server) withoutFilter(t *thread, f func() error) error {
	if !filtered(t.tid) {
		return f()
	}
	const suspendSeccomp = 1 << 21 // PTRACE_O_SUSPEND_SECCOMP, linux/ptrace.h
	if err := ptrace(unix.PTRACE_SETOPTIONS, t.tid, options|suspendSeccomp); err != nil {
		return fmt.Errorf("a seccomp filter of the process may forbid it, and cannot be suspended: %w", err)
	}
	defer func() { _ = ptrace(unix.PTRACE_SETOPTIONS, t.tid, options) }() // an error means that it was killed
	return f()
}

// install maps the handler, writes its code and makes it the SIGTRAP handler.
func (r *remote) install() error {
	const inFixed = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED
	base, err := r.mapHandler()
	if err != nil {
		return fmt.Errorf("mmap in the process: %w", err)
	}
	undo := func(err error) error {
		_, _ = r.call(unix.SYS_MUNMAP, base, trapWhole) // an error means that it was killed
		return err
	}
	if err := whole(r.memory.write, trapCodeHere.at(base), base); err != nil {
		return undo(err)
	}
	if _, err := r.call(unix.SYS_MMAP, base+trapScratch, trapWhole-trapScratch, unix.PROT_READ|unix.PROT_WRITE, inFixed, ^uint64(0), 0); err != nil {
		return undo(fmt.Errorf("mmap in the process: %w", err))
	}
	r.s.ledger.mirror(r.memory, base)
	if err := r.setAction(trapCodeHere.ownAction(base), 0); err != nil {
		r.s.ledger.mirror(memory{file: -1}, 0)
		return undo(fmt.Errorf("rt_sigaction in the process: %w", err))
	}
	r.s.handler.base = base
	return nil
}

// mapHandler maps the pages of the handler, above the stack if there is room. At another place they would change the addresses of later mappings of
// the program.
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

// stackGap is the distance between the end of the stack and the handler.
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

// eachMapping calls f for each mapping of the target until f returns false.
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

// setAction sets the action for SIGTRAP. action and old are addresses or 0, as for sigaction(2).
func (r *remote) setAction(action, old uint64) error {
	_, err := r.call(sysSigaction, uint64(unix.SIGTRAP), action, old, 8)
	return err
}

// adoptHandler takes over the handler of a killed tracer, and clears the tracer's debug registers, because a hit of one would end the process after
// the handler is removed. It does not replace a handler of the program itself.
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
	for _, t := range s.threads {
		t.left = HardwareBreakpoints > 0
	}
	return nil
}

// leftHandler returns the address of a handler that a killed tracer left, or 0.
func (s *server) leftHandler() (base uint64) {
	code := trapCodeHere.machineCode()
	s.eachMapping(func(from, to uint64, kind, name string) bool {
		b := make([]byte, len(code))
		if kind == "r-xp" && name == "" && to-from == trapRoom && whole(s.memory.read, b, from) == nil && bytes.Equal(b, code) {
			base = from
		}
		return base == 0
	})
	return base
}

// restoreLeft restores the code under the breakpoints of a killed tracer, from the table of its handler at base.
func (s *server) restoreLeft(base uint64) {
	var count [4]byte
	if whole(s.memory.read, count[:], base+trapTable) != nil {
		return
	}
	left := make([]byte, min(binary.LittleEndian.Uint32(count[:]), trapSlots)*slotSize)
	if whole(s.memory.read, left, base+trapTable+slotSize) != nil {
		return
	}
	for ; len(left) > 0; left = left[slotSize:] {
		addr, code := binary.LittleEndian.Uint64(left), Code(left[slotCode:])
		if left[slotUsed] == planted && s.breakpoints[addr] == nil && !s.isPlaced(addr) {
			exchange(s.memory, addr, Trap, code)
		}
	}
}

// hasHandler reports whether the process of a stopped thread has the handler at base as its SIGTRAP handler.
func (s *server) hasHandler(t *thread, base uint64) (ours bool, err error) {
	err = s.withoutFilter(t, func() error {
		r, err := s.newRemote(t, s.memory, trapCodeHere.syscallAt(base))
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

// action returns the address of the process's SIGTRAP handler. base is the address of the pages of the tracer's handler.
func (r *remote) action(base uint64) (uint64, error) {
	if err := r.setAction(0, base+trapScratch); err != nil {
		return 0, err
	}
	var handler [8]byte
	err := whole(r.memory.read, handler[:], base+trapScratch)
	return binary.LittleEndian.Uint64(handler[:]), err
}

// keepHandler installs the handler again if the kernel has reset it. The kernel resets it when a thread that blocks SIGTRAP hits a breakpoint
// (force_sig_info_to_task of Linux's kernel/signal.c).
func (s *server) keepHandler() {
	base := s.handler.base
	if base == 0 || s.stopped || s.disposes("SigCgt") || s.disposes("SigIgn") {
		return
	}
	_ = s.still(s.programs, func() error {
		t := s.able()
		if t == nil || s.handler.base != base {
			return nil // try again at the next check
		}
		return s.withoutFilter(t, func() error {
			r, err := s.newRemote(t, s.memory, trapCodeHere.syscallAt(base))
			if err != nil {
				return err
			}
			defer r.end()
			return r.setAction(trapCodeHere.ownAction(base), 0)
		})
	})
}

// removeHandler restores the default action for SIGTRAP and unmaps the handler. All threads must be stopped. The handler stays if no thread can make
// a system call, or if the program has set another action and may restore the earlier one. A handler that stays has the effect of the default action.
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

// inHandler reports whether a thread executes the handler, as may happen for a short time after a tracer was killed.
func (s *server) inHandler(base uint64) bool {
	for tid := range s.threads {
		var regs General
		if getRegs(tid, &regs) != nil || regs.pc()-base < trapWhole {
			return true
		}
	}
	return false
}

// removeFrom removes the handler from a thread's process and, if unmap is set, its pages. It reports whether it did.
func (s *server) removeFrom(t *thread, m memory, base uint64, unmap bool) (done bool) {
	err := s.withoutFilter(t, func() error {
		r, err := s.newRemote(t, m, trapCodeHere.syscallAt(base))
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
		if err := r.setAction(trapCodeHere.defaultAction(base), 0); err != nil {
			return false, err
		}
	case 0: // the kernel has reset it, because a thread with SIGTRAP blocked hit a breakpoint
	default:
		return false, nil
	}
	if unmap {
		_, err = r.call(unix.SYS_MUNMAP, base, trapWhole)
	}
	return true, err
}
