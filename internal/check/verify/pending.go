package verify

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
)

// These bound the exits that are pending at the same time, until their activations return. For each exit the interpreter runs to the return, and one
// activation may pass as many exits as a loop has iterations.
const (
	maxPending  = 16  // exits of all records, before maxOfRecord applies
	maxOfRecord = 4   // exits of each record, once maxPending is reached
	maxInAll    = 256 // exits of all records together
	maxEntries  = 16  // runs from entries
)

// These are the reasons by which the summary counts skipped exits.
const (
	skippedByFlags = "--skip or --every leaves them out"
	skippedByLimit = "the limit was reached"
)

// skipReason returns the reason why a further exit at an address is not verified while others are pending, or "".
func (v *verifier) skipReason(at machine.Addr) string {
	all, atPlace := v.exitsPending(at)
	switch {
	case all >= maxInAll:
		return fmt.Sprintf("%d exits were pending", maxInAll)
	case all >= maxPending && atPlace >= maxOfRecord:
		return fmt.Sprintf("%d exits were pending, and %d of the same record among them", maxPending, maxOfRecord)
	}
	return ""
}

// placesWithoutStop returns the addresses at which exits need no stop, because none of them would be verified.
func (v *verifier) placesWithoutStop() (list []machine.Addr) {
	for _, p := range v.pending {
		if p.entry != nil {
			continue
		}
		if at := p.out.Exit.Point.Addr; !slices.Contains(list, at) && v.skipReason(at) != "" && !v.watcher.Decides(at) && !slices.ContainsFunc(v.watcher.At(at), v.isEntry) {
			list = append(list, at)
		}
	}
	return list
}

// SkippedRecord is a record without a verified exit, because other exits were pending each time.
type SkippedRecord struct {
	Function string `json:"function,omitempty"`
	ID       uint64 `json:"id"`
	Exits    uint64 `json:"exits"`
}

// skippedRecords counts for each record the verified exits, and those that were skipped because others were pending.
type skippedRecords map[recordKey]*struct{ verified, skipped uint64 }

type recordKey struct {
	function string
	id       uint64
}

// maxRecords bounds the records that are counted.
const maxRecords = 1 << 16

func (s skippedRecords) of(p *trace.Tracepoint) *struct{ verified, skipped uint64 } {
	key := recordKey{p.Function, p.Record}
	if s[key] == nil {
		if len(s) == maxRecords {
			return &struct{ verified, skipped uint64 }{}
		}
		s[key] = &struct{ verified, skipped uint64 }{}
	}
	return s[key]
}

// never lists the records of which exits were skipped and none was verified.
func (s skippedRecords) never() (list []SkippedRecord) {
	for key, n := range s {
		if n.verified == 0 && n.skipped > 0 {
			list = append(list, SkippedRecord{key.function, key.id, n.skipped})
		}
	}
	slices.SortFunc(list, func(a, b SkippedRecord) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// skip counts exits at a place that are not verified, by reason.
func (v *verifier) skip(p *trace.Tracepoint, n uint64, why string) {
	if n == 0 {
		return
	}
	v.summary.Skipped += n
	v.summary.SkippedWhy[why] += n
	if why != skippedByFlags && why != skippedByLimit && why != errTimeUp.Error() {
		v.records.of(p).skipped += n
	}
}
