package remote

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// control implements [holder.Control] in the protocol's all-stop mode: whenever the stub reports a stop, all threads are stopped.
type control struct {
	*stub
	vCont    string                  // the actions of vCont that the stub supports, each after a semicolon; "" if it does not support vCont
	inserted map[machine.Addr]*point // breakpoints by address
	at       map[int]place           // positions of the threads whose hits were reported, until they move
	entered  map[int]place           // positions of reported hits to which threads return, for example from a signal handler; the return is no new hit
	stepped  place                   // position of the thread that last stopped at a trap
	early    *holder.Stop            // a stop that occurred while threads were stepped over breakpoints
	running  bool
	gone     bool           // the process has ended
	asked    bool           // an interrupt was sent, and its stop has not yet been reported
	signals  []signal       // signals to deliver when the process resumes
	lending  bool           // a child of vfork(2) uses the memory, from which the breakpoints are therefore removed
	last     int            // the last signal during a step
	idle     traps          // consecutive stops for which no reason was found
	named    map[int]string // names of threads
}

// place is a position of a thread: its program counter and its stack pointer.
type place struct{ pc, sp machine.Addr }

// point is a breakpoint.
type point struct {
	packet string // the packet without its first letter, Z or z
	in     bool   // the breakpoint is inserted in the process
	failed bool   // the stub has refused to remove it
}

// signal is a signal for a thread, with the stub's number.
type signal struct {
	id     string
	number int
}

// traps counts consecutive stops at the same address for which no reason was found.
type traps struct {
	at    machine.Addr
	count int
}

// Limits on the reports of a stub while the process runs. The kernel also limits the number of pending signals (RLIMIT_SIGPENDING).
const (
	maxTraps   = 100
	maxSignals = 64 << 10
)

// newControl returns the control of a stub whose process is stopped.
func newControl(s *stub) (*control, error) {
	c := &control{stub: s, inserted: map[machine.Addr]*point{}, at: map[int]place{}, entered: map[int]place{}, named: map[int]string{}}
	reply, err := s.ask("vCont?")
	if err != nil {
		return nil, err
	}
	if actions, ok := strings.CutPrefix(string(reply), "vCont"); ok && strings.Contains(actions+";", ";c;") {
		c.vCont = actions + ";"
	}
	return c, nil
}

// State implements [holder.Control].
func (c *control) State() (*holder.State, error) {
	out := &holder.State{Kind: holder.Remote, Addr: c.addr, Memory: c.stub}
	c.auxv = nil // it may belong to an earlier program
	if auxv, err := c.transfer("auxv", ""); err == nil {
		c.auxv = auxv
	}
	c.others = 0
	if err := c.threads(out); err != nil {
		return nil, err
	}
	out.Arch = c.description.arch
	if c.process(out); c.lost != nil {
		return nil, c.lost
	}
	if c.canOpen {
		out.Open = c.open
	}
	return out, nil
}

// Threads implements [holder.Control].
func (c *control) Threads() ([]machine.Thread, error) {
	ids, err := c.list()
	if err != nil {
		return nil, err
	}
	var list []machine.Thread
	names := sync.OnceValue(c.names)
	for _, id := range ids {
		th, err := c.read(id, names)
		if err != nil {
			return nil, err
		}
		list = append(list, th)
	}
	sortThreads(list, c.pid)
	return list, nil
}

// Thread implements [holder.Control].
func (c *control) Thread(id int) (machine.Thread, error) { return c.read(c.idOf(id), c.names) }

// read reads a thread with its registers and its name. names returns the names that the stub lists.
func (c *control) read(id threadID, names func() map[int]string) (machine.Thread, error) {
	th := machine.Thread{ID: id.tid, Name: c.nameOf(id.tid, names)}
	v, err := c.values(id)
	if c.lost != nil {
		return th, c.lost
	}
	if err == nil {
		th.Registers, err = c.description.registersOf(v)
	}
	if err != nil {
		th.Registers, th.Missing = nil, err.Error()
	}
	return th, nil
}

