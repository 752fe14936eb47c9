//go:build linux

package tracer

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/system"
)

// maxTail, maxCalls and maxBacks bound the data recorded about a thread that runs alone.
const (
	maxTail  = 1 << 16
	maxCalls = 256
	maxBacks = 64
)

// singleThread runs one thread while all others are stopped.
type singleThread struct {
	*server
	t           *thread
	o           SingleThreadOptions
	run         *SingleThreadRun
	tail        []uint64 // the addresses of the last instructions, in a ring
	deadline    time.Time
	interrupted bool // the thread is stopped at a place where no signal can be delivered to it
	called      map[uint64]bool
	way         bool   // the current call has added the last entry of Calls
	anew        bool   // a signal handler has returned to the instruction that raised the signal
	past        bool   // the thread has moved off the breakpoint at which the run started
	before      uint64 // signals that were pending before the run, or may have been
	shared      *sharing
	// steppedOutside is the number of times that the thread was resumed in code outside.
	steppedOutside uint64
}

// alone runs a thread while the others are stopped, until a function returns or the thread reaches a breakpoint.
func (s *server) alone(tid int, o SingleThreadOptions) (*SingleThreadRun, error) {
	t := s.threads[tid]
	switch {
	case !s.stopped:
		return nil, fmt.Errorf("the other threads are running")
	case t == nil || t.running || t.hasReport && t.report.Stopped() && int(t.report)>>16 != 0:
		return nil, unix.ESRCH
	}
	s.handleTraps()
	t.group, t.rejoin = false, t.rejoin || t.group
	o.Tail = min(o.Tail, maxTail)
	a := &singleThread{server: s, t: t, o: o, run: &SingleThreadRun{Return: -1, Handling: t.handling}, deadline: time.Now().Add(o.Time), called: map[uint64]bool{}, before: ^uint64(0), shared: s.sharing()}
	defer a.shared.close()
	if info, err := getSigInfo(tid); err == nil && t.signal != 0 && t.signal != unix.SIGSTOP { // a signal that was already pending
		info.Signo, t.signal = int32(t.signal), 0
		t.put.add(t, &info)
	}
	if t.hasReport { // the last run stopped the thread when it had a report, perhaps because of the time limit
		var regs General
		t.hasReport = false
		_, a.run.Stopped = a.reported(t.report, &regs)
	}
	if a.run.Stopped == "" {
		if a.before = 0; queued(tid) {
			a.before = pending(tid)
		}
		a.run.Stopped = a.proceedTo()
	}
	a.run.Tail = a.ordered()
	if s.threads[tid] != t || t.running {
		return a.run, nil
	}
	t.put.giveBack(t, !a.interrupted)
	s.disarm(t)
	if s.threads[tid] != t || t.running {
		return a.run, nil
	}
	a.run.Thread = Raw{TID: tid, Others: getOthers(tid)}
	return a.run, getRegs(tid, &a.run.Thread.General)
}

// ordered returns the last instructions in the ring, oldest first.
func (a *singleThread) ordered() []uint64 {
	if n := len(a.tail); n == a.o.Tail && n > 0 {
		at := int(a.run.Steps % uint64(n))
		return append(slices.Clone(a.tail[at:]), a.tail[:at]...)
	}
	return a.tail
}

func (a *singleThread) keep(pc uint64) {
	switch {
	case len(a.tail) < a.o.Tail:
		a.tail = append(a.tail, pc)
	case a.o.Tail > 0:
		a.tail[a.run.Steps%uint64(a.o.Tail)] = pc
	}
	a.run.Steps++
}

