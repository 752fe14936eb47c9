package ptrace

import (
	"fmt"
	"sort"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// memory is the memory of a process or a core, from which lists, objects and stack maps are read.
type memory interface {
	machine.Memory
	// readUpTo reads until p is full or memory ends, and returns the number of bytes read. It returns an error only if no byte was read.
	readUpTo(p []byte, addr machine.Addr) (int, error)
	// readMany reads many small ranges, and sets OK in those that it could read.
	readMany(wants []system.Want) error
	// size returns an upper bound of the size of all memory. Callers check a size that they read from the memory against it before they allocate.
	size() uint64
}

// readChunk bounds the first allocation of readAll. readAll allocates more only after it has filled the first.
const readChunk = 1 << 20

// readAll reads size bytes. Its allocation is bounded by the amount of memory that can be read.
func readAll(mem machine.Memory, addr machine.Addr, size uint64) ([]byte, error) {
	b := make([]byte, min(size, readChunk))
	for at := uint64(0); ; {
		if err := mem.ReadMemory(b[at:], addr+machine.Addr(at)); err != nil {
			return nil, err
		}
		if at = uint64(len(b)); at == size {
			return b, nil
		}
		b = append(b, make([]byte, min(size-at, at))...)
	}
}

// NotCopied is the reason why memory of a resumed process cannot be read.
const NotCopied = "not copied while the process was stopped"

// copied is copied memory: ranges that do not overlap, sorted by address.
type copied struct {
	ranges []span
	why    string // the reason in the error for memory outside of the ranges; the error has the code [frame.MemoryNotCopied]
}

type span struct {
	addr machine.Addr
	data []byte
}

func (s span) end() machine.Addr { return s.addr + machine.Addr(len(s.data)) }

// newCopied sorts ranges and joins those that overlap or touch. It takes ownership of their bytes.
func newCopied(ranges []span, why string) *copied {
	sort.Slice(ranges, func(i, j int) bool { return ranges[i].addr < ranges[j].addr })
	var joined []span
	for _, s := range ranges {
		if len(s.data) == 0 {
			continue
		}
		if n := len(joined); n > 0 && s.addr <= joined[n-1].end() {
			last := &joined[n-1]
			if s.end() > last.end() {
				last.data = append(last.data, s.data[last.end()-s.addr:]...)
			}
			continue
		}
		joined = append(joined, s)
	}
	return &copied{joined, why}
}

// ReadMemory implements [machine.Memory].
func (c *copied) ReadMemory(p []byte, addr machine.Addr) error {
	b, _ := c.from(addr, len(p))
	if len(b) < len(p) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: c.why, Code: frame.MemoryNotCopied}
	}
	copy(p, b)
	return nil
}

// from returns up to size copied bytes at addr. If there are none, unknown is the number of bytes up to the next copied range.
func (c *copied) from(addr machine.Addr, size int) (b []byte, unknown int) {
	i := sort.Search(len(c.ranges), func(i int) bool { return c.ranges[i].end() > addr })
	switch {
	case i == len(c.ranges):
		return nil, size
	case c.ranges[i].addr > addr:
		return nil, int(min(uint64(size), uint64(c.ranges[i].addr-addr)))
	}
	b = c.ranges[i].data[addr-c.ranges[i].addr:]
	return b[:min(len(b), size)], 0
}

// moment is the memory of a process at the stop. It is read from the copies, and from files for memory that was not copied.
type moment struct {
	*copied
	files    fileMemory
	unread   []machine.Range // ranges that could not be read at the stop
	provided *provisions
}

// missing returns the error for a range of memory that was neither copied nor read from a file. other is the error of reading from files.
func (m moment) missing(addr machine.Addr, size int, other *machine.MemoryError) *machine.MemoryError {
	r := machine.Range{Start: addr, End: addr + machine.Addr(size)}
	if len(overlaps(m.unread, r)) > 0 && m.provided.has(addr, size) {
		return &machine.MemoryError{Why: awaited, Code: frame.MemoryPending}
	}
	return &machine.MemoryError{Why: other.Why, Code: other.Code}
}

// ReadMemory implements [machine.Memory].
func (m moment) ReadMemory(p []byte, addr machine.Addr) error {
	for n := 0; n < len(p); {
		b, unknown := m.from(addr+machine.Addr(n), len(p)-n)
		if unknown > 0 {
			b = p[n : n+unknown]
			if err := m.files.ReadMemory(b, addr+machine.Addr(n)); err != nil {
				missing := m.missing(addr+machine.Addr(n), unknown, err.(*machine.MemoryError))
				missing.Addr, missing.Len = addr, len(p)
				return missing
			}
		}
		n += copy(p[n:], b)
	}
	return nil
}

// fileMemory reads code from files. It does not read read-only data, because the dynamic linker relocates such data before it makes it read-only, and
// it does not read code that may differ from the file.
type fileMemory struct {
	places
	own []machine.Mapping // memory that may differ from the files, by address
}

// ReadMemory implements [machine.Memory].
func (f fileMemory) ReadMemory(p []byte, addr machine.Addr) error {
	failed := func(why string) error {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: NotCopied + why, Code: frame.MemoryNotCopied}
	}
	r := f.at(addr)
	switch {
	case r == nil:
		return failed("")
	case r.module.data == nil:
		return failed(", and " + r.Path + " cannot be read")
	case !r.Exec || uint64(r.End-addr) < uint64(len(p)):
		return failed(", and it is not code of " + r.Path)
	}
	if i := sort.Search(len(f.own), func(i int) bool { return f.own[i].End > addr }); i < len(f.own) && f.own[i].Start < addr+machine.Addr(len(p)) {
		if own := f.own[i]; own.Write || own.Share {
			return failed(", and " + r.Path + " is writable there")
		}
		return failed(", and its page of " + r.Path + " was written to")
	}
	if _, err := r.module.data.ReadAt(p, int64(r.Offset)+int64(addr-r.Start)); err != nil {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: fmt.Sprintf("%s: %v", r.Path, err)}
	}
	if !r.module.holds() {
		return failed(", and " + r.Path + " has changed since")
	}
	return nil
}

// layers reads from several memories, in order, until one succeeds.
type layers []machine.Memory

// ReadMemory implements [machine.Memory].
func (l layers) ReadMemory(p []byte, addr machine.Addr) error {
	var err error
	for _, m := range l {
		if err = m.ReadMemory(p, addr); err == nil {
			return nil
		}
	}
	return err
}