// nameOf returns the name of a thread, which is read only once.
func (c *control) nameOf(tid int, names func() map[int]string) string {
	name, known := c.named[tid]
	switch {
	case known:
		return name
	case len(c.named) >= maxNames:
		clear(c.named)
	}
	listed := names()
	if name, known = listed[tid]; !known && listed == nil && c.pid > 0 && c.canOpen {
		text, _ := c.readFile(fmt.Sprintf("/proc/%d/task/%d/comm", c.pid, tid), 64) // if it cannot be read, the thread has no name
		name = strings.TrimSuffix(string(text), "\n")
	}
	c.named[tid] = name
	return name
}

// idOf returns a thread as the protocol names it.
func (c *control) idOf(tid int) threadID {
	switch {
	case c.unthreaded:
		return threadID{"", 0, tid}
	case c.multi:
		return threadID{fmt.Sprintf("p%x.%x", c.pid, tid), c.pid, tid}
	}
	return threadID{strconv.FormatInt(int64(tid), 16), 0, tid}
}

// Insert implements [holder.Control].
func (c *control) Insert(addr machine.Addr) error {
	if p := c.inserted[addr]; p != nil && !p.failed {
		return nil
	}
	size, err := c.trapSize(addr)
	if err != nil {
		return err
	}
	for _, kind := range []string{"0", "1"} {
		p := &point{packet: fmt.Sprintf("%s,%x,%d", kind, uint64(addr), size)}
		if c.lending { // returned inserts it when the child no longer uses the memory
			c.inserted[addr] = p
			return nil
		}
		reply, err := c.ask("Z" + p.packet)
		switch {
		case err != nil:
			return err
		case string(reply) == "OK":
			p.in = true
			c.inserted[addr] = p
			return nil
		case len(reply) > 0:
			return fmt.Errorf("the stub cannot set it at %v: it answers %s", addr, clean(reply))
		}
	}
	return fmt.Errorf("%w: breakpoints (Z0, Z1)", holder.ErrLacks)
}

// trapSize returns the kind of a breakpoint, which is the size of the trap instruction on these architectures ("Architecture-Specific Protocol
// Details").
func (c *control) trapSize(addr machine.Addr) (int, error) {
	switch c.description.arch {
	case machine.AMD64:
		return 1, nil
	case machine.S390X:
		return 2, nil
	case machine.RISCV64: // the trap must not be longer than the instruction that it replaces
		var b [1]byte
		if _, err := c.Read(b[:], addr); err != nil {
			return 0, err
		}
		if b[0]&3 != 3 {
			return 2, nil
		}
	}
	return 4, nil
}

// Remove implements [holder.Control].
func (c *control) Remove(addr machine.Addr) error {
	p := c.inserted[addr]
	if p == nil {
		return nil
	}
	err := c.take(p)
	if err != nil && c.lost == nil && c.unmapped(addr) { // the breakpoint was removed together with its memory
		err = nil
	}
	if err != nil {
		p.failed = true
		return err
	}
	delete(c.inserted, addr)
	return nil
}

// unmapped reports whether the stub cannot read an address.
func (c *control) unmapped(addr machine.Addr) bool {
	n, err := c.Read(make([]byte, 1), addr)
	return n == 0 && errors.Is(err, errUnreadable)
}

// take removes a breakpoint from the process, if it is inserted.
func (c *control) take(p *point) error {
	if !p.in {
		return nil
	}
	err := c.order("z"+p.packet, "remove a breakpoint")
	p.in = err != nil
	return err
}

// put inserts a breakpoint again, unless it is inserted.
func (c *control) put(p *point) error {
	if p.in {
		return nil
	}
	err := c.order("Z"+p.packet, "set a breakpoint again")
	p.in = err == nil
	return err
}

