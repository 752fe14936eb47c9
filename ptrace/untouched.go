package ptrace

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"reframe/deopt/machine"
)

// Mappings of fewer bytes are as soon read as asked about.
const minUntouched = 1 << 20

// Untouched returns the large parts of private writable memory that have no pages, in ascending order: they are zero, and to read them would take time
// and, of a process, give them pages. There are none where nothing can be told: of a core, of a process whose lists cannot be read, and of memory
// whose pages somebody else provides when they are touched (userfaultfd).
func (t *Target) Untouched() (parts []machine.Range) {
	if t.Core != "" {
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
		// Asked for pages, and not for where there are none: what cannot be told, and parts that are too many, count as pages.
		for _, p := range partsWhere(pages, m, func(_ machine.Addr, entry uint64) bool { return isPage(entry) }) {
			if !p.keep && p.end-p.start >= minUntouched {
				parts = append(parts, machine.Range{Start: p.start, End: p.end})
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	provided, err := t.provided()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(parts, func(r machine.Range) bool {
		return slices.ContainsFunc(provided, func(p machine.Range) bool { return r.Start < p.End && p.Start < r.End })
	})
}

// provided are the mappings whose pages somebody provides: userfaultfd's, of missing, write-protected and minor faults.
func (t *Target) provided() ([]machine.Range, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", t.via))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return flagged(f, "um", "uw", "ui")
}

// flagged are the mappings of /proc/PID/smaps of which VmFlags has one of these (Linux, "The /proc Filesystem").
func flagged(smaps io.Reader, flags ...string) (all []machine.Range, err error) {
	lines := bufio.NewScanner(smaps)
	var in machine.Mapping
	for lines.Scan() {
		has, found := strings.CutPrefix(lines.Text(), "VmFlags: ")
		if !found {
			if m, ok := parseMapping(lines.Text()); ok {
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

// zeroFilled says whether memory that was not touched is zero. Of what the kernel maps for itself, such as [vvar], nothing can be told.
func zeroFilled(m machine.Mapping) bool {
	return m.Inode == 0 && !m.Share && (m.Path == "" || m.Path == "[heap]" || strings.HasPrefix(m.Path, "[stack") || strings.HasPrefix(m.Path, "[anon:"))
}