// proceedTo runs the thread. It returns the reason why the thread reached neither a return nor a breakpoint, or "".
func (a *singleThread) proceedTo() string {
	var regs General
	if getRegs(a.t.tid, &regs) != nil {
		return "the process ended"
	}
	handled := a.t.at // the breakpoint at the start, whose hit was already handled
	stood := handled
	a.past = stood == nil || stood.Addr != regs.pc()
	a.t.at, a.t.again = nil, nil
	for first := true; ; first = false {
		if a.run.Return = a.returned(&regs); a.run.Return >= 0 {
			return ""
		}
		if !first && a.enters(&regs) {
			a.entered(&regs)
			return ""
		}
		b := a.breakpoints[regs.pc()]
		switch {
		case b == nil || handled != nil && handled.Addr == b.Addr:
		case b.Uncounted && a.o.Loads:
			a.t.at, a.run.Hit, a.run.Load = b, b.Addr, true
			return ""
		case b.Uncounted:
			return "code was registered or loaded meanwhile"
		case a.o.Hits && !slices.Contains(a.o.Pass, b.Addr):
			a.count(b)
			a.t.at, a.run.Hit = b, b.Addr
			return ""
		default:
			a.count(b)
			a.run.Passed++
		}
		handled = nil
		switch {
		case a.run.Steps >= a.o.Steps:
			return fmt.Sprintf("it ran %d instructions", a.run.Steps)
		case a.run.Steps%256 == 255 && (a.asked() || time.Now().After(a.deadline)):
			return a.late()
		}
		from, sp := regs.pc(), regs.sp()
		why := ""
		if a.inside(from) {
			a.keep(from)
			why = a.stepOnce(&regs, b)
		} else {
			since := onProcessor(a.t.tid)
			why = a.through(&regs)
			a.run.Outside += onProcessor(a.t.tid) - since
		}
		if why != "" && !a.past { // it stopped before it had passed the breakpoint at its start, so the next stop there is not a new hit
			a.t.at = stood
		}
		if why != "" {
			return why
		}
		if a.inside(from) && !a.inside(regs.pc()) && a.returned(&regs) < 0 {
			a.leaves(&regs, place{from, sp})
		}
		if a.anew { // the thread hit the breakpoint there before it raised the signal
			handled, a.anew = a.breakpoints[regs.pc()], false
		}
	}
}

func (a *singleThread) count(b *breakpoint) {
	b.count++
	a.number++
}

// returned returns the index of the return that the thread has reached, or -1.
func (a *singleThread) returned(regs *General) int {
	return slices.IndexFunc(a.o.Returns, func(r Return) bool {
		return regs.pc() == r.Addr && regs.sp() >= r.CFA && regs.sp()-r.CFA <= r.Pops
	})
}

func (a *singleThread) inside(pc uint64) bool {
	list := a.o.Inside
	i := sort.Search(len(list), func(i int) bool { return list[i].End > pc })
	return i < len(list) && pc >= list[i].Start
}

// enters reports whether the thread is at one of Entries, and its return address is in Inside or is that of a Return.
func (a *singleThread) enters(regs *General) bool {
	if !slices.Contains(a.o.Entries, regs.pc()) {
		return false
	}
	back, _ := a.calledFrom(regs, place{})
	return a.inside(back.pc) || slices.ContainsFunc(a.o.Returns, func(r Return) bool { return r.Addr == back.pc })
}

// entered records the entry. It removes the call outside that led to the entry from Calls.
func (a *singleThread) entered(regs *General) {
	back, _ := a.calledFrom(regs, place{})
	a.run.Entered, a.run.Back = regs.pc(), Return{Addr: back.pc, CFA: regs.sp() + pushedByCall}
	if n := len(a.run.Calls); a.way && n > 0 {
		a.run.Calls = a.run.Calls[:n-1]
	}
}

// leaves records the address in code outside to which the thread went. If a call led there, it also records the call's return address, so that a
// breakpoint is written only at a real return address. A handler of a signal that the instruction raised was not called, so it has none.
func (a *singleThread) leaves(regs *General, from place) {
	a.way = a.t.fault != from && !a.called[regs.pc()] && len(a.run.Calls) < maxCalls
	if a.way {
		a.called[regs.pc()] = true
		a.run.Calls = append(a.run.Calls, regs.pc())
	}
	if back, called := a.calledFrom(regs, from); called {
		a.awaitBack(back)
	}
}

// stepOnce executes one instruction. If b is not nil, this is the instruction under b.
func (a *singleThread) stepOnce(regs *General, b *breakpoint) string {
	if b == nil {
		return a.proceed(unix.PTRACE_SINGLESTEP, regs)
	}
	if b.held {
		if regs.pass(); setRegs(a.t.tid, regs) != nil {
			return "the process ended"
		}
		why := a.proceed(unix.PTRACE_SINGLESTEP, regs)
		a.past = a.past || why == ""
		return why
	}
	lay := exchange(a.memory, b.Addr, Trap, a.under(b)) // false if the target has overwritten the breakpoint
	b.lifted = lay
	why := a.proceed(unix.PTRACE_SINGLESTEP, regs)
	b.lifted = false
	a.past = a.past || why == ""
	if lay && a.breakpoints[b.Addr] == b {
		exchange(a.memory, b.Addr, b.original, Trap)
	}
	return why
}