// order sends a packet to which the reply must be OK. what names the operation for errors.
func (c *control) order(packet, what string) error {
	reply, err := c.ask(packet)
	switch {
	case err != nil:
		return err
	case len(reply) == 0:
		return fmt.Errorf("%w: cannot %s (%s)", holder.ErrLacks, what, name(packet))
	case string(reply) != "OK":
		return fmt.Errorf("the stub cannot %s: it answers %s", what, clean(reply))
	}
	return nil
}

// name returns the name of a packet, for messages.
func name(packet string) string {
	if n := strings.IndexAny(packet, ",;:"); n > 0 {
		return packet[:n]
	}
	return packet
}

// Step implements [holder.Control].
func (c *control) Step(ctx context.Context, tid int) (holder.Stop, error) {
	stop, _, err := c.step(ctx, tid)
	return stop, err
}

// step implements Step. faulted is true if the instruction was not executed, because it raised a signal or because ctx was done.
func (c *control) step(ctx context.Context, tid int) (stop holder.Stop, faulted bool, err error) {
	for {
		if err := c.send1(c.idOf(tid)); err != nil {
			return stop, false, err
		}
		delete(c.at, tid)
		stop, err := c.wait(ctx, tid)
		if err != nil || stop.Kind != signalled {
			return stop, false, err
		}
		// Deliver the signal only after the instruction has been executed, because the signal's handler would return to the instruction. An
		// instruction that raises the signal does so again.
		if slices.Contains(faults, c.linuxSignal(c.last)) || ctx.Err() != nil {
			return holder.Stop{Kind: holder.Stepped, Thread: tid}, true, nil
		}
	}
}

// faults are the signals that instructions raise, with Linux's numbers: SIGILL, SIGBUS, SIGFPE and SIGSEGV.
var faults = []int{4, 7, 8, 11}

// send1 makes a thread execute one instruction.
func (c *control) send1(id threadID) error {
	packet := "s"
	switch {
	case strings.Contains(c.vCont, ";s;"):
		packet = "vCont;s"
		if id.text != "" {
			packet += ":" + id.text
		}
	case id.text != "":
		if _, err := c.ask("Hc" + id.text); err != nil { // ignore the reply, as gdb does, because the report names the thread that has stopped
			return err
		}
	}
	return c.launch(packet)
}

// launch sends a packet that resumes the process. The reply is the report of the next stop.
func (c *control) launch(packet string) error {
	if err := c.tell(packet); err != nil {
		return err
	}
	c.running = true
	return nil
}

// Resume implements [holder.Control].
func (c *control) Resume() error {
	for _, tid := range slices.Sorted(maps.Keys(c.at)) {
		from := c.at[tid]
		p := c.inserted[from.pc]
		if p == nil || !p.in {
			delete(c.at, tid)
			continue
		}
		if err := c.moveOff(tid, from, p); err != nil || c.early != nil {
			return err
		}
	}
	return c.proceed()
}

// moveOff makes a thread execute the instruction at a breakpoint while the breakpoint is removed. It sets early if the process stops for another
// reason.
func (c *control) moveOff(tid int, from place, p *point) error {
	if err := c.take(p); err != nil {
		return err
	}
	stepping, cancel := context.WithTimeoutCause(context.Background(), c.timeout, errStep)
	defer cancel()
	stop, faulted, err := c.step(stepping, tid)
	if errors.Is(err, errStep) { // the instruction waits, for example in a system call, so the other threads must run
		stop, err = c.interrupt(tid)
	}
	if err == nil && (c.gone || stop.Kind == holder.Exec) {
		c.early = &stop
		return nil
	}
	if c.lost == nil && !c.gone && !c.lending {
		err = errors.Join(err, c.put(p))
	}
	if err != nil {
		return err
	}
	halted := faulted || stop.Kind == holder.Interrupted || stop.Kind == signalled
	if halted && c.stepped == from || c.stepped.handles(from) {
		c.entered[tid] = from
	}
	if stop.Kind == holder.Hit && stop.Thread != tid { // the stub lets other threads run during a step
		c.at[tid] = from
	}
	if stop.Kind == holder.Hit && (stop.PC != from.pc || stop.Thread != tid) {
		c.early = &stop
	}
	return nil
}

