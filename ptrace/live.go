package ptrace

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// readPatience bounds the duration of one read of a process's memory.
const readPatience = time.Second

// liveMemory is the memory of a running or stopped process. A read never waits long for another process that provides pages: /proc/PID/mem does not
// wait for userfaultfd, and memory of files from FUSE or network file systems is read within a time limit.
type liveMemory struct {
	tid      int
	mem      *system.Memory
	provided *provisions
	maps     []machine.Mapping // nil if unknown
	served   func() []machine.Range
}

// live returns the memory of a thread's process.
func live(tid int) *liveMemory {
	l := &liveMemory{tid: tid, mem: system.NewMemory(tid)}
	l.know(nil, &provisions{tid: tid})
	return l
}

// know sets the current mappings, and those whose pages userfaultfd provides.
func (l *liveMemory) know(maps []machine.Mapping, provided *provisions) {
	l.maps, l.provided = maps, provided
	l.served = sync.OnceValue(func() []machine.Range { return system.Served(l.tid) })
}

func (l *liveMemory) size() uint64 { return math.MaxInt64 }

// ReadMemory implements [machine.Memory].
func (l *liveMemory) ReadMemory(p []byte, addr machine.Addr) error {
	n, err := l.readUpTo(p, addr)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, syscall.EFAULT):
		if l.pending(addr + machine.Addr(n)) {
			return &machine.MemoryError{Addr: addr, Len: len(p), Why: awaited, Code: frame.MemoryPending}
		}
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
	case errors.Is(err, syscall.ESRCH):
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: err.Error(), Code: frame.MemoryGone}
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: err.Error()}
}

// pending reports whether the byte at an address is in a page that userfaultfd has not provided.
func (l *liveMemory) pending(addr machine.Addr) bool {
	_, mapped := findMapping(l.maps, addr)
	return mapped && l.provided.has(addr, 1)
}

// readUpTo reads until p is full or memory ends, and returns the number of bytes read.
func (l *liveMemory) readUpTo(p []byte, addr machine.Addr) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if r := (machine.Range{Start: addr, End: addr + machine.Addr(len(p))}); !l.mapped(r) || len(overlaps(l.served(), r)) > 0 {
		n, err := l.mem.ReadWithin(readPatience, []system.Want{{Addr: addr, Buf: p}})
		late := errors.Is(err, system.ErrLate)
		if err == nil || errors.Is(err, syscall.EFAULT) || errors.Is(err, syscall.ESRCH) || late && !resident(l.tid, r) {
			return n, err
		}
	}
	n, err := l.mem.Read(p, addr)
	if errors.Is(err, os.ErrPermission) {
		return l.readWithoutFile([]system.Want{{Addr: addr, Buf: p}}, err)
	}
	return n, err
}

// mapped reports whether a range is known to be mapped. Reading /proc/PID/mem below a stack would make the stack grow, as an access by the process
// would.
func (l *liveMemory) mapped(r machine.Range) bool {
	for r.Start < r.End {
		m, ok := findMapping(l.maps, r.Start)
		if !ok {
			return false
		}
		r.Start = m.End
	}
	return true
}

// resident reports whether all pages of a range are in memory, so that reading them does not wait for a file system.
func resident(tid int, r machine.Range) bool {
	pages, err := openPagemap(tid)
	if err != nil {
		return false
	}
	defer pages.Close()
	return pages.all(r)
}

// readMany reads many small ranges. It continues after a range that cannot be read.
func (l *liveMemory) readMany(wants []system.Want) error {
	denied := l.mem.Open()
	if denied != nil && !errors.Is(denied, os.ErrPermission) {
		return denied
	}
	if denied != nil {
		return l.readManyWithoutFile(wants, denied)
	}
	for i := range wants {
		w := &wants[i]
		n, err := l.readUpTo(w.Buf, w.Addr)
		if err != nil && !errors.Is(err, syscall.EFAULT) && !errors.Is(err, system.ErrLate) {
			return err
		}
		w.OK = n == len(w.Buf)
	}
	return nil
}

// batchSize is the maximum number of ranges per call (IOV_MAX).
const batchSize = 1024

// readManyWithoutFile implements readMany with few system calls. The kernel stops at a range that cannot be read, and another call reads the
// remaining ranges.
func (l *liveMemory) readManyWithoutFile(wants []system.Want, denied error) error {
	for len(wants) > 0 {
		n := min(len(wants), batchSize)
		if i := slices.IndexFunc(wants[:n], func(w system.Want) bool { return l.provided.has(w.Addr, len(w.Buf)) }); i >= 0 {
			n = i
		}
		got, err := l.readWithoutFile(wants[:n], denied)
		switch {
		case errors.Is(err, system.ErrLate):
			return nil
		case err != nil && !errors.Is(err, syscall.EFAULT):
			return err
		}
		done := 0
		for done < n && got >= len(wants[done].Buf) {
			got -= len(wants[done].Buf)
			wants[done].OK = true
			done++
		}
		if done < len(wants) && (done < n || n < batchSize) {
			done++ // skip the range that failed
		}
		wants = wants[done:]
	}
	return nil
}

// readWithoutFile reads memory if /proc/PID/mem cannot be opened. The user of the process owns that file, and CAP_SYS_PTRACE does not permit opening
// it, but permits process_vm_readv(2). That call waits for pages that userfaultfd provides, so readWithoutFile skips these pages.
func (l *liveMemory) readWithoutFile(wants []system.Want, denied error) (int, error) {
	if len(wants) == 0 {
		return 0, nil
	}
	if l.provided.has(wants[0].Addr, len(wants[0].Buf)) {
		return 0, syscall.EFAULT
	}
	n, err := l.mem.ReadWithin(readPatience, wants)
	if err == nil || errors.Is(err, syscall.EFAULT) || errors.Is(err, syscall.ESRCH) || errors.Is(err, system.ErrLate) {
		return n, err
	}
	return 0, fmt.Errorf("%w, and %w", err, denied)
}

// heeds reports whether the process itself may read all pages of a range. It is called after a read from /proc/PID/mem, which ignores the protection
// of pages.
func (l *liveMemory) heeds(addr machine.Addr, size int) bool {
	var wants []system.Want
	bytes := make([]byte, size/codePage+2)
	for at := addr; at < addr+machine.Addr(size); at = at&^(codePage-1) + codePage {
		wants = append(wants, system.Want{Addr: at, Buf: bytes[len(wants):][:1]})
	}
	for len(wants) > 0 {
		n := min(len(wants), batchSize)
		got, err := l.mem.ReadWithin(readPatience, wants[:n])
		if errors.Is(err, syscall.EFAULT) || err == nil && got < n {
			return false
		}
		wants = wants[n:]
	}
	return true
}
