package ptrace

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
)

// Redaction selects memory that a core omits: a range of addresses, or all mappings with a name.
type Redaction struct {
	Text  string        // the text that the user gave
	Range machine.Range // empty if Text is a name
}

// rangeLike matches text that is probably a range, with or without 0x, as in /proc/PID/maps.
var rangeLike = regexp.MustCompile(`^(?:0[xX]|[0-9]+$|[0-9a-fA-F]+[-+][0-9a-fA-FxX]+$)`)

// ParseRedaction parses START-END, START+SIZE, or the name of a mapping: a path, the last part of a path, or a name such as [heap]. Addresses begin
// with 0x; a size is decimal, or begins with 0x.
func ParseRedaction(text string) (Redaction, error) {
	if text == "" {
		return Redaction{}, errors.New("the range is empty: expected START-END, START+SIZE or the name of a mapping")
	}
	if !rangeLike.MatchString(text) {
		return Redaction{Text: text}, nil
	}
	at := strings.IndexAny(text, "-+")
	if at < 0 {
		return Redaction{}, fmt.Errorf("%s: expected START-END or START+SIZE, such as 0x1000+64", text)
	}
	start, err := parseAddress(text[:at])
	if err != nil {
		return Redaction{}, fmt.Errorf("%s: %w", text, err)
	}
	var end uint64
	if text[at] == '-' {
		if end, err = parseAddress(text[at+1:]); err != nil {
			return Redaction{}, fmt.Errorf("%s: %w", text, err)
		}
		if end < start {
			return Redaction{}, fmt.Errorf("%s: the end is before the start", text)
		}
	} else {
		digits, base := text[at+1:], 10
		if rest, hex := strings.CutPrefix(strings.ToLower(digits), "0x"); hex {
			digits, base = rest, 16
		}
		size, err := strconv.ParseUint(digits, base, 64)
		if err != nil {
			return Redaction{}, fmt.Errorf("%s: expected a size, got %q", text, text[at+1:])
		}
		if end = start + size; end < start {
			return Redaction{}, fmt.Errorf("%s: the range ends outside of the address space", text)
		}
	}
	if start == end {
		return Redaction{}, fmt.Errorf("%s: the range is empty", text)
	}
	return Redaction{text, machine.Range{Start: machine.Addr(start), End: machine.Addr(end)}}, nil
}

// parseAddress parses an address. It requires 0x, because 1000 can be decimal or, as in /proc/PID/maps, hexadecimal.
func parseAddress(text string) (uint64, error) {
	digits, found := strings.CutPrefix(strings.ToLower(text), "0x")
	v, err := strconv.ParseUint(digits, 16, 64)
	if !found || err != nil {
		return 0, fmt.Errorf("expected an address such as 0x1000, got %q", text)
	}
	return v, nil
}

// RedactionError reports a redaction that matches no memory of the target. No core is then written.
type RedactionError struct {
	Redaction
	Unmapped machine.Addr // for a range: the first unmapped address
	Near     string       // for a name: the most similar name of a mapping, or ""
	Nameless bool         // for a name: the target is a core, whose only names of mappings are paths
}

func (e *RedactionError) Error() string {
	s := fmt.Sprintf("cannot redact %s: ", e.Text)
	switch {
	case e.Range != machine.Range{}:
		return s + fmt.Sprintf("%v is not mapped", e.Unmapped)
	case e.Nameless:
		return s + "in a core only mappings of files have names; give an address range"
	case e.Near != "":
		return s + "no mapping has this name; did you mean " + e.Near + "?"
	}
	return s + "no mapping has this name"
}

// redacted returns the memory that redactions select, and the memory that a source core omits on request, sorted by address.
func (t recorder) redacted(list []Redaction, r *recorded) ([]addrRange, error) {
	maps := slices.Concat(t.maps, r.maps, r.after)
	out, err := redactedIn(maps, list, t.core != nil)
	if err == nil && t.core != nil {
		out = joinedRanges(append(out, t.core.redacted...))
	}
	return out, err
}

// redactsCommand reports whether the redacted memory contains arguments of the program. If it does, the note with the command line must also be
// cleared.
func (t recorder) redactsCommand(about *coreAbout, redacted []addrRange) bool {
	arguments := about.arguments
	if s := stringsAtStart(about.auxv, t.arch.Order, t.source); s != nil && arguments.start >= arguments.end {
		arguments = addrRange{s.random, s.path}
	}
	if arguments.start >= arguments.end {
		return len(redacted) > 0 // the address of the arguments is unknown, so the redacted memory may contain them
	}
	return arguments.meets(redacted)
}