var errStep = errors.New("the stub does not report the end of an instruction")

// proceed resumes all threads, and delivers the pending signals.
func (c *control) proceed() error {
	clear(c.at)
	if c.vCont == "" {
		if !c.unthreaded {
			if _, err := c.ask("Hc-1"); err != nil { // like gdb, ignore the reply: valgrind's stub always resumes all threads
				return err
			}
		}
		packet := "c"
		if len(c.signals) > 0 {
			packet = fmt.Sprintf("C%02x", c.signals[0].number)
			c.signals = c.signals[1:]
		}
		return c.launch(packet)
	}
	packet := "vCont"
	var later []signal
	given := map[string]bool{}
	for _, sig := range c.signals {
		if given[sig.id] || given[""] { // only one signal for each thread
			later = append(later, sig)
			continue
		}
		given[sig.id] = true
		packet += fmt.Sprintf(";C%02x", sig.number)
		if sig.id != "" {
			packet += ":" + sig.id
		}
	}
	if c.signals = later; !given[""] {
		packet += ";c"
		if c.multi { // other processes of the stub must stay stopped
			packet += fmt.Sprintf(":p%x.-1", c.pid)
		}
	}
	return c.launch(packet)
}

// signalled is the kind of a stop at a signal. Only a step returns it; other requests deliver the signal and resume.
const signalled holder.StopKind = -1

// Wait implements [holder.Control].
func (c *control) Wait(ctx context.Context) (holder.Stop, error) {
	for {
		stop, err := c.wait(ctx, 0)
		if err != nil || stop.Kind != holder.Interrupted {
			return stop, err
		}
		if err := c.proceed(); err != nil { // the stop belongs to an earlier interrupt, before which another stop was reported
			return stop, err
		}
	}
}

// Interrupt implements [holder.Control].
func (c *control) Interrupt() (holder.Stop, error) { return c.interrupt(0) }

// interrupt implements Interrupt. step is the thread that executes one instruction, or 0.
func (c *control) interrupt(step int) (holder.Stop, error) {
	if c.early == nil {
		if err := c.raw(3); err != nil { // "Interrupts"
			return holder.Stop{}, err
		}
		c.asked = true
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.timeout, errInterrupt)
	defer cancel()
	stop, err := c.wait(ctx, step)
	if errors.Is(err, errInterrupt) {
		c.lost = fmt.Errorf("%w: %w within %v", holder.ErrLost, errInterrupt, c.timeout)
		err = c.lost
	}
	return stop, err
}

var errInterrupt = errors.New("the stub does not stop the process")

// wait waits for a stop. step is the thread that executes one instruction, or 0 if all threads run.
func (c *control) wait(ctx context.Context, step int) (holder.Stop, error) {
	if c.early != nil {
		stop := *c.early
		c.early = nil
		return stop, nil
	}
	for {
		reply, err := c.await(ctx)
		if err != nil {
			return holder.Stop{}, err
		}
		switch {
		case len(reply) > 0 && reply[0] == 'O': // output of the program through the stub
			continue
		// The program asks the debugger to open a file, and gets an error (EUNKNOWN of "Protocol-specific Representation of Datatypes").
		case len(reply) > 0 && reply[0] == 'F':
			if err := c.tell("F-1,270f"); err != nil {
				return holder.Stop{}, err
			}
			continue
		}
		c.running = false
		asked := c.asked
		stop, again, err := c.stopped(reply, step)
		if c.native() { // to lldb-server, the next stop for any reason answers an interrupt; it ignores interrupts while the process is stopped
			if c.asked = false; again && asked {
				stop, again = holder.Stop{Kind: holder.Interrupted, Thread: stop.Thread}, false
			}
		}
		switch {
		case err != nil || !again:
			return stop, err
		case step > 0: // the other threads must not run while a breakpoint is removed
			err = c.send1(c.idOf(step))
		default:
			err = c.Resume()
		}
		if err != nil {
			return holder.Stop{}, err
		}
		if c.early != nil {
			return c.wait(ctx, step)
		}
	}
}

