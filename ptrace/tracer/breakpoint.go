//go:build linux

package tracer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// breakpoint is a breakpoint in the target's code or in debug registers.
type breakpoint struct {
	Breakpoint
	held     bool // in debug registers, so no code was changed
	lifted   bool // temporarily removed
	emulated      // how its instruction is emulated, if that is possible
	original Code // the code under the breakpoint, which is one of versions
	versions
	count uint64
	room  int // total size of all Reads
}

// insert sets breakpoints. After an error it continues with the others, and returns the first error.
func (s *server) insert(list []Breakpoint, reply *Reply) (first error) {
	s.handleTraps()
	s.shadowed = shadowStack(s.pid)
	shared := s.sharing()
	defer shared.close()
	if slices.ContainsFunc(list, func(b Breakpoint) bool { return !s.memory.present(b.Addr, len(Trap)) }) {
		s.listServed()
	}
	// First assign debug registers to breakpoints in shared memory, because elsewhere a breakpoint can be written into the code.
	slices.SortStableFunc(list, func(a, b Breakpoint) int {
		return cmp.Compare(min(1, len(shared.of(b.Addr))), min(1, len(shared.of(a.Addr))))
	})
	for _, want := range list {
		if err := s.insertOne(want, shared.of(want.Addr)); err != nil && first == nil {
			first = fmt.Errorf("a breakpoint at %#x: %w", want.Addr, err)
		}
		if b := s.breakpoints[want.Addr]; b != nil && b.held {
			reply.Hardware = append(reply.Hardware, want.Addr)
		}
	}
	return first
}

// insertOne sets one breakpoint. shared is the shared mapping that contains it, or "".
func (s *server) insertOne(want Breakpoint, shared string) error {
	if len(want.Reads) > MaxReads {
		return fmt.Errorf("%d reads; the limit of a breakpoint is %d", len(want.Reads), MaxReads)
	}
	expected := 0
	for _, e := range want.Expects {
		expected += len(e.Data) + int(e.Lost)
		if len(e.Data) == 0 && (e.Lost == 0 || e.Addr+uint64(e.Lost) > MaxLost) {
			return fmt.Errorf("%d unreadable bytes are expected at %#x", e.Lost, e.Addr)
		}
	}
	if len(want.Expects) > MaxExpects || expected > MaxExpected {
		return fmt.Errorf("%d bytes in %d parts are expected; the limits of a breakpoint are %d and %d", expected, len(want.Expects), MaxExpected, MaxExpects)
	}
	if want.Addr%uint64(len(Trap)) != 0 {
		return fmt.Errorf("no instruction begins there")
	}
	code, err := codeAt(s.memory, want.Addr)
	if err != nil {
		return err
	}
	b := s.breakpoints[want.Addr]
	if b != nil && !b.held && code != Trap { // the target has overwritten the code, or mapped other code there
		s.keep(b)
		b = nil
	}
	switch {
	case b != nil:
	case (want.Hardware || shared != "") && s.hold(want.Addr):
		b = &breakpoint{Breakpoint: want, held: true, count: s.counts[want.Addr]}
		s.breakpoints[want.Addr] = b
	case shared != "":
		return errShared(shared)
	default:
		b = &breakpoint{Breakpoint: want, count: s.counts[want.Addr]}
		if b.original = code; code == Trap {
			return fmt.Errorf("the program itself or another debugger has one there")
		}
		s.begin(b)
		if err := s.write(want.Addr, b.original); err != nil {
			return err
		}
		b.decode(s.memory, s.shadowed)
		s.breakpoints[want.Addr] = b
		s.looking.changed = true
	}
	b.Breakpoint, b.room = want, 0
	for _, r := range want.Reads {
		b.room += int(r.Size)
	}
	return nil
}

// remove removes breakpoints.
func (s *server) remove(addrs []uint64) {
	for _, addr := range addrs {
		if b := s.breakpoints[addr]; b != nil {
			s.takeOut(b)
			s.ledger.drop(addr)
			s.keep(b)
			delete(s.breakpoints, addr)
			s.rewind(b)
		}
	}
}

