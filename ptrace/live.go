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

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// readPatience bounds how long one read of a process takes.
const readPatience = time.Second

// liveMemory is the memory of a running or stopped process. No read of it waits long for somebody who provides pages: /proc/PID/mem does not wait for
// userfaultfd, and files of file systems that a process or another machine serves are read within a time limit.
type liveMemory struct {
	tid      int
	mem      *system.Memory
	provided *provisions
	maps     []machine.Mapping // as far as they are known
	served   func() []machine.Range
}

// live returns the memory of the process that a thread belongs to.
func live(tid int) *liveMemory {
	l := &liveMemory{tid: tid, mem: system.NewMemory(tid)}
	l.know(nil, &provisions{tid: tid})
	return l
}

// know sets the mappings, as they are now, and those of them that are provided on demand.
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
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: l.why(addr + machine.Addr(n))}
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: err.Error()}
}

// why returns why the byte at an address cannot be read.
func (l *liveMemory) why(addr machine.Addr) string {
	if _, mapped := findMapping(l.maps, addr); mapped && l.provided.has(addr, 1) {
		return awaited
	}
	return "not mapped"
}

// readUpTo reads until p is full or memory ends, and returns how much it read.
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

// mapped reports whether a range is known to be mapped. To read /proc/PID/mem below a stack makes that grow, as an access of the process would.
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

// resident reports whether a process has all pages of a range in memory, so that to read it waits for no file system.
func resident(tid int, r machine.Range) bool {
	pages, err := openPagemap(tid)
	if err != nil {
		return false
	}
	defer pages.Close()
	return pages.all(r)
}

// readMany reads many small ranges. A range that cannot be read does not prevent reading the others.
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

// The kernel takes 1024 ranges a call (IOV_MAX).
const batchSize = 1024

// readManyWithoutFile is readMany by few system calls: the kernel stops at a range that cannot be read, and the rest is requested again.
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
			done++ // the one that failed
		}
		wants = wants[done:]
	}
	return nil
}

// readWithoutFile reads where opening /proc/PID/mem is denied: that file belongs to the user of the process, and CAP_SYS_PTRACE does not permit opening
// it. process_vm_readv(2), which it permits, waits for pages that userfaultfd provides. These are left out.
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

// heeds reports whether the process may read all pages of a range that was just read: /proc/PID/mem ignores the protection of pages.
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
