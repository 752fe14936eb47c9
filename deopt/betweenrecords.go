package deopt

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
)

// besides returns the records at the frame's address except m.
func (f *Frame) besides(m *Match) (list []*Match) {
	for _, other := range append([]*Match{f.match}, f.others...) {
		if other != nil && other != m {
			list = append(list, other)
		}
	}
	return list
}

// refuseBetweenRecords makes an SSA value unavailable if another record at the same address has another value for it. Both records describe the same
// moment, so one of them is wrong, and nothing shows which.
func (f *Frame) refuseBetweenRecords() {
	if !f.match.inPlace() || len(f.values) == 0 {
		return
	}
	for _, m := range f.others[:min(len(f.others), maxAlso)] {
		if !m.inPlace() {
			continue
		}
		other := f.bare()
		other.match, other.others = m, nil
		_ = other.fill(nil) // only a layout can make fill fail
		f.refuseWhereDiffering(other)
	}
}

// inPlace reports whether the locations of the record certainly hold its values. In a frame after a site they may not: it may have jumped to that
// address without passing the site.
func (m *Match) inPlace() bool { return m.Moment == frame.Before || m.Moment == frame.InCall }

// refuseWhereDiffering makes each value unavailable for which other, the frame with another record at the address, has different bits.
func (f *Frame) refuseWhereDiffering(other *Frame) {
	theirs := map[ir.Value]*frame.Slot{}
	for _, b := range other.values {
		theirs[b.value] = &other.Slots[b.slot]
	}
	for _, b := range f.values {
		own, their := &f.Slots[b.slot], theirs[b.value]
		if their == nil || !own.Read() || !their.Read() || sameValue(own, their) {
			continue
		}
		own.Clear(frame.Missing, frame.Because(frame.OtherRecord, other.Record.ID, their.Hex, their.Location))
	}
}
