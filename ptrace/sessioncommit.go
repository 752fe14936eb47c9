package ptrace

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/tracer"
)

// Change is a write to memory: an address and the new bytes.
type Change struct {
	Addr machine.Addr
	Data []byte
}

// Commit changes memory of a stopped process, and then registers of one thread: general registers, the program counter, and the first bytes of xmm0
// to xmm15 or of v0 to v31. If the thread was stopped in a system call, the kernel does not restart the call. Commit changes everything or, if it
// returns an error, nothing, even if this process is killed meanwhile. The error lists written memory that could not be restored. The changed memory
// must not contain a breakpoint.
func (s *Session) Commit(tid int, memory []Change, registers map[machine.DWARFReg][]byte) error {
	const op = "cannot commit"
	if s.held != nil {
		return s.failed(op, lacks(unsupported[tracer.Commit]))
	}
	if s.ended || !s.stands {
		return s.failed(op, ErrProcessExited)
	}
	reply, err := s.driver.Do(tracer.Request{Op: tracer.Threads})
	if err != nil {
		return s.explain(op, err)
	}
	at := slices.IndexFunc(reply.Threads, func(r tracer.Raw) bool { return r.TID == tid && r.Missing == "" })
	if at < 0 {
		return s.failed(op, ErrProcessExited)
	}
	r := tracer.Request{Op: tracer.Commit, Raw: &reply.Threads[at]}
	for reg, b := range registers {
		if err := setRaw(r.Raw, reg, b); err != nil {
			return &Error{s.pid, op, err, ""}
		}
	}
	for _, c := range memory {
		r.Changes = append(r.Changes, tracer.Change{Addr: uint64(c.Addr), Data: c.Data})
	}
	return s.request(op, r)
}

// ShadowStack reports whether a thread of the process has a shadow stack, a second copy of its return addresses that reframe cannot change: CET on
// x86-64, GCS on arm64. Shadow stacks are separate mappings (Linux, "The /proc Filesystem": ss of VmFlags).
func (s *Session) ShadowStack(tid int) (bool, error) {
	if s.held != nil {
		return false, s.failed("cannot read its shadow stacks", lacks(unsupported[tracer.Commit]))
	}
	// Reading smaps is slow, and an existing mapping never becomes a shadow stack. So if the mappings are unchanged, the process still has none.
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", tid))
	if err != nil {
		return false, err
	}
	if s.shadowless != nil && bytes.Equal(maps, s.shadowless) {
		return false, nil
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", tid)) // of this thread, because the first thread may have ended
	if err != nil {
		return false, err
	}
	defer f.Close()
	has, err := hasShadowStack(f)
	if s.shadowless = nil; err == nil && !has {
		s.shadowless = maps
	}
	return has, err
}

func hasShadowStack(smaps io.Reader) (bool, error) {
	stacks, err := flagged(smaps, "ss")
	return len(stacks) > 0, err
}