// through runs code outside at full speed until the thread is back inside. Shared memory cannot have breakpoints: if a return place is there, through
// executes one instruction at a time.
func (a *singleThread) through(regs *General) string {
	for {
		switch b := a.breakpoints[regs.pc()]; {
		case b != nil: // proceedTo has passed it
			if why := a.stepOnce(regs, b); why != "" {
				return why
			}
		// A deeper activation has returned to this address: step past it, so that a breakpoint here can stop an outer activation.
		case a.comesBack(regs.pc()):
			if why := a.stepOnce(regs, nil); why != "" {
				return why
			}
			if a.arrived(regs) {
				return ""
			}
		}
		request := unix.PTRACE_CONT
		if !a.place(regs.pc()) {
			request = unix.PTRACE_SINGLESTEP
		}
		why := a.proceed(request, regs)
		a.unplace()
		if why != "" {
			return why
		}
		if a.arrived(regs) {
			return ""
		}
		if a.steppedOutside++; time.Now().After(a.deadline) || a.steppedOutside%256 == 0 && a.asked() {
			return a.late()
		}
	}
}

// arrived reports whether proceedTo must handle the position of the thread: the return of a call of code outside, a return of Returns, a breakpoint
// or an entry.
func (a *singleThread) arrived(regs *General) bool {
	return a.back(regs) || a.returned(regs) >= 0 || a.breakpoints[regs.pc()] != nil || a.enters(regs)
}

// comesBack reports whether code outside may return to pc.
func (a *singleThread) comesBack(pc uint64) bool {
	for at := range a.comebacks() {
		if at == pc {
			return true
		}
	}
	return false
}

// place sets breakpoints at the addresses to which code outside may return. If one of them is in shared memory, it sets none and returns false.
func (a *singleThread) place(pc uint64) bool {
	a.placed = map[uint64]Code{}
	for at := range a.comebacks() {
		if a.shared.of(at) != "" {
			return false
		}
	}
	set := func(at uint64) {
		if at == pc || a.breakpoints[at] != nil {
			return
		}
		if code, err := codeAt(a.memory, at); err == nil && code != Trap {
			a.placed[at] = code
			_ = a.write(at, code) // if the write fails, the time limit ends the run
		}
	}
	for at := range a.comebacks() {
		set(at)
	}
	return true
}

// comebacks returns the addresses to which code outside may return.
func (a *singleThread) comebacks() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, r := range a.o.Returns {
			if !yield(r.Addr) {
				return
			}
		}
		for _, b := range a.t.backs {
			if !yield(b.pc) {
				return
			}
		}
		for _, at := range a.o.Entries {
			if !yield(at) {
				return
			}
		}
	}
}

// unplace removes the breakpoints that place has set. If the time limit stopped the thread when it had just hit one of them, collect has moved it
// back before the breakpoint. unplace drops the SIGTRAP of that hit, which would end the program.
func (a *singleThread) unplace() {
	for at, code := range a.placed {
		exchange(a.memory, at, Trap, code)
		a.ledger.drop(at)
	}
	t := a.t
	if t.hasReport && t.report.Stopped() && int(t.report)>>16 == 0 && t.report.StopSignal() == unix.SIGTRAP {
		var regs General
		info, err := t.sigInfo()
		if err == nil && info.Code == trapCode && t.rewound && getRegs(t.tid, &regs) == nil && a.isPlaced(regs.pc()) {
			t.hasReport, t.rewound = false, false
			regs.arrive()
			_ = setRegs(t.tid, &regs) // an error means that it was killed
		}
	}
	a.placed = nil
}

// trapped reports whether the thread hit a breakpoint of the tracer and was moved back before it.
func (a *singleThread) trapped(info *sigInfo, regs *General) bool {
	if info.Code == trapCode && a.t.rewound && a.isPlaced(regs.pc()) {
		a.t.rewound = false
		regs.arrive()
		return true
	}
	_, ours := a.hitBy(a.t, info, regs)
	return ours
}

// maxPopped bounds the number of bytes of arguments that code outside pops when it returns.
const maxPopped = 4096

