//go:build linux

package tracer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"example.com/reframe/ptrace/system"
)

// sharing finds code in shared mappings. A write to such code reaches every process that maps the same memory, but only one of these is traced, and
// an int3 would end the others. A sharing is valid as long as the mappings of code do not change.
type sharing struct {
	pages *os.File // pagemap; nil if it cannot be read
	maps  *os.File // nil if it cannot be read
	asked map[uint64]string
	read  bool
	known bool // list is complete
	list  []sharedMapping
}

type sharedMapping struct {
	from, to uint64
	name     string
}

// maxAsked bounds the number of pages in asked.
const maxAsked = 1 << 12

func (s *server) sharing() *sharing {
	x := &sharing{asked: map[uint64]string{}}
	for tid := range s.threads { // skip threads that have ended, possibly the first one: memory cannot be read through them
		if system.Ended(s.pid, tid) {
			continue
		}
		proc := fmt.Sprintf("/proc/%d/task/%d/", s.pid, tid)
		x.pages, _ = os.Open(proc + "pagemap") // if this fails, the list of mappings is read
		x.maps, _ = os.Open(proc + "maps")     // if this fails, all memory counts as shared
		break
	}
	return x
}

func (x *sharing) close() {
	for _, f := range []*os.File{x.pages, x.maps} {
		if f != nil {
			f.Close()
		}
	}
}

// of returns the shared mapping that contains an address, as text for a message, or "".
func (x *sharing) of(addr uint64) string {
	page := uint64(os.Getpagesize())
	number := addr / page
	name, known := x.asked[number]
	if known {
		return name
	}
	if !x.anonymous(number) {
		name = x.mapping(addr)
	}
	if len(x.asked) == maxAsked {
		clear(x.asked)
	}
	x.asked[number] = name
	return name
}

// anonymous reports whether a page is certainly private to the process. A page of a shared mapping is never anonymous, because pages of
// MAP_SHARED|MAP_ANONYMOUS belong to a file in the kernel (Documentation/admin-guide/mm/pagemap.rst of Linux, bit 61). The time to check a page does
// not depend on the number of mappings.
func (x *sharing) anonymous(number uint64) bool {
	const present, ofFile, entrySize = 1 << 63, 1 << 61, 8
	var entry [entrySize]byte
	if x.pages == nil {
		return false
	}
	n, err := x.pages.ReadAt(entry[:], int64(number*entrySize))
	return err == nil && n == entrySize && binary.NativeEndian.Uint64(entry[:])&(present|ofFile) == present
}

// mapping searches the list of mappings (proc_pid_maps(5)).
func (x *sharing) mapping(addr uint64) string {
	if !x.read && x.maps != nil {
		lines := bufio.NewScanner(x.maps)
		for n := 0; n < maxMaps && lines.Scan(); n++ {
			x.known = true
			fields := strings.Fields(lines.Text())
			if len(fields) < 2 || !strings.Contains(fields[1], "s") {
				continue
			}
			m := sharedMapping{name: strings.Join(append([]string{fields[0]}, fields[min(5, len(fields)):]...), " ")}
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.from, &m.to); err == nil {
				x.list = append(x.list, m)
			}
		}
		x.known = x.known && lines.Err() == nil
	}
	x.read = true
	for _, m := range x.list {
		if addr >= m.from && addr < m.to {
			return m.name
		}
	}
	if !x.known {
		return "or unknown: the list of mappings cannot be read"
	}
	return ""
}

// errShared returns the error for a breakpoint in shared memory, which the tracer does not set.
func errShared(mapping string) error {
	why := "this machine has no debug register that stops a thread"
	if HardwareBreakpoints > 0 && DebugFires() {
		why = fmt.Sprintf("all %d debug registers are in use", HardwareBreakpoints)
	}
	return fmt.Errorf("the code is in shared memory (MAP_SHARED, %s): a breakpoint there would end other processes that run it, and %s; "+
		"read the process with reframe frames, which writes nothing, or start it with the code in private memory", mapping, why)
}

// sharedNow returns [sharing.of] for one address, after reading the mappings again.
func (s *server) sharedNow(addr uint64) string {
	x := s.sharing()
	defer x.close()
	return x.of(addr)
}

// write writes a breakpoint into the code, which must not be in shared memory. original is the code that it replaces.
func (s *server) write(addr uint64, original Code) error {
	s.ledger.set(addr, original)
	_, err := s.memory.write(Trap[:], addr)
	return err
}