// report is the report of a stop ("Stop Reply Packets").
type report struct {
	kind   byte
	number int
	thread string
	fields map[string]string
}

func parseStop(reply []byte) (r report, err error) {
	malformed := fmt.Errorf("the stub reports a stop that is malformed: %q", clean(reply))
	if len(reply) < 2 || !strings.ContainsRune("TSWX", rune(reply[0])) {
		return r, malformed
	}
	number, rest := string(reply[1:]), ""
	if reply[0] == 'T' && len(reply) >= 3 {
		number, rest = string(reply[1:3]), string(reply[3:])
	} else if reply[0] != 'T' {
		number, rest, _ = strings.Cut(number, ";") // gdbserver sends W0
	}
	n, err := strconv.ParseUint(number, 16, 8)
	if err != nil {
		return r, malformed
	}
	r = report{kind: reply[0], number: int(n), fields: map[string]string{}}
	for item := range strings.SplitSeq(rest, ";") {
		if name, value, ok := strings.Cut(item, ":"); ok {
			r.fields[name] = value
		}
	}
	r.thread = r.fields["thread"]
	return r, nil
}

// Numbers of signals that are the same in gdb and in Linux.
const (
	sigInt  = 2
	sigTrap = 5
)

// Linux's numbers of signals.
const (
	sigStop     = 19
	sigRealTime = 32 // the first real-time signal (SIGRTMIN of asm/signal.h)
)

// interrupts reports whether stubs report an interrupt as this signal.
func (c *control) interrupts(number int) bool {
	return number == 0 || number == sigInt || number == sigTrap || c.linuxSignal(number) == sigStop
}