// back reports whether a call of code outside has returned, and removes that call. Other calls may be active on other stacks, such as those of
// coroutines.
func (a *singleThread) back(regs *General) bool {
	for i := len(a.t.backs) - 1; i >= 0; i-- {
		if b := a.t.backs[i]; regs.pc() == b.pc && regs.sp() >= b.sp && regs.sp()-b.sp <= maxPopped {
			a.t.backs = slices.Delete(a.t.backs, i, i+1)
			if b == a.t.fault {
				a.handling(false)
				a.anew = true
			}
			return true
		}
	}
	return false
}

// proceed resumes the thread until it stops after a step or at a breakpoint, and reads its registers.
func (a *singleThread) proceed(request int, regs *General) string {
	t := a.t
	for {
		signal := t.signal
		t.signal = 0
		if ptrace(request, t.tid, uintptr(signal)) != nil {
			return "the process ended"
		}
		t.running, t.stepping = true, request == unix.PTRACE_SINGLESTEP
		var ws unix.WaitStatus
		if why := a.awaitUntil(a.t.tid, &ws); why != "" {
			return why
		}
		t.running = false
		if stands, why := a.reported(ws, regs); stands || why != "" {
			return why
		}
	}
}

// reported handles a report of the thread. stands is true at the end of a step or at a breakpoint, and regs are then the registers. After any other
// event the thread continues.
func (a *singleThread) reported(ws unix.WaitStatus, regs *General) (stands bool, why string) {
	const gone = "the process ended"
	t := a.t
	event := int(ws) >> 16
	switch {
	case !ws.Stopped():
		a.threadEnded(t, ws)
		return false, gone
	case event == unix.PTRACE_EVENT_EXEC:
		a.becameAnother(t)
		return false, "it became another program"
	case event == unix.PTRACE_EVENT_STOP:
		t.rejoin = t.rejoin || ws.StopSignal() != unix.SIGTRAP
		return false, ""
	case event == unix.PTRACE_EVENT_VFORK:
		before := maps.Clone(a.threads)
		a.news(t, event)
		return false, a.lend(before)
	case event != 0:
		a.news(t, event)
		return false, ""
	}
	info, err := t.sigInfo()
	switch {
	case err != nil:
	case t.stepped(&info):
		if getRegs(t.tid, regs) != nil {
			return false, gone
		}
		return true, ""
	case ws.StopSignal() == unix.SIGTRAP && (info.Code == trapCode || info.Code == trapHardware):
		if getRegs(t.tid, regs) != nil {
			return false, gone
		}
		if !a.trapped(&info, regs) {
			t.signal = unix.SIGTRAP // raised by the target
			return false, a.fatal(&info)
		}
		if setRegs(t.tid, regs) != nil {
			return false, gone
		}
		return true, ""
	case synchronous(&info):
		if t.signal = ws.StopSignal(); a.run.Signal == 0 {
			a.run.Signal = int(t.signal)
		}
		t.put.unblock(t) // sigreturn(2) after the handler blocks these signals again
		if why = a.fatal(&info); why == "" && getRegs(t.tid, regs) == nil {
			a.handles(regs)
		}
		return false, why
	case ws.StopSignal() == unix.SIGSTOP:
		t.signal = unix.SIGSTOP // see step
	case a.raised(&info):
		t.signal = ws.StopSignal()
		t.put.unblock(t)
		if t.signal == unix.SIGABRT {
			return false, a.fatal(&info)
		}
	default:
		t.put.add(t, &info)
	}
	return false, ""
}

// handles records that a signal handler begins. If the handler returns, code inside resumes at the instruction that raised the signal.
func (a *singleThread) handles(regs *General) {
	a.handling(true)
	if a.inside(regs.pc()) {
		a.t.fault = place{regs.pc(), regs.sp()}
		a.awaitBack(a.t.fault)
	}
}

// handling records that a signal handler has begun or has returned.
func (a *singleThread) handling(is bool) {
	a.run.Handling, a.t.handling, a.t.fault = is, is, place{}
}

// awaitBack adds a return address, with its stack pointer, to which code outside may return.
func (a *singleThread) awaitBack(back place) {
	a.t.backs = slices.DeleteFunc(a.t.backs, func(b place) bool { return b == back }) // an earlier call may have been left without a return
	if len(a.t.backs) == maxBacks {
		a.t.backs = slices.Delete(a.t.backs, 0, 1)
	}
	a.t.backs = append(a.t.backs, back)
}

