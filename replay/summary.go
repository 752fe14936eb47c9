package replay

import (
	"cmp"
	"slices"
	"time"
)

// SummarySchema names the JSON of a [Summary].
const SummarySchema = "reframe.replay.summary/v1"

// Summary counts the results of a run.
type Summary struct {
	Items      int `json:"items"` // all items
	OK         int `json:"ok"`
	Skipped    int `json:"skipped"`
	Partial    int `json:"partial"`
	Failed     int `json:"failed"`
	PassedOver int `json:"passed_over"` // files that are not cores
	NotRun     int `json:"not_run"`     // items that did not run because the run was interrupted
	Kept       int `json:"kept"`        // items whose result was in the journal
	// Exits are the sites at which cores were recorded, those with the most cores first.
	Exits []ExitCount `json:"exits,omitempty"`
	// MoreExits counts the cores at sites that Exits omits, because there were too many.
	MoreExits int     `json:"more_exits,omitempty"`
	Slowest   []Slow  `json:"slowest,omitempty"` // the slowest items of this run, slowest first
	Seconds   float64 `json:"seconds"`

	cores map[Site]int
}

// Site is a recorded place in the code.
type Site struct {
	Function  string `json:"function,omitempty"`
	Demangled string `json:"demangled,omitempty"` // empty if it equals Function
	Record    uint64 `json:"record"`
	Site      string `json:"site"` // as in [Exit]
}

// ExitCount is a site with the number of cores that have a frame there.
type ExitCount struct {
	Site
	Cores int `json:"cores"`
}

// Slow is a slow item with its time.
type Slow struct {
	Path string  `json:"path"`
	MS   float64 `json:"ms"`
}

// Bounds of the lists in a summary.
const (
	maxSites   = 10000
	maxSlowest = 5
)

func newSummary(items []Item) *Summary {
	return &Summary{Items: len(items), NotRun: len(items), cores: map[Site]int{}}
}

// add counts a result.
func (s *Summary) add(r *Result, kept bool) {
	s.NotRun--
	switch r.Outcome {
	case OK:
		s.OK++
	case Skipped:
		s.Skipped++
	case Partial:
		s.Partial++
	case PassedOver:
		s.PassedOver++
		return
	default:
		s.Failed++
	}
	if kept {
		s.Kept++
	} else {
		s.slow(Slow{r.Path, r.MS})
	}
	if r.Found == nil {
		return
	}
	seen := map[Site]bool{}
	for _, x := range r.Found.Exits {
		site := Site{x.Function, x.Demangled, x.Record, x.Site}
		if seen[site] {
			continue
		}
		seen[site] = true
		if s.cores[site] == 0 && len(s.cores) == maxSites {
			s.MoreExits++
			continue
		}
		s.cores[site]++
	}
}

// slow stores an item if it is among the slowest.
func (s *Summary) slow(x Slow) {
	s.Slowest = append(s.Slowest, x)
	slices.SortStableFunc(s.Slowest, func(a, b Slow) int { return cmp.Compare(b.MS, a.MS) })
	s.Slowest = s.Slowest[:min(len(s.Slowest), maxSlowest)]
}

// finish sorts the counts.
func (s *Summary) finish(took time.Duration) {
	for site, n := range s.cores {
		s.Exits = append(s.Exits, ExitCount{site, n})
	}
	slices.SortFunc(s.Exits, func(a, b ExitCount) int {
		return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Record, b.Record), cmp.Compare(a.Site.Site, b.Site.Site))
	})
	s.Seconds = took.Seconds()
}