// redactedIn returns the memory that redactions select in mappings, sorted by address and without overlaps. For a range, it also includes other
// mappings of the same part of a file.
func redactedIn(maps []machine.Mapping, list []Redaction, inCore bool) (out []addrRange, err error) {
	known := joinedRanges(rangesOf(maps, place))
	for _, r := range list {
		var found []addrRange
		if r.Range == (machine.Range{}) {
			for _, m := range maps {
				if r.names(m) {
					found = append(found, place(m))
				}
			}
			if len(found) == 0 {
				return nil, r.unknown(maps, inCore)
			}
		} else {
			whole := addrRange{r.Range.Start, r.Range.End}
			if gaps := outside(whole, known); len(gaps) > 0 {
				return nil, &RedactionError{Redaction: r, Unmapped: gaps[0].start}
			}
			found = append(aliases(whole, maps), whole)
		}
		out = append(out, found...)
	}
	return joinedRanges(out), nil
}

// names reports whether a redaction by name selects a mapping.
func (r Redaction) names(m machine.Mapping) bool {
	if m.Path == "" {
		return false
	}
	name := strings.TrimSuffix(m.Path, deletedSuffix)
	return r.Text == m.Path || r.Text == name || r.Text == path.Base(name)
}

// unknown returns the error for a name that no mapping has.
func (r Redaction) unknown(maps []machine.Mapping, inCore bool) error {
	var paths []string
	for _, m := range maps {
		if m.Path != "" && !slices.Contains(paths, m.Path) && len(paths) < maxNear {
			paths = append(paths, m.Path)
		}
	}
	e := &RedactionError{Redaction: r, Nameless: inCore && strings.HasPrefix(r.Text, "[")}
	if paths = names.ByDistance(r.Text, paths); len(paths) > 0 && names.Distance(r.Text, paths[0]) <= len(r.Text)/2 {
		e.Near = paths[0]
	}
	return e
}

// maxNear bounds the number of mappings whose names are compared with a mistyped name.
const maxNear = 1 << 10

// aliases returns all mappings of the parts of files that are mapped in a range. A file is identified by its path and, for a process, by its inode.
// Several parts of a file count as one part that includes the gaps between them, so that the time is linear.
func aliases(r addrRange, maps []machine.Mapping) (out []addrRange) {
	type file struct {
		path  string
		inode uint64
	}
	type part struct{ from, to uint64 } // offsets in a file
	parts := map[file]part{}
	for _, m := range maps {
		start, end := max(m.Start, r.start), min(m.End, r.end)
		if start >= end || !ofFile(m) {
			continue
		}
		p := part{m.Offset + uint64(start-m.Start), m.Offset + uint64(end-m.Start)}
		if q, ok := parts[file{m.Path, m.Inode}]; ok {
			p = part{min(p.from, q.from), max(p.to, q.to)}
		}
		parts[file{m.Path, m.Inode}] = p
	}
	for _, m := range maps {
		p := parts[file{m.Path, m.Inode}]
		from, to := max(p.from, m.Offset), min(p.to, m.Offset+uint64(m.End-m.Start))
		if from < to {
			out = append(out, addrRange{m.Start + machine.Addr(from-m.Offset), m.Start + machine.Addr(to-m.Offset)})
		}
	}
	return out
}

// joinedRanges sorts ranges by address, and joins those that overlap or touch.
func joinedRanges(list []addrRange) (out []addrRange) {
	slices.SortFunc(list, func(a, b addrRange) int { return cmp.Compare(a.start, b.start) })
	for _, r := range list {
		if n := len(out); n > 0 && r.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, r.end)
			continue
		}
		out = append(out, r)
	}
	return out
}

// blanked reads the memory of a core, with zeros for its holes, so that the rest of a page can be copied. The caller must remove the holes from the
// copies.
type blanked struct {
	machine.Memory
	ranges []addrRange // in order of address
}

// ReadMemory implements [machine.Memory].
func (b blanked) ReadMemory(p []byte, addr machine.Addr) error {
	whole := addrRange{addr, addr + machine.Addr(len(p))}
	known := outside(whole, b.ranges)
	if len(known) == 0 || known[0] == whole {
		return b.Memory.ReadMemory(p, addr) // returns an error if no memory exists there
	}
	clear(p)
	for _, left := range known {
		if err := b.Memory.ReadMemory(p[left.start-addr:left.end-addr], left.start); err != nil {
			return err
		}
	}
	return nil
}

// meets reports whether a range overlaps one of others, which must be sorted.
func (r addrRange) meets(others []addrRange) bool {
	left := outside(r, others)
	return len(left) != 1 || left[0] != r
}

// cut splits the parts of a mapping at the given ranges, which must be sorted, and marks what is inside of the ranges as omitted.
func cut(parts []keptPart, ranges []addrRange) (out []keptPart) {
	for _, p := range parts {
		if !p.keep || !p.place().meets(ranges) {
			out = append(out, p)
			continue
		}
		from := p.start
		for _, left := range outside(p.place(), ranges) {
			if from < left.start {
				out = append(out, keptPart{from, left.start, false})
			}
			out = append(out, keptPart{left.start, left.end, true})
			from = left.end
		}
		if from < p.end {
			out = append(out, keptPart{from, p.end, false})
		}
	}
	return out
}