// fatal returns a reason if a signal that the thread's own instructions raised ends the process, and otherwise "". A blocked signal always ends the
// process, because the kernel then resets the handler (force_sig_info_to_task of Linux's kernel/signal.c).
func (a *singleThread) fatal(info *sigInfo) string {
	if !a.o.Fatal {
		return ""
	}
	caught, err := strconv.ParseUint(system.StatusField(a.t.tid, "SigCgt"), 16, 64)
	blocked, _ := signalMask(a.t)
	if err != nil || caught&^blocked&info.bit() != 0 && !a.defaultTrap(info) {
		return ""
	}
	a.run.Fatal = int(info.Signo)
	switch unix.Signal(info.Signo) {
	case unix.SIGSEGV, unix.SIGBUS:
		if info.Code < siKernel {
			a.run.Fault = uint64(info.PID) | uint64(info.UID)<<32 // si_addr is in their place (sigaction(2))
		}
	}
	return "it raised a signal that ends the process"
}

// defaultTrap reports whether a signal is SIGTRAP and its handler is the tracer's, which has the effect of the default action.
func (a *singleThread) defaultTrap(info *sigInfo) bool {
	base := a.handler.base
	if unix.Signal(info.Signo) != unix.SIGTRAP || base == 0 {
		return false
	}
	ours, err := a.hasHandler(a.t, base)
	return ours && err == nil
}

// lend runs the process to which the thread has lent its memory by vfork(2) or posix_spawn(3), until that process has its own memory or has ended.
// Until then the thread waits in the kernel. Other such processes, started by stopped threads, stay stopped.
func (a *singleThread) lend(before map[int]*thread) string {
	if a.placed != nil { // these breakpoints are only for the thread itself
		var regs General
		if getRegs(a.t.tid, &regs) != nil {
			return "the process ended"
		}
		a.unplace()
		defer func() { a.place(regs.pc()) }()
	}
	for _, guest := range a.server.ordered() {
		for before[guest.tid] == nil && guest.guest && a.threads[guest.tid] == guest {
			if !guest.running {
				a.server.run(guest)
			}
			var ws unix.WaitStatus
			if why := a.awaitUntil(guest.tid, &ws); why != "" {
				if guest.running && ptrace(unix.PTRACE_INTERRUPT, guest.tid, 0) == nil {
					a.halt(guest)
				}
				a.interrupted = true
				return why
			}
			a.handle(guest.tid, ws)
		}
	}
	return ""
}

// raised reports whether the thread has sent the signal to itself, as raise(3) and abort(3) do. Its handler must run before the call returns. No
// other running thread of the process could have sent it. While a postponed signal keeps others blocked, such a signal is postponed, too.
func (a *singleThread) raised(info *sigInfo) bool {
	switch info.Code {
	case siUser, siQueue, siTkill:
		id := strings.Fields(system.StatusField(a.t.tid, "NStgid")) // one number for each namespace; the last is in its own
		return a.before&info.bit() == 0 && len(id) > 0 && id[len(id)-1] == strconv.FormatUint(uint64(info.PID), 10)
	}
	return false
}

// awaitUntil waits for a report of a thread until the time limit, and then stops the thread that runs alone.
func (a *singleThread) awaitUntil(tid int, ws *unix.WaitStatus) string {
	for {
		switch got, err := a.sleep(tid, ws); {
		case err != nil && err != unix.EINTR:
			return "the process ended"
		case got == tid:
			return ""
		case a.asked() || time.Now().After(a.deadline):
			return a.late()
		case tid == a.t.tid && a.stuck():
			a.interrupt()
			return "it waits for another thread, and the others are stopped while it runs alone"
		}
	}
}

// interrupt stops the thread at its current instruction.
func (a *singleThread) interrupt() {
	if a.t.running && ptrace(unix.PTRACE_INTERRUPT, a.t.tid, 0) == nil {
		a.interrupted = true
		a.halt(a.t)
	}
}

// late stops the thread because of a request or the time limit, and returns the reason.
func (a *singleThread) late() string {
	a.interrupt()
	if a.asked() {
		return "it was interrupted"
	}
	a.run.Late = true
	return fmt.Sprintf("it took over %v", a.o.Time)
}
