package delve

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/system"
)

// here is a process on this machine that was verified to be the one that a server holds.
type here struct {
	mem      *os.File
	mappings []machine.Mapping
}

// prove returns the process on this machine that the server holds, or nil if the process is on another machine or cannot be verified. An equal number
// is not sufficient: the server may be in a container, or at the end of a tunnel. A process with this number must have the same threads; all must be
// traced and stopped at the same addresses with the same stack pointers; and the memory there must be the same.
func (p *process) prove() (*here, error) {
	if p.backend != "native" {
		return nil, nil // another program reads the process for Delve, and its memory may differ (rr)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.pid)) // the open file refers to the process even if its number is used again
	if err != nil {
		return nil, nil
	}
	h := &here{mem: mem}
	same, err := p.isHere(h)
	if err != nil || !same {
		mem.Close()
		return nil, err
	}
	return h, nil
}

// maxSample bounds the number of threads whose stacks are compared.
const maxSample = 8

// watch records the context switches of all threads of the process with this number on this machine. It must be called before the registers are read.
// Otherwise a process that runs afterwards and stops at the same place would not be noticed.
func (p *process) watch() {
	tids, err := system.ThreadIDs(p.pid)
	if err != nil {
		return // prove will not find the process either
	}
	p.switches = map[int]string{}
	for _, tid := range tids {
		p.switches[tid] = switches(taskStatus(p.pid, tid))
	}
}

// movedHere returns an error if a thread has run since watch was called. It checks all threads, because Delve may step a single one.
func (p *process) movedHere() error {
	for _, th := range p.regs {
		if switches(taskStatus(p.pid, th.ID)) != p.switches[th.ID] {
			return errMoved
		}
	}
	return nil
}

// isHere reports whether h is the process that the server holds, and fills h.
func (p *process) isHere(h *here) (bool, error) {
	tids, err := system.ThreadIDs(p.pid)
	if err != nil || len(tids) != len(p.regs) {
		return false, nil
	}
	for i, th := range p.regs {
		if !slices.Contains(tids, th.ID) {
			return false, nil
		}
		status := taskStatus(p.pid, th.ID)
		if tracer := status["TracerPid"]; tracer == "" || tracer == "0" {
			return false, nil
		}
		sp, err := th.Registers.Addr(p.arch.SP)
		if err != nil {
			return false, err
		}
		pc, err := th.Registers.Addr(p.arch.PC)
		if err != nil {
			return false, err
		}
		if !stopsAt(p.pid, th.ID, sp, pc) {
			return false, nil
		}
		if i >= maxSample {
			continue
		}
		for _, at := range []machine.Addr{sp, pc} {
			var own, theirs [64]byte
			n, _ := readFile(h.mem, own[:], at)
			if n == 0 {
				return false, nil // there is nothing to compare
			}
			got, err := p.examine(theirs[:n], at)
			if err != nil && p.lost != nil {
				return false, err
			}
			if got != n || !bytes.Equal(own[:], theirs[:]) {
				return false, nil
			}
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	if err != nil || len(text) == 0 {
		return false, nil
	}
	if h.mappings, err = system.ParseMaps(string(text)); err != nil {
		return false, nil
	}
	return true, p.movedHere()
}

// stopsAt reports whether a thread has stopped with the given stack pointer and program counter. These are the last fields of the file
// (proc_pid_syscall(5)), which contains "running" if the thread has not stopped.
func stopsAt(pid, tid int, sp, pc machine.Addr) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return false
	}
	is := func(field string, want machine.Addr) bool {
		v, err := strconv.ParseUint(field, 0, 64)
		return err == nil && machine.Addr(v) == want
	}
	return is(fields[len(fields)-2], sp) && is(fields[len(fields)-1], pc)
}

// taskStatus returns the fields of the status of a thread (proc_pid_status(5)).
func taskStatus(pid, tid int) map[string]string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return nil
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// switches returns the numbers of context switches of a thread. A thread that runs and stops again has at least one more.
func switches(status map[string]string) string {
	return status["TracerPid"] + " " + status["voluntary_ctxt_switches"] + " " + status["nonvoluntary_ctxt_switches"]
}

// readHere fills the state from the files of this machine.
func (p *process) readHere(s *holder.State, h *here) {
	s.Mappings = h.mappings
	s.Auxv, _ = os.ReadFile(fmt.Sprintf("/proc/%d/auxv", p.pid)) // if it cannot be read, the target shows what is missing
	if command := system.CommandLine(p.pid); command != "" {
		s.Command = command
	}
	for i := range p.regs {
		p.regs[i].Name = system.ThreadName(p.pid, p.regs[i].ID)
	}
	s.Memory = &memory{arch: p.arch, patches: p.patches,
		read:  func(b []byte, addr machine.Addr) (int, error) { return readFile(h.mem, b, addr) },
		moved: p.movedHere}
	s.Close = func() error {
		h.mem.Close()
		return p.conn.Close()
	}
}