// takeOut restores the code under a breakpoint, including the target's later changes of it.
func (s *server) takeOut(b *breakpoint) {
	if b.held {
		s.release(b.Addr)
		return
	}
	s.looking.changed = true
	if !exchange(s.memory, b.Addr, Trap, s.under(b)) && mappedWith("x", s.pid)(b.Addr) {
		s.reconsider(b, false)
	}
}

// rewind moves threads that hit a removed breakpoint back before it, if the hit has not been handled.
func (s *server) rewind(b *breakpoint) {
	for _, t := range s.threads {
		if !t.hasReport || !t.report.Stopped() || int(t.report)>>16 != 0 || t.report.StopSignal() != unix.SIGTRAP {
			continue
		}
		var regs General
		info, err := t.sigInfo()
		if err != nil || getRegs(t.tid, &regs) != nil {
			continue
		}
		switch {
		case info.Code == trapCode && !b.held && t.rewound && regs.pc() == b.Addr:
			t.hasReport, t.rewound = false, false
			regs.arrive()
			_ = setRegs(t.tid, &regs) // an error means that it was killed
			continue
		case info.Code == trapHardware && b.held && regs.pc() == b.Addr:
			regs.arrive()
		default:
			continue
		}
		if setRegs(t.tid, &regs) == nil {
			t.hasReport = false
		}
	}
}

// keep stores the hit count of a breakpoint that is being removed.
func (s *server) keep(b *breakpoint) {
	if b.Uncounted || b.count == 0 {
		return
	}
	if s.counts == nil {
		s.counts = map[uint64]uint64{}
	}
	s.counts[b.Addr] = b.count
}

// hits returns the number of hits of each counted breakpoint.
func (s *server) hits() map[uint64]uint64 {
	all := map[uint64]uint64{}
	for addr, n := range s.counts {
		all[addr] = n
	}
	for addr, b := range s.breakpoints {
		if !b.Uncounted {
			all[addr] = b.count
		}
	}
	return all
}

// hit handles a thread at a breakpoint. done means that the caller must not resume the thread, because it is stopped, or because all threads have
// been resumed.
func (s *server) hit(t *thread, b *breakpoint, regs *General) (done bool) {
	again := t.comesBack(regs)
	var e *Event
	if !t.guest && !again {
		e = s.tell(t, b, regs)
	}
	hold := e != nil && b.Hold && !s.expects(b)
	if e != nil && !hold {
		s.out.event(e)
	}
	if !hold && !s.limit && b.held {
		return false // the kernel has already done what pass does (hw_breakpoint_handler of Linux's arch/x86/kernel/hw_breakpoint.c)
	}
	if !hold && !s.limit && s.emulates(t, b, regs) {
		return setRegs(t.tid, regs) != nil
	}
	if setRegs(t.tid, regs) != nil { // it was killed
		if hold {
			s.untell(b)
		}
		return true
	}
	switch {
	case hold || s.limit:
		t.at = b
		s.stopAll()
		if hold && s.threads[t.tid] == t { // false if an exec of another thread has ended this thread
			s.standStill(e)
		}
		if !hold {
			s.reachLimit()
		}
		return true
	case s.stopped:
		s.stepOver(t, b, regs)
		return true
	case len(s.threads) == 1:
		s.stepOver(t, b, regs)
		return s.threads[t.tid] == nil || t.running
	}
	before := s.standing
	s.stopAll()
	if s.standing == before {
		s.stepOver(t, b, regs)
		s.resume()
	}
	return true
}

// standStill stops all threads until the client resumes them, and reports an event with Held.
func (s *server) standStill(e *Event) {
	s.look(stands)
	for _, t := range s.ordered() {
		s.disarm(t)
	}
	e.Held = true
	s.standing++
	s.out.event(e)
	s.out.flush()
}

