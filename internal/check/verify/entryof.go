package verify

import (
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
)

// maxEntryRecords bounds the records of a function that are used to find its module.
const maxEntryRecords = 64

// compiledAt chooses, of several definitions of a function, the one that the code at its start was compiled from. It returns nil unless all records
// with names choose the same definition.
func (v *verifier) compiledAt(start machine.Addr, name string, all []*ir.Func) (own *ir.Func) {
	view := v.watcher.View()
	c := view.Space().At(start)
	if c == nil || c.Records == nil {
		return nil
	}
	span := c.Records.Range(start, start+sites.MaxFunction)
	for n := range min(span.Len(), maxEntryRecords) {
		entry := span.Entry(n)
		if entry.Function.Addr != start {
			continue
		}
		found, err := view.Modules().OfRecord(c, sites.RecordEntry{Entry: entry, Record: entry.Record()}, name)
		if err != nil {
			return nil
		}
		for _, s := range found.Sites {
			if own != nil && s.Func != own || !slices.Contains(all, s.Func) {
				return nil
			}
			own = s.Func
		}
	}
	return own
}
