//go:build linux

package tracer

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// commit writes memory and then the registers of a thread. It is a single request, so that killing the client cannot interrupt it. If a write fails,
// commit restores everything that it has written.
func (s *server) commit(changes []Change, raw *Raw) error {
	t := s.threads[raw.TID]
	if t == nil || t.running || !s.stopped {
		return unix.ESRCH
	}
	before := make([][]byte, len(changes))
	for i, c := range changes {
		before[i] = make([]byte, len(c.Data))
		if err := whole(s.memory.read, before[i], c.Addr); err != nil {
			return fmt.Errorf("nothing was written: cannot read %d bytes at %#x: %w", len(c.Data), c.Addr, err)
		}
	}
	var err error
	written := 0
	for ; err == nil && written < len(changes); written++ {
		c := changes[written]
		if err = whole(s.memory.write, c.Data, c.Addr); err != nil {
			err = fmt.Errorf("cannot write %d bytes at %#x: %w", len(c.Data), c.Addr, err)
		}
	}
	if err == nil {
		if err = t.setRegisters(raw); err == nil {
			return nil
		}
		err = fmt.Errorf("cannot set registers: %w", err)
	}
	for i := written - 1; i >= 0; i-- {
		if back := whole(s.memory.write, before[i], changes[i].Addr); back != nil {
			return fmt.Errorf("%d bytes at %#x were written and cannot be restored (%v): %w", len(before[i]), changes[i].Addr, back, err)
		}
	}
	return fmt.Errorf("all writes were undone: %w", err)
}

// whole reads or writes all of p, or returns an error.
func whole(f func([]byte, uint64) (int, error), p []byte, addr uint64) error {
	n, err := f(p, addr)
	switch {
	case err != nil:
		return err
	case n == 0 && len(p) > 0:
		return unix.ESRCH // the memory no longer exists (mem_rw of Linux's fs/proc/base.c)
	case n < len(p):
		return io.ErrUnexpectedEOF
	}
	return nil
}

// setRegisters sets the general and the vector registers of a stopped thread. If it returns an error, it has changed none.
func (t *thread) setRegisters(raw *Raw) error {
	if t.killed() {
		return unix.ESRCH
	}
	before, _ := getSet(t.tid, otherSets[0].Kind)
	var was General
	moved := getRegs(t.tid, &was) != nil || was.pc() != raw.General.pc() || was.sp() != raw.General.sp()
	vectors := len(raw.Others) > 0 && len(raw.Others[0]) > 0 // gob decodes a set that the kernel does not provide as empty
	if vectors {
		if err := setSet(t.tid, otherSets[0].Kind, raw.Others[0]); err != nil {
			return err
		}
	}
	if err := setGeneral(t.tid, raw.General); err != nil {
		if vectors && before != nil {
			_ = setSet(t.tid, otherSets[0].Kind, before) // an error means that the thread was killed; otherwise it accepts its own former values
		}
		return err
	}
	t.again = nil
	if moved { // another activation of a recursive function is now at the same address, and must hit the breakpoint there
		t.at = nil
	}
	return nil
}