// reachLimit removes the counted breakpoints after the requested number of hits was reported.
func (s *server) reachLimit() {
	s.limit = false
	var addrs []uint64
	for addr, b := range s.breakpoints {
		if !b.Uncounted {
			addrs = append(addrs, addr)
		}
	}
	s.remove(addrs)
	s.standStill(&Event{Kind: LimitReached, Time: time.Now().UnixNano(), Number: s.number})
}

// tell counts a hit, and returns the event to report, or nil if the hit is only counted.
func (s *server) tell(t *thread, b *breakpoint, regs *General) *Event {
	b.count++
	if !b.Uncounted {
		s.number++
		if t.passes > 0 {
			t.passes--
			return nil
		}
		if s.counting.Every > 1 && s.number%s.counting.Every != 0 {
			return nil
		}
		s.chosen++
		s.limit = s.counting.Limit != 0 && s.chosen >= s.counting.Limit
		if s.counting.Quiet {
			return nil
		}
	}
	e := &Event{Kind: Hit, Time: time.Now().UnixNano(), Addr: b.Addr, Number: s.number, Raw: Raw{TID: t.tid, General: *regs}}
	if b.Vectors {
		e.Raw.Others = getOthers(t.tid)
	}
	if len(b.Reads) > 0 {
		e.Data, e.Got = s.read(b, regs)
	}
	return e
}

// untell undoes the count of a hit whose thread was killed before the hit could be reported.
func (s *server) untell(b *breakpoint) {
	b.count--
	if !b.Uncounted {
		s.number--
		s.chosen--
		s.limit = false
	}
}

// expects reports whether the memory at a hit equals the expected memory of the breakpoint. It returns false if the breakpoint has none. It also returns
// false if a page is not in memory: the process may have mapped a file whose pages another process provides, and a read would wait for that process.
// Several parts are read twice, because other threads may write between two reads.
func (s *server) expects(b *breakpoint) bool {
	reads := 1
	if len(b.Expects) > 1 && len(s.threads) > 1 {
		reads = 2
	}
	for range reads {
		for _, e := range b.Expects {
			if !s.has(e) {
				return false
			}
		}
	}
	return len(b.Expects) > 0
}

// has reports whether memory has the expected contents.
func (s *server) has(e Expected) bool {
	if e.Lost > 0 {
		return !s.memory.present(e.Addr, int(e.Lost))
	}
	if !s.memory.present(e.Addr, len(e.Data)) {
		return false
	}
	buf := make([]byte, len(e.Data))
	n, err := s.memory.read(buf, e.Addr)
	return err == nil && n == len(buf) && bytes.Equal(buf, e.Data)
}

// reachOnce bounds the size of one read that covers all Reads of a hit.
const reachOnce = 4096

// read reads the Reads of a hit. Most of them are on one page or two, so that one read covers all.
func (s *server) read(b *breakpoint, regs *General) (data []byte, got uint64) {
	words := (*[unsafe.Sizeof(*regs) / 8]uint64)(unsafe.Pointer(regs))
	data = make([]byte, b.room)
	var addrs [MaxReads]uint64
	low, high := ^uint64(0), uint64(0)
	for i, r := range b.Reads {
		if int(r.Reg) < len(words) {
			addrs[i] = words[r.Reg] + uint64(r.Offset)
		}
		low, high = min(low, addrs[i]), max(high, addrs[i]+uint64(r.Size))
	}
	var near [reachOnce]byte
	together := high > low && high-low <= reachOnce
	if together {
		n, err := s.memory.read(near[:high-low], low)
		together = err == nil && n == int(high-low)
	}
	at := 0
	for i, r := range b.Reads {
		part := data[at : at+int(r.Size)]
		at += len(part)
		switch {
		case together:
			copy(part, near[addrs[i]-low:])
		case len(part) > 0:
			if n, err := s.memory.read(part, addrs[i]); err != nil || n < len(part) {
				continue
			}
		}
		got |= 1 << i
	}
	return data, got
}