// stopped handles the report of a stop. again means that the process must be resumed. step is the thread that executes one instruction, or 0.
func (c *control) stopped(reply []byte, step int) (stop holder.Stop, again bool, err error) {
	switch {
	case len(reply) == 0:
		return stop, false, fmt.Errorf("%w: letting the process run (vCont, c)", holder.ErrLacks)
	case failed(reply):
		return stop, false, fmt.Errorf("the stub cannot let the process run: it answers %s", clean(reply))
	case reply[0] == 'N':
		return stop, false, errors.New("the stub reports that no thread runs any more")
	}
	r, err := parseStop(reply)
	if err != nil {
		return stop, false, err
	}
	if r.kind == 'W' || r.kind == 'X' {
		if text := r.fields["process"]; text != "" {
			if pid, err := strconv.ParseUint(text, 16, 31); err == nil && c.multi && int(pid) != c.pid {
				return stop, true, nil // the report is about another process of the stub
			}
		}
		clear(c.inserted)
		c.gone = true
		if r.kind == 'W' {
			return holder.Stop{Kind: holder.Exited, Code: r.number}, false, nil
		}
		return holder.Stop{Kind: holder.Killed, Signal: c.linuxSignal(r.number)}, false, nil
	}
	id, err := c.stoppedThread(r)
	if err != nil {
		return stop, false, err
	}
	if c.multi && id.pid > 0 && id.pid != c.pid { // the report is about another process of the stub
		return stop, true, c.idles(0)
	}
	stop.Thread = id.tid
	for name := range r.fields {
		switch name {
		case "fork", "vfork":
			return stop, true, c.forked(id, r.fields[name], name == "vfork")
		case "vforkdone":
			return stop, true, c.returned(id)
		case "exec":
			c.forget()
			stop.Kind = holder.Exec
			return stop, false, nil
		}
	}
	switch r.fields["reason"] { // lldb-server sends this field
	case "exec":
		c.forget()
		stop.Kind = holder.Exec
		return stop, false, nil
	case "vforkdone":
		return stop, true, c.returned(id)
	}
	_, soft := r.fields["swbreak"]
	_, hard := r.fields["hwbreak"]
	if r.number == sigTrap || soft || hard || step > 0 {
		now, err := c.placeOf(id, r)
		if err != nil {
			return stop, false, err
		}
		stop.PC, c.stepped = now.pc, now
		if _, here := c.inserted[now.pc]; here && (r.number == sigTrap || soft || hard) {
			c.at[id.tid], c.idle = now, traps{}
			again := c.entered[id.tid]
			delete(c.entered, id.tid) // the thread is at another position, so it may have left the handler by siglongjmp(3)
			if again == now && step == 0 {
				return stop, true, nil
			}
			stop.Kind = holder.Hit
			return stop, false, nil
		}
	}
	switch {
	case step == id.tid && (r.number == sigTrap || r.number == 0):
		stop.Kind = holder.Stepped
		return stop, false, nil
	case soft || hard: // a hit of a breakpoint that has been removed meanwhile
		return stop, true, c.idles(stop.PC)
	case c.asked && c.interrupts(r.number):
		c.asked = false
		stop.Kind = holder.Interrupted
		return stop, false, nil
	case r.number == 0:
		return stop, true, c.idles(stop.PC)
	case r.number == sigTrap:
		if _, trapped := c.inserted[stop.PC-1]; trapped && c.description.arch == machine.AMD64 {
			return stop, false, fmt.Errorf("%w: moving the pc back to a breakpoint (swbreak)", holder.ErrLacks)
		}
	}
	c.idle = traps{}
	// The kernel keeps one of each standard signal, and all real-time signals (signal(7)).
	if sig := (signal{id.text, r.number}); c.linuxSignal(r.number) >= sigRealTime || !slices.Contains(c.signals, sig) {
		if len(c.signals) == maxSignals {
			return stop, false, fmt.Errorf("the stub reported more than %d signals for one instruction", maxSignals)
		}
		c.signals = append(c.signals, sig)
	}
	if step > 0 {
		c.last = r.number
		stop.Kind = signalled
		return stop, false, nil
	}
	return stop, true, nil
}

// forget drops the data about a program that no longer runs.
func (c *control) forget() {
	clear(c.inserted)
	clear(c.named)
	clear(c.at)
	clear(c.entered)
	c.signals, c.lending = nil, false
}

// idles counts a stop for which no reason was found, and returns an error after too many of them in succession.
func (c *control) idles(at machine.Addr) error {
	if c.idle.at != at {
		c.idle = traps{at: at}
	}
	if c.idle.count++; c.idle.count > maxTraps {
		return fmt.Errorf("the stub reported %d stops at %v, where there is no breakpoint", c.idle.count, at)
	}
	return nil
}

// stoppedThread returns the thread that a report names or, if it names none, the stub's current thread.
func (c *control) stoppedThread(r report) (threadID, error) {
	text := r.thread
	if text == "" && !c.unthreaded {
		reply, err := c.ask("qC")
		if err != nil {
			return threadID{}, err
		}
		text = strings.TrimPrefix(string(reply), "QC")
	}
	if id, ok := parseThread(text); ok {
		if c.unthreaded {
			id.text = ""
		}
		return id, nil
	}
	ids, err := c.list()
	if err != nil {
		return threadID{}, err
	}
	return ids[0], nil
}

// handles reports whether a step from a position ended in a signal handler, which returns to that position. Only a handler changes both registers by
// much: the stack pointer by more than the red zone of 128 bytes, and the pc by more than the longest instruction.
func (now place) handles(from place) bool {
	far := func(a, b machine.Addr, limit uint64) bool { return uint64(max(a, b)-min(a, b)) > limit }
	return far(now.sp, from.sp, 128) && far(now.pc, from.pc, 16)
}

