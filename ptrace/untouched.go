package ptrace

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
)

// minUntouched is the minimum size of mappings that are checked, because reading a smaller one takes no longer than the check.
const minUntouched = 1 << 20

// Untouched returns the large parts of private writable memory that have no pages, in ascending order. They are zero, and reading them would take
// time and, in a process, allocate pages. The result is empty for a core, for a process whose lists cannot be read, and for memory whose pages
// userfaultfd provides.
func (t *Target) Untouched() (parts []machine.Range) {
	if t.Provider != FromProcess {
		return nil
	}
	maps, err := readMaps(t.via)
	if err != nil {
		return nil
	}
	pages, err := t.pagemap()
	if err != nil {
		return nil
	}
	defer pages.Close()
	for _, m := range maps {
		size := m.End - m.Start
		if !m.Read || !m.Write || !zeroFilled(m) || size < minUntouched || size > maxKept {
			continue
		}
		for _, part := range pages.without(m) {
			if part.End-part.Start >= minUntouched {
				parts = append(parts, part)
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	provided, err := provided(t.via)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(parts, func(r machine.Range) bool { return len(overlaps(provided, r)) > 0 })
}

// provided returns the mappings whose pages userfaultfd provides: those with missing faults or minor faults. Memory that is only write-protected can
// be read.
func provided(tid int) ([]machine.Range, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", tid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return flagged(f, "um", "ui")
}

// untouched returns the parts of ranges that are zero because the process has not touched them, in ascending order: private memory without a file and
// without pages. Reading such a part would allocate pages in the process. untouched reads the mappings again, because a file may have been mapped
// there since.
func (l *liveMemory) untouched(ranges []machine.Range) (parts []machine.Range) {
	maps, err := readMaps(l.tid)
	if err != nil {
		return nil
	}
	pages, err := openPagemap(l.tid)
	if err != nil {
		return nil
	}
	defer pages.Close()
	for _, in := range ranges {
		first := sort.Search(len(maps), func(i int) bool { return maps[i].End > in.Start })
		for _, m := range maps[first:] {
			if m.Start >= in.End {
				break
			}
			m.Start, m.End = max(m.Start, in.Start&^(elfcore.Page-1)), min(m.End, (in.End+elfcore.Page-1)&^(elfcore.Page-1))
			if m.Read && zeroFilled(m) {
				parts = append(parts, overlaps(pages.without(m), in)...)
			}
		}
	}
	provided := l.provided.ranges()
	if l.provided == nil || l.provided.err != nil { // pages that userfaultfd provides may not be zero
		return nil
	}
	return slices.DeleteFunc(parts, func(r machine.Range) bool {
		first := sort.Search(len(provided), func(i int) bool { return provided[i].End > r.Start })
		return first < len(provided) && provided[first].Start < r.End
	})
}

// overlaps returns the parts of ranges that are inside another range.
func overlaps(ranges []machine.Range, in machine.Range) (parts []machine.Range) {
	for _, r := range ranges {
		if r = (machine.Range{Start: max(r.Start, in.Start), End: min(r.End, in.End)}); r.Start < r.End {
			parts = append(parts, r)
		}
	}
	return parts
}

// provisions holds the mappings of a process whose pages userfaultfd or a served file system provides. They are read when first needed. If that
// fails, the list is empty.
type provisions struct {
	tid   int
	once  sync.Once
	known atomic.Bool
	list  []machine.Range
	err   error // error of reading them
}

// has reports whether userfaultfd or a served file system provides any page of a range.
func (p *provisions) has(addr machine.Addr, size int) bool {
	return len(overlaps(p.ranges(), machine.Range{Start: addr, End: addr + machine.Addr(size)})) > 0
}

func (p *provisions) ranges() []machine.Range {
	if p == nil {
		return nil
	}
	p.once.Do(func() {
		p.list, p.err = provided(p.tid)
		p.known.Store(true)
	})
	return p.list
}

// awaited is the reason why a page that userfaultfd provides, and that is not yet present, cannot be read.
const awaited = "not present: userfaultfd provides it on access"

// unawaited is the memory of a stopped target without pages that must first be provided, because the provider may be a stopped thread. A read of a
// complete page, as by an interpreter, succeeds only if the process itself may read the page.
type unawaited struct {
	machine.Memory
	of *Target
}

// ReadMemory implements [machine.Memory].
func (u unawaited) ReadMemory(p []byte, addr machine.Addr) error {
	if (len(p) >= elfcore.Page || u.of.provided.known.Load()) && u.of.awaits(addr, len(p)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: awaited, Code: frame.MemoryPending}
	}
	if err := u.Memory.ReadMemory(p, addr); err != nil || len(p) < elfcore.Page {
		return err
	}
	if l := u.of.process; l != nil && !l.heeds(addr, len(p)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
	}
	return nil
}

// awaits reports whether memory has, or may have, pages that are provided on access and not yet present. It uses the mappings that were last read.
func (t *Target) awaits(addr machine.Addr, size int) bool {
	parts := overlaps(t.provided.ranges(), machine.Range{Start: addr, End: addr + machine.Addr(size)})
	if len(parts) == 0 {
		return false
	}
	pages, err := t.pagemap()
	if err != nil {
		return true
	}
	defer pages.Close()
	return slices.ContainsFunc(parts, func(r machine.Range) bool { return !pages.all(r) })
}

// flagged returns the mappings in /proc/PID/smaps whose VmFlags contain one of the flags (Linux, "The /proc Filesystem").
func flagged(smaps io.Reader, flags ...string) (all []machine.Range, err error) {
	lines := bufio.NewScanner(smaps)
	var in machine.Mapping
	for lines.Scan() {
		has, found := strings.CutPrefix(lines.Text(), "VmFlags: ")
		if !found {
			if m, ok := system.ParseMapping(lines.Text()); ok {
				in = m
			}
			continue
		}
		if slices.ContainsFunc(strings.Fields(has), func(f string) bool { return slices.Contains(flags, f) }) {
			all = append(all, machine.Range{Start: in.Start, End: in.End})
		}
	}
	return all, lines.Err()
}

// zeroFilled reports whether untouched memory of a mapping is zero. It returns false for mappings of the kernel, such as [vvar], for which this is
// unknown.
func zeroFilled(m machine.Mapping) bool {
	return m.Inode == 0 && !m.Share && (m.Path == "" || m.Path == "[heap]" || strings.HasPrefix(m.Path, "[stack") || strings.HasPrefix(m.Path, "[anon:"))
}
