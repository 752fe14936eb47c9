package ptrace

import (
	"debug/elf"
	"io"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
)

// coreMapping is a mapping of the core's process.
type coreMapping struct {
	machine.Mapping
	segment *segment    // nil if the mapping is only in the list of files
	module  *coreModule // nil for memory without a file
}

// Mappings that the kernel adds to every process at a fixed address.
const (
	vsyscallPath = "[vsyscall]"
	vsyscall     = 0xffffffffff600000 // of x86-64: VSYSCALL_ADDR of asm/vsyscall.h
)

// lay creates mappings from the segments and from the list of files. The kernel writes a segment for each mapping. gdb writes no segment for a
// mapping whose contents it omits, so that such a mapping is only in the list of files. If a segment or a row of the list ends within the other, the
// mapping is split.
func (c *core) lay() {
	var cuts []machine.Addr
	for _, s := range c.segments {
		cuts = append(cuts, s.start, s.end)
	}
	for _, f := range c.files {
		cuts = append(cuts, f.start, f.end)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	segments, files := c.segments, c.files
	for i := 1; i < len(cuts); i++ {
		m := coreMapping{Mapping: machine.Mapping{Start: cuts[i-1], End: cuts[i]}}
		for len(segments) > 0 && segments[0].end <= m.Start {
			segments = segments[1:]
		}
		for len(files) > 0 && files[0].end <= m.Start {
			files = files[1:]
		}
		if len(segments) > 0 && segments[0].start <= m.Start {
			s := &segments[0]
			m.segment, m.Read, m.Write, m.Exec = s, s.flags&elf.PF_R != 0, s.flags&elf.PF_W != 0, s.flags&elf.PF_X != 0
		}
		switch {
		case len(files) > 0 && files[0].start <= m.Start:
			m.Path, m.Offset = files[0].path, files[0].off+uint64(m.Start-files[0].start)
		case m.segment == nil:
			continue
		case m.Start == c.vdso && c.vdso != 0:
			m.Path = vdsoPath
		case m.Start == vsyscall && c.target.arch == machine.AMD64:
			m.Path = vsyscallPath
		}
		c.maps = append(c.maps, m)
	}
}

// keepsPrivate reports whether the core contains private memory, or lists the private memory that it omits. A process can exclude private memory from
// its cores (coredump_filter of core(5)). In that case its changes to private copies of files are neither in the core nor in the files.
func (c *core) keepsPrivate() bool {
	return c.whole || c.kept != "" || slices.ContainsFunc(c.maps, func(m coreMapping) bool {
		return m.segment != nil && m.segment.held > 0 && m.Write && m.Path == ""
	})
}

// coreMemory is the memory of a core: regions that do not overlap, in order of address.
type coreMemory struct {
	regions []region
	limit   uint64
	absent  string // the reason why memory outside of all regions is unavailable
}

// region is a range of memory whose bytes are all read from one source, or are all unavailable.
type region struct {
	start, end machine.Addr
	from       io.ReaderAt // nil if the bytes are unavailable
	off        uint64
	why        string       // the reason why the bytes are unavailable, if from is nil
	left       *coreMapping // the mapping, if the core omits this part of the mapping
	written    bool         // left is set, and the memory differs from the file
	redacted   bool         // from is nil because the memory was omitted at the user's request
}

const notHeld = "not in the core"

// held returns the memory that the core itself contains. If a segment has fewer bytes in the file than in memory, the rest was omitted. Unlike in a
// program, the omitted bytes need not be zero.
func (c *core) held() *coreMemory {
	mem := &coreMemory{limit: c.limit(), absent: c.absent}
	for i := range c.maps {
		m := &c.maps[i]
		from := m.Start
		// until adds the region that starts at from and ends at end.
		until := func(end machine.Addr, r region) {
			if end = min(end, m.End); end > from {
				r.start, r.end = from, end
				mem.regions = append(mem.regions, r)
				from = end
			}
		}
		if s := m.segment; s != nil {
			there := uint64(0)
			if c.size > s.off {
				there = min(s.held, c.size-s.off)
			}
			until(s.start+machine.Addr(there), region{from: c.file, off: s.off + uint64(m.Start-s.start)})
			until(s.start+machine.Addr(s.held), region{why: "the core is cut short before it"})
		}
		until(m.End, region{why: notHeld, left: m})
	}
	mem.redact(c.redacted)
	return mem
}

// limit returns an upper bound of the memory's size: the size of the core file or, for a process, the total size of its mappings.
func (c *core) limit() uint64 {
	if !c.whole {
		return c.size
	}
	size := uint64(0)
	for _, m := range c.maps {
		size += uint64(m.End - m.Start)
	}
	return size
}

// redact marks the memory in ranges, which must be sorted, as redacted. Such memory is read neither from the core nor from a file.
func (c *coreMemory) redact(ranges []addrRange) {
	if len(ranges) == 0 {
		return
	}
	var out []region
	part := func(r region, p addrRange, redacted bool) {
		if p.start >= p.end {
			return
		}
		r.off += uint64(p.start - r.start)
		r.start, r.end = p.start, p.end
		if redacted {
			r = region{start: p.start, end: p.end, redacted: true}
		}
		out = append(out, r)
	}
	for _, r := range c.regions {
		from := r.start
		for _, left := range outside(addrRange{r.start, r.end}, ranges) {
			part(r, addrRange{from, left.start}, true)
			part(r, left, false)
			from = left.end
		}
		part(r, addrRange{from, r.end}, true)
	}
	c.regions = out
}

// holes returns the absent ranges that begin or end within a page, such as an environment block that was omitted from a stack.
func (c *coreMemory) holes() (out []addrRange) {
	var absent []addrRange
	for _, r := range c.regions {
		if r.from == nil {
			absent = append(absent, addrRange{r.start, r.end})
		}
	}
	for _, r := range joinedRanges(absent) {
		if (r.start|r.end)&(elfcore.Page-1) != 0 {
			out = append(out, r)
		}
	}
	return out
}

// withFiles adds the contents of files for mappings that the core omits.
func (c *core) withFiles(held *coreMemory) *coreMemory {
	private := c.keepsPrivate()
	if !private {
		c.target.Notes = append(c.target.Notes, "the core contains no private memory: coredump_filter (core(5)) of the process excluded it")
	}
	more := ""
	if c.kept != "" && c.kept != All {
		more = "; the core was recorded with --memory " + string(c.kept) + ", which omits it"
	}
	mem := &coreMemory{limit: held.limit, absent: held.absent}
	for _, r := range c.apart(held.regions) {
		m := r.left
		switch {
		case m == nil || m.module == nil && m.Path != "":
		case m.module == nil && m.segment != nil && m.segment.flags&(elf.PF_R|elf.PF_W|elf.PF_X) == 0:
			r.why = notHeld + ": the process had no access to it (PROT_NONE of mprotect(2))"
		case m.module == nil && more != "":
			r.why = notHeld + more
		case m.module == nil:
			// The kernel omits memory without pages, which is zero. It also omits memory that the process excluded (MADV_DONTDUMP of madvise(2)),
			// which is not. The core does not distinguish the two.
			r.why = notHeld + ": it was never written, or the process excluded it from cores"
		case r.written:
			r.why = notHeld + ": the process changed this memory of " + m.Path + more
		case m.module.file == nil:
			m.module.Lost = m.module.Lost || m.module.code() && !m.module.other
			r.why = notHeld + ", and " + m.Path + " cannot be used: " + m.module.Why + "; give its location with --sysroot or --exe"
		case !private:
			r.why = notHeld + ", and neither are changes to the memory of " + m.Path
		case m.Write:
			// The mapping may be shared, so the file may have changed since.
			r.why = notHeld + ": writable memory of " + m.Path + more
		default:
			off := m.Offset + uint64(r.start-m.Start)
			if off < m.module.size {
				file := r
				file.end = min(r.end, r.start+machine.Addr(m.module.size-off))
				file.from, file.off = m.module.file, off
				mem.regions = append(mem.regions, file)
				r.start = file.end
			}
			r.why = "past the end of " + m.Path
		}
		if r.start < r.end {
			mem.regions = append(mem.regions, r)
		}
	}
	return mem
}

// apart splits regions at the boundaries of the ranges that, according to the core, differ from their files.
func (c *core) apart(regions []region) []region {
	var out []region
	written := c.written
	for _, r := range regions {
		for len(written) > 0 && written[0].end <= r.start {
			written = written[1:]
		}
		for _, w := range written {
			if r.left == nil || w.start >= r.end {
				break
			}
			if w.start > r.start {
				before := r
				before.end = w.start
				out, r.start = append(out, before), w.start
			}
			over := r
			over.written, over.end = true, min(r.end, w.end)
			out, r.start = append(out, over), over.end
		}
		if r.start < r.end {
			out = append(out, r)
		}
	}
	return out
}

// read reads until p is full or memory ends. It returns the number of bytes read and, if p is not full, the error.
func (c *coreMemory) read(p []byte, addr machine.Addr) (n int, missing *machine.MemoryError) {
	fail := func(why string) (int, *machine.MemoryError) {
		return n, &machine.MemoryError{Addr: addr, Len: len(p), Why: why}
	}
	for n < len(p) {
		at := addr + machine.Addr(n)
		if at < addr {
			return fail("past the end of the address space")
		}
		i := sort.Search(len(c.regions), func(i int) bool { return c.regions[i].end > at })
		if i == len(c.regions) || c.regions[i].start > at {
			return fail(c.absent)
		}
		r := &c.regions[i]
		switch {
		case r.redacted:
			return n, machine.RedactedMemory(addr, len(p))
		case r.from == nil:
			return fail(r.why)
		}
		size := int(min(uint64(len(p)-n), uint64(r.end-at)))
		got, err := r.from.ReadAt(p[n:n+size], int64(r.off)+int64(at-r.start))
		n += got
		if got < size {
			return fail("cannot be read: " + err.Error())
		}
	}
	return n, nil
}

// ReadMemory implements [machine.Memory].
func (c *coreMemory) ReadMemory(p []byte, addr machine.Addr) error {
	if _, missing := c.read(p, addr); missing != nil {
		return missing
	}
	return nil
}

func (c *coreMemory) readUpTo(p []byte, addr machine.Addr) (int, error) {
	n, missing := c.read(p, addr)
	if n == 0 && missing != nil {
		return 0, missing
	}
	return n, nil
}

func (c *coreMemory) readMany(wants []system.Want) error {
	for i := range wants {
		w := &wants[i]
		w.OK = c.ReadMemory(w.Buf, w.Addr) == nil
	}
	return nil
}

func (c *coreMemory) size() uint64 { return c.limit }

// fileView is the first part of a file as it is in memory.
type fileView struct {
	mem  *coreMemory
	maps []machine.Mapping
}

// ReadAt implements [io.ReaderAt].
func (v fileView) ReadAt(p []byte, off int64) (int, error) {
	best, err := 0, io.ErrUnexpectedEOF
	for _, m := range v.maps[:min(len(v.maps), mappingsToTry)] {
		at := uint64(off) - m.Offset
		if uint64(off) < m.Offset || at >= uint64(m.End-m.Start) {
			continue
		}
		end := min(uint64(len(p)), uint64(m.End-m.Start)-at)
		if n, _ := v.mem.read(p[:end], m.Start+machine.Addr(at)); n == len(p) {
			return n, nil
		} else if n > best {
			best = n
		}
	}
	return best, err
}