// placeOf returns the position of a thread, from the report if the report contains it.
func (c *control) placeOf(id threadID, r report) (now place, err error) {
	a := c.description.arch
	from := func(index int) (machine.Addr, bool) {
		if index < 0 {
			return 0, false
		}
		b, err := hex.DecodeString(r.fields[fmt.Sprintf("%02x", c.description.registers[index].number)])
		if err != nil || len(b) != a.Pointer {
			return 0, false
		}
		return machine.Addr(a.Uint(b)), true
	}
	pc, ok := from(c.pcRegister)
	sp, also := from(c.spRegister)
	if ok && also {
		return place{pc, sp}, nil
	}
	v, err := c.values(id)
	if err != nil {
		return now, err
	}
	regs, err := c.description.registersOf(v)
	if err != nil {
		return now, err
	}
	if now.pc, err = regs.Addr(a.PC); err == nil {
		now.sp, err = regs.Addr(a.SP)
	}
	return now, err
}

// forked removes the breakpoints from a new process, and detaches from it. After vfork(2) the two processes share memory until the child has ended or
// has executed another program.
func (c *control) forked(parent threadID, text string, lent bool) error {
	id, ok := parseThread(text)
	if !ok || !c.multi {
		return fmt.Errorf("the stub reports a new process without a number: %q", clean([]byte(text)))
	}
	owner := id
	if lent { // the memory is shared with the process itself
		owner = parent
	}
	err := c.order("Hg"+owner.text, "select a thread")
	for addr, p := range c.inserted {
		if c.lost != nil || !p.in {
			continue
		}
		one := c.order("z"+p.packet, "remove a breakpoint")
		if one != nil && c.lost == nil && c.unmapped(addr) {
			one = nil
		}
		if lent {
			p.in = one != nil
		}
		err = errors.Join(err, one)
	}
	c.lending = lent
	if c.lost == nil {
		err = errors.Join(err, c.order(fmt.Sprintf("D;%x", id.pid), "detach from a new process"))
	}
	if c.lost == nil {
		err = errors.Join(err, c.order("Hg"+parent.text, "select a thread"))
	}
	return err
}

// returned inserts the breakpoints again after a child of vfork(2) has stopped using the memory.
func (c *control) returned(parent threadID) error {
	if !c.lending {
		return nil
	}
	c.lending = false
	err := c.order("Hg"+parent.text, "select a thread")
	for _, p := range c.inserted {
		if c.lost == nil {
			err = errors.Join(err, c.put(p))
		}
	}
	return err
}

// Detach implements [holder.Control].
func (c *control) Detach() error {
	err := c.settle()
	if c.lost == nil && !c.gone && !c.running && !c.asked {
		packet := "D"
		if c.multi {
			packet = fmt.Sprintf("D;%x", c.pid)
		}
		one := c.order(packet, "detach from the process")
		if errors.Is(c.lost, errClosed) && c.Reverses() { // QEMU replays the rest of the recording, and may end before it replies
			one = nil
		}
		err = errors.Join(err, one)
	}
	return errors.Join(err, c.stream.Close())
}

// settle stops the process and removes as many breakpoints as possible. It does nothing if the process has ended.
func (c *control) settle() (err error) {
	if c.running {
		if _, err = c.Interrupt(); c.lost != nil {
			return err
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(c.inserted)) {
		if c.lost == nil {
			err = errors.Join(err, c.Remove(addr))
		}
	}
	if c.lost != nil {
		return err
	}
	return errors.Join(err, c.drain())
}

// drain waits for the stop that an interrupt causes, if the interrupt was sent when the process had already stopped for another reason. gdbserver
// keeps such an interrupt as a SIGINT, which would end the process after the detach. Because the breakpoints are removed, no further hits occur.
func (c *control) drain() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.timeout, errInterrupt)
	defer cancel()
	for range maxTraps {
		if !c.asked || c.gone {
			return nil
		}
		if err := c.Resume(); err != nil {
			return err
		}
		_, err := c.wait(ctx, 0)
		if errors.Is(err, errInterrupt) { // the stub ignores an interrupt while the process is stopped
			_, err = c.Interrupt()
		}
		if err != nil {
			return err
		}
	}
	return errInterrupt
}

