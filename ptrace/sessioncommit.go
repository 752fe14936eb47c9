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

// Change is memory and what is to be in it.
type Change struct {
	Addr machine.Addr
	Data []byte
}

// Commit changes memory of a stopped process, and then registers of one of its threads: general ones, the program counter, and the first bytes of
// xmm0 to xmm15, or of v0 to v31. A system call that the thread was stopped in is abandoned, not restarted. Either all of it is done or, with an
// error, nothing, even if this process is killed meanwhile; the error reports if written memory could not be restored. The changed memory must not
// contain a breakpoint.
func (s *Session) Commit(tid int, memory []Change, registers map[machine.DWARFReg][]byte) error {
	const op = "cannot commit"
	if s.ended || !s.stands {
		return &Error{s.pid, op, ErrGone, ""}
	}
	reply, err := s.tracer.Do(tracer.Request{Op: tracer.Threads})
	if err != nil {
		return s.explain(op, err)
	}
	at := slices.IndexFunc(reply.Threads, func(r tracer.Raw) bool { return r.TID == tid && r.Missing == "" })
	if at < 0 {
		return &Error{s.pid, op, ErrGone, ""}
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

// ShadowStack reports whether a thread of the process keeps its return addresses in a second place too, which nothing here can
// change: on x86-64 by CET, on arm64 by GCS. There are mappings of such stacks then (Linux, "The /proc Filesystem": ss of VmFlags).
func (s *Session) ShadowStack(tid int) (bool, error) {
	// The kernel's smaps is slow to read, and a mapping does not become a shadow stack: if the mappings are unchanged, there is still none.
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", tid))
	if err != nil {
		return false, err
	}
	if s.shadowless != nil && bytes.Equal(maps, s.shadowless) {
		return false, nil
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", tid)) // by a thread that is there: the first one may have ended
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
