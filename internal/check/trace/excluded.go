package trace

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/progspace"
)

// These bound the ids of excluded records that are kept, and the records of one object file that are examined.
const (
	maxExcludedIDs = 8
	maxExcluded    = 1 << 14
)

// excluded describes the records that a trace has seen and that its filter excluded.
type excluded struct {
	records  int
	selected bool           // some record was selected
	ids      []uint64       // ids of the first excluded records, without duplicates
	more     bool           // ids is incomplete
	named    bool           // a selected function has records
	near     *names.Nearest // functions with records, by similarity to the selected name
}

// addExcluded adds the records that a survey of an object file has excluded.
func (l *loaded) addExcluded(s *survey, c *progspace.Objfile) {
	p := &l.excluded
	p.records += s.known
	p.selected = p.selected || len(s.points) > 0
	if p.selected || c.Records == nil {
		return
	}
	if f := l.filters[0].Function; f != nil && p.near == nil {
		p.near = names.NewNearest(f.Text)
	}
	last := machine.Addr(0)
	all := c.Records.Range(0, math.MaxUint64)
	for n := range min(all.Len(), maxExcluded) {
		e := all.Entry(n)
		if id := uint64(e.Record().ID); !slices.Contains(p.ids, id) {
			if len(p.ids) == maxExcludedIDs {
				p.more = true
			} else {
				p.ids = append(p.ids, id)
			}
		}
		if at := e.Function.Addr; p.near != nil && at != last {
			last = at
			for _, name := range ownersOf(c, at) {
				p.named = p.named || l.filters[0].wantsFunction(name)
				p.near.Add(name)
			}
		}
	}
}

// reason returns the reason why the filter selected no record, or "".
func (p *excluded) reason(f *ExitFilter) string {
	if p.selected || p.records == 0 {
		return ""
	}
	text := fmt.Sprintf("the process had %s, and none is selected", sites.Plural(p.records, "record"))
	if len(f.Records) > 0 {
		var ids []string
		for _, id := range p.ids {
			ids = append(ids, fmt.Sprint(id))
		}
		if p.more {
			ids = append(ids, "...")
		}
		text += "; their ids are " + strings.Join(ids, ", ")
	}
	if f.Function != nil && !p.named {
		text += fmt.Sprintf("; no function %s has records%s", f.Function.Text, p.near)
	}
	return text
}