// Kill implements [holder.Control].
func (c *control) Kill() error {
	var err error
	if c.running {
		_, err = c.Interrupt()
	}
	switch {
	case c.lost != nil || c.gone:
	case c.multi:
		err = errors.Join(err, c.order(fmt.Sprintf("vKill;%x", c.pid), "kill the process"))
	default:
		err = errors.Join(err, c.tell("k")) // this packet has no reply
	}
	return errors.Join(err, c.stream.Close())
}

// Disconnect implements [holder.Control].
func (c *control) Disconnect() error { return c.stream.Close() }

// native reports whether the stub sends Linux's signal numbers, as lldb-server does.
func (c *control) native() bool { return c.features["native-signals"] == "+" }

// linuxSignal returns Linux's number of a signal. Stubs send gdb's numbers (include/gdb/signals.def of gdb) unless they are native.
func (c *control) linuxSignal(n int) int {
	if c.native() {
		return n
	}
	to, differs := gdbSignals[n]
	switch {
	case differs:
		return to
	case n >= 45 && n <= 75: // GDB_SIGNAL_REALTIME_33 to 63
		return n - 12
	}
	return n
}

// gdbSignals maps gdb's signal numbers to those of Linux, if they differ.
var gdbSignals = map[int]int{10: 7, 12: 31, 16: 23, 17: 19, 18: 20, 19: 18, 20: 17, 23: 29, 30: 10, 31: 12, 32: 30, 77: 32, 78: 64}

// await waits for the next packet while the process runs, until ctx is done.
func (c *conn) await(ctx context.Context) ([]byte, error) {
	if c.lost != nil {
		return nil, c.lost
	}
	lose := func(err error) ([]byte, error) {
		c.lost = fmt.Errorf("%w: %w", holder.ErrLost, c.explain(err))
		return nil, c.lost
	}
	for noise := 0; ; noise++ {
		b, err := c.peek(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return lose(err)
		case noise > maxNoise:
			return lose(errNoPacket)
		}
		if err := c.limit(); err != nil {
			return lose(err)
		}
		if b == '$' {
			reply, err := c.reply()
			if err != nil {
				return lose(err)
			}
			return reply, nil
		}
		if _, err = c.in.ReadByte(); err == nil && b == '%' {
			_, _, err = c.body()
		}
		if err != nil {
			return lose(err)
		}
	}
}

// peek waits for a byte.
func (c *conn) peek(ctx context.Context) (byte, error) {
	if c.in.Buffered() == 0 {
		if err := c.stream.SetDeadline(time.Time{}); err != nil {
			return 0, err
		}
		woken := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			_ = c.stream.SetDeadline(time.Unix(1, 0)) // an error means that it is closed
			close(woken)
		})
		_, err := c.in.Peek(1)
		if !stop() {
			<-woken
		}
		if err != nil {
			return 0, err
		}
	}
	b, err := c.in.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// tell sends a packet without waiting for a reply.
func (c *conn) tell(packet string) error {
	if c.lost != nil {
		return c.lost
	}
	err := c.limit()
	if err == nil {
		err = c.send(packet)
	}
	if err != nil {
		c.lost = fmt.Errorf("%w: %w", holder.ErrLost, c.explain(err))
	}
	return c.lost
}

// raw sends a single byte outside of a packet.
func (c *conn) raw(b byte) error {
	if c.lost != nil {
		return c.lost
	}
	err := c.limit()
	if err == nil {
		_, err = c.stream.Write([]byte{b})
	}
	if err != nil {
		c.lost = fmt.Errorf("%w: %w", holder.ErrLost, c.explain(err))
	}
	return c.lost
}
