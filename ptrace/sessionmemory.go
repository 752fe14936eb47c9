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

// sessionMemory is the memory of a process under control, as it would be without the session's breakpoints.
type sessionMemory struct {
	pid, via  int
	originals map[machine.Addr]tracer.Code
	held      map[machine.Addr]bool // by debug registers
	source    *liveMemory           // of via, once it is read
	released  func() bool           // the process runs although it is to be stopped
	unhandled string                // why the process has no handler of SIGTRAP of the tracer's; "" where it has one
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
	if err != nil && system.Ended(m.pid, m.via) { // others may continue, and have the same memory
		m.via = firstAlive(m.pid)
		err = m.live().ReadMemory(p, addr)
	}
	if err == nil && m.released != nil && m.released() {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: ErrReleased.Error()}
	}
	if err != nil || len(m.originals) == 0 {
		return err
	}
	// Breakpoints that begin before p or end after it.
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

// uncoverIn puts what lies under a breakpoint, if there is one, into p, which was read at addr.
func (m *sessionMemory) uncoverIn(p []byte, addr, breakpoint machine.Addr) {
	code, ours := m.originals[breakpoint]
	if !ours {
		return
	}
	at := func(i int) machine.Addr { return breakpoint + machine.Addr(i) - addr }
	for i := range code {
		if at(i) < machine.Addr(len(p)) && p[at(i)] != tracer.Trap[i] {
			return // the process has written over it
		}
	}
	for i := range code {
		if at(i) < machine.Addr(len(p)) {
			p[at(i)] = code[i]
		}
	}
}

// cover notes what lies where a breakpoint is about to be set, or was set and the process has written over it.
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

// hold notes the breakpoints of which nothing lies in memory.
func (m *sessionMemory) hold(addrs []uint64) {
	for _, addr := range addrs {
		if m.held == nil {
			m.held = map[machine.Addr]bool{}
		}
		m.held[machine.Addr(addr)] = true
		delete(m.originals, machine.Addr(addr))
	}
}

// change notes what lies under a breakpoint now.
func (m *sessionMemory) change(addr machine.Addr, e *tracer.Event) {
	if _, known := m.originals[addr]; known && e.Armed {
		m.originals[addr] = e.Under
	}
}

// salvage restores the bytes under all breakpoints, and the action for SIGTRAP, if the tracer no longer can, and returns the result as text. A thread may
// have hit one before that.
func (m *sessionMemory) salvage() string {
	back, err := m.restore()
	if errors.Is(err, os.ErrPermission) { // the file is not this user's; ptrace(2) may be permitted all the same
		back, err = m.restoreTraced()
	}
	if err != nil {
		return "breakpoints may be left in the process: " + err.Error()
	}
	text := fmt.Sprintf("what lies under %d breakpoints was put back", back)
	if len(m.originals)+len(m.held) > 0 && m.unhandled == "" {
		_, err := m.again(tracer.Request{Op: tracer.Unhandle})
		if err != nil { // it does what the default action does
			text += fmt.Sprintf(", the handler of SIGTRAP stays in the process: %v", err)
		}
	}
	if n := len(m.held); n > 0 {
		text += fmt.Sprintf(", %d that debug registers held were taken out", n)
		if err := m.release(); err != nil {
			text = fmt.Sprintf("debug registers of the process may hold %d breakpoints: %v; what lies under %d others was put back", n, err, back)
		}
	}
	if m.unhandled != "" {
		text += ", and a thread that had come to one of them before may have ended the process: " + m.unhandled
	}
	return text
}

// restore puts back what lies under the breakpoints, by /proc/PID/mem, and returns how many it found.
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

// restoreTraced has another tracer do that.
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

// release has another tracer take the breakpoints out of the debug registers of all threads.
func (m *sessionMemory) release() error {
	r := tracer.Request{Op: tracer.Clear}
	for addr := range m.held {
		r.Addrs = append(r.Addrs, uint64(addr))
	}
	_, err := m.again(r)
	return err
}

// again has another tracer attach, do what is requested, and detach.
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
