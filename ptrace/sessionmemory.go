package ptrace

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/tracer"
)

// sessionMemory is the memory of a traced process, with the original code in place of the session's breakpoints.
type sessionMemory struct {
	pid, via  int
	originals map[machine.Addr]tracer.Code
	held      map[machine.Addr]bool // breakpoints in debug registers
	source    *liveMemory           // memory of via; nil until it is first read
	released  func() bool           // reports whether the process was resumed although the session has stopped it
	unhandled string                // why the process has no SIGTRAP handler of the tracer; "" if it has one
}

// live returns the memory with the breakpoints.
func (m *sessionMemory) live() *liveMemory {
	if m.source == nil || m.source.tid != m.via {
		if m.source != nil {
			m.source.mem.Close()
		}
		m.source = live(m.via)
	}
	return m.source
}

// ReadMemory implements [machine.Memory].
func (m *sessionMemory) ReadMemory(p []byte, addr machine.Addr) error {
	err := m.live().ReadMemory(p, addr)
	if err != nil && system.Ended(m.pid, m.via) { // other threads may still run, and share the memory
		m.via = firstAlive(m.pid)
		err = m.live().ReadMemory(p, addr)
	}
	if err == nil && m.released != nil && m.released() {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: ErrReleased.Error()}
	}
	if err != nil || len(m.originals) == 0 {
		return err
	}
	// Also restore breakpoints that begin before p or end after it.
	const size = machine.Addr(len(tracer.Code{}))
	m.uncoverIn(p, addr, addr&^(size-1))
	m.uncoverIn(p, addr, (addr+machine.Addr(len(p)))&^(size-1))
	const last = len(tracer.Code{}) - 1
	for i := last; i < len(p); i++ {
		next := bytes.IndexByte(p[i:], tracer.Trap[last])
		if next < 0 {
			break
		}
		i += next
		m.uncoverIn(p, addr, addr+machine.Addr(i-last))
	}
	return nil
}

// uncoverIn replaces a breakpoint in p by the code under it, if the breakpoint is in p. p was read at addr.
func (m *sessionMemory) uncoverIn(p []byte, addr, breakpoint machine.Addr) {
	code, ours := m.originals[breakpoint]
	if !ours {
		return
	}
	at := func(i int) machine.Addr { return breakpoint + machine.Addr(i) - addr }
	for i := range code {
		if at(i) < machine.Addr(len(p)) && p[at(i)] != tracer.Trap[i] {
			return // the process has overwritten the breakpoint
		}
	}
	for i := range code {
		if at(i) < machine.Addr(len(p)) {
			p[at(i)] = code[i]
		}
	}
}

// cover records the code at which a breakpoint is about to be set, or at which the process has overwritten one.
func (m *sessionMemory) cover(addr machine.Addr) {
	var code tracer.Code
	if m.ReadMemory(code[:], addr) == nil {
		m.originals[addr] = code
	}
}

func (m *sessionMemory) uncover(addr machine.Addr) {
	delete(m.originals, addr)
	delete(m.held, addr)
}

// hold records the breakpoints that are in debug registers and not in memory.
func (m *sessionMemory) hold(addrs []uint64) {
	for _, addr := range addrs {
		if m.held == nil {
			m.held = map[machine.Addr]bool{}
		}
		m.held[machine.Addr(addr)] = true
		delete(m.originals, machine.Addr(addr))
	}
}

// change records the code that is now under a breakpoint.
func (m *sessionMemory) change(addr machine.Addr, e *tracer.Event) {
	if _, known := m.originals[addr]; known && e.Armed {
		m.originals[addr] = e.Under
	}
}

// salvage removes breakpoints and the SIGTRAP handler after the tracer was killed, and returns the result as text. Before that, a thread may have hit
// a breakpoint.
func (m *sessionMemory) salvage() string {
	back, err := m.restore()
	if errors.Is(err, os.ErrPermission) { // the file belongs to another user, but ptrace(2) may be permitted
		back, err = m.restoreTraced()
	}
	if err != nil {
		return "breakpoints may be left in the process: " + err.Error()
	}
	text := fmt.Sprintf("the code under %d breakpoints was restored", back)
	if len(m.originals)+len(m.held) > 0 && m.unhandled == "" {
		_, err := m.again(tracer.Request{Op: tracer.Unhandle})
		if err != nil { // a handler that stays has the same effect as the default action
			text += fmt.Sprintf(", the SIGTRAP handler stays in the process: %v", err)
		}
	}
	if n := len(m.held); n > 0 {
		text += fmt.Sprintf(", %d breakpoints were removed from debug registers", n)
		if err := m.release(); err != nil {
			text = fmt.Sprintf("debug registers of the process may still hold %d breakpoints: %v; the code under %d others was restored", n, err, back)
		}
	}
	if m.unhandled != "" {
		text += ", and a thread that hit one of them before that may have ended the process: " + m.unhandled
	}
	return text
}

// restore restores the code under the breakpoints through /proc/PID/mem, and returns the number of breakpoints that are now removed.
func (m *sessionMemory) restore() (back int, err error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", m.via), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var now tracer.Code
	for addr, code := range m.originals {
		_, err := f.ReadAt(now[:], int64(addr))
		if err == nil && now == tracer.Trap {
			_, err = f.WriteAt(code[:], int64(addr))
			now = code
		}
		if err == nil && now == code { // the watchdog may have restored it before
			back++
		}
	}
	return back, nil
}

// restoreTraced restores the code through another tracer.
func (m *sessionMemory) restoreTraced() (back int, err error) {
	r := tracer.Request{Op: tracer.Restore}
	for addr, code := range m.originals {
		r.Changes = append(r.Changes, tracer.Change{Addr: uint64(addr), Data: code[:]})
	}
	reply, err := m.again(r)
	if err != nil {
		return 0, err
	}
	return reply.Restored, nil
}

// release clears the debug registers of all threads through another tracer.
func (m *sessionMemory) release() error {
	r := tracer.Request{Op: tracer.Clear}
	for addr := range m.held {
		r.Addrs = append(r.Addrs, uint64(addr))
	}
	_, err := m.again(r)
	return err
}

// again starts another tracer, which attaches, executes a request, and detaches.
func (m *sessionMemory) again(r tracer.Request) (*tracer.Reply, error) {
	conn, err := tracer.Start(true)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Do(tracer.Request{Op: tracer.Attach, PID: m.pid}); err != nil {
		return nil, err
	}
	reply, err := conn.Do(r)
	if _, end := conn.Do(tracer.Request{Op: tracer.Detach}); err == nil {
		err = end
	}
	return reply, err
}
