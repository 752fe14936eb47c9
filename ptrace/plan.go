package ptrace

import (
	"cmp"
	"slices"

	"example.com/reframe/internal/machine"
)

// Plan is the memory of a target whose process was resumed. It also reads memory that was not copied during the stop. It reads such memory from the
// running process, to determine what the next stop must copy ([Options].Also). Data computed from such reads is not of the moment of the stop, and
// must be discarded.
type Plan struct {
	target *Target
	more   []machine.Range
	size   uint64
}

// Bounds of the memory that a plan adds to the next stop.
const (
	planRanges = 1 << 12
	planBytes  = 1 << 20
	planBlock  = 64 // bytes in a block of memory that is added; a block does not cross a page boundary
)

// Plan returns a plan for a target.
func (t *Target) Plan() *Plan { return &Plan{target: t} }

// ReadMemory implements [machine.Memory].
func (p *Plan) ReadMemory(buf []byte, addr machine.Addr) error {
	err := p.target.ReadMemory(buf, addr)
	if err == nil || p.target.held != nil || p.target.source == nil || len(p.more) >= planRanges || p.size > planBytes {
		return err
	}
	if now := p.target.source.ReadMemory(buf, addr); now != nil {
		return now
	}
	r := machine.Range{Start: addr &^ (planBlock - 1), End: (addr + machine.Addr(len(buf)) + planBlock - 1) &^ (planBlock - 1)}
	p.more, p.size = append(p.more, r), p.size+uint64(r.End-r.Start)
	return nil
}

// Missed reports whether the plan has read memory that was not copied.
func (p *Plan) Missed() bool { return len(p.more) > 0 }

// Join adds the memory that the plan missed to a list for [Options].Also. The result is sorted and has no overlaps.
func (p *Plan) Join(also []machine.Range) (list []machine.Range) {
	all := slices.Concat(also, p.more)
	slices.SortFunc(all, func(a, b machine.Range) int { return cmp.Compare(a.Start, b.Start) })
	for _, r := range all {
		if n := len(list); n > 0 && r.Start <= list[n-1].End {
			list[n-1].End = max(list[n-1].End, r.End)
			continue
		}
		list = append(list, r)
	}
	return list
}
