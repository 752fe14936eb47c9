//go:build linux

package tracer

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// servedPatience bounds the wait for a page of a file system that another process or machine provides.
const servedPatience = time.Second

// served fetches pages of files on file systems that another process or machine provides. ptrace requests and accesses of /proc/PID/mem can wait for
// such pages for ever, and no signal ends that wait.
type served struct {
	maps []machine.Range // mappings of such files
	by   *system.Memory
}

// serving returns a served for a process, with the process's current mappings of such files.
func serving(tid int) *served {
	return &served{system.Served(tid), system.NewMemory(tid)}
}

// listServed reads the list of served mappings again.
func (s *server) listServed() {
	for tid := range s.threads {
		if s.memory.served != nil && !system.Ended(s.pid, tid) {
			s.memory.served.maps = system.Served(tid)
			return
		}
	}
}

// errUnfetched reports a page that cannot be read without the risk of an unbounded wait.
var errUnfetched = errors.New("it is not in memory, and the process itself may not read it: reading it may wait for its file system without end")

// fetch brings the pages of a range that belong to served mappings into memory. It returns the number of bytes that can then be read, up to the first
// page that it could not fetch, or an error if there are none. It returns [system.ErrLate] if it exceeds servedPatience.
func (m memory) fetch(addr uint64, size int) (int, error) {
	if m.served == nil {
		return size, nil
	}
	for _, r := range m.served.maps {
		low, high := max(addr, uint64(r.Start)), min(addr+uint64(size), uint64(r.End))
		if low >= high || m.present(low, int(high-low)) {
			continue
		}
		n, err := m.readServed(low, int(high-low))
		switch {
		case errors.Is(err, system.ErrLate):
			return 0, err
		case err != nil && !errors.Is(err, unix.EFAULT), uint64(n) == high-low, m.present(low, int(high-low)):
			continue // if process_vm_readv is denied, the page is read like any other
		case low+uint64(n) > addr:
			return int(low-addr) + n, nil
		}
		// process_vm_readv respects the protection of pages, such as PROT_EXEC without PROT_READ; /proc/PID/mem ignores it.
		return 0, errUnfetched
	}
	return size, nil
}

// readServed reads memory through a thread that has not ended, and returns the number of bytes read.
func (m memory) readServed(addr uint64, size int) (n int, err error) {
	want := []system.Want{{Addr: machine.Addr(addr), Buf: make([]byte, size)}}
	if n, err = m.served.by.ReadWithin(servedPatience, want); !errors.Is(err, unix.ESRCH) || m.threads == nil {
		return n, err
	}
	for tid := range m.threads {
		by := system.NewMemory(tid)
		if n, err = by.ReadWithin(servedPatience, want); !errors.Is(err, unix.ESRCH) {
			m.served.by = by
			break
		}
	}
	return n, err
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
