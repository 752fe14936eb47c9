//go:build linux

package tracer

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// servedPatience bounds the wait for a page of a file system that another process or machine serves.
const servedPatience = time.Second

// served fetches pages of files on file systems that another process or machine serves. PTRACE requests and accesses of /proc/PID/mem wait for such
// pages without end, and no signal ends that wait.
type served struct {
	maps []machine.Range // the mappings of such files
	by   *system.Memory
}

// serving returns a served for a process, with the served mappings that the process has now.
func serving(tid int) *served {
	return &served{system.Served(tid), system.NewMemory(tid)}
}

// listServed lists the served mappings again.
func (s *server) listServed() {
	for tid := range s.threads {
		if s.memory.served != nil && !system.Ended(s.pid, tid) {
			s.memory.served = serving(tid) // the thread that it read by may have ended
			return
		}
	}
}

// fetch brings those pages of a range into memory that belong to served mappings. It returns [system.ErrLate] if that takes longer than
// servedPatience.
func (m memory) fetch(addr uint64, size int) error {
	in := machine.Range{Start: machine.Addr(addr), End: machine.Addr(addr) + machine.Addr(size)}
	of := func(r machine.Range) bool { return r.Start < in.End && in.Start < r.End }
	if size == 0 || m.served == nil || !slices.ContainsFunc(m.served.maps, of) || m.present(addr, size) {
		return nil
	}
	_, err := m.served.by.ReadWithin(servedPatience, []system.Want{{Addr: in.Start, Buf: make([]byte, size)}})
	if errors.Is(err, system.ErrLate) {
		return err
	}
	return nil // if process_vm_readv is denied, the page is read like any other
}

// present reports whether all pages of a range are in memory (Documentation/admin-guide/mm/pagemap.rst of Linux, bit 63).
func (m memory) present(addr uint64, size int) bool {
	const present, entrySize = 1 << 63, 8
	page := uint64(unix.Getpagesize())
	first := addr / page
	entries := make([]byte, entrySize*((addr+uint64(size)-1)/page-first+1))
	if _, err := m.pages.ReadAt(entries, int64(first*entrySize)); err != nil {
		return false
	}
	for at := 0; at < len(entries); at += entrySize {
		if binary.NativeEndian.Uint64(entries[at:])&present == 0 {
			return false
		}
	}
	return true
}
