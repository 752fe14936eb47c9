package interp

import (
	"iter"
	"slices"

	"example.com/reframe/internal/machine"
)

// Touched is a page of the target's addresses that the runs of an Interp stored to, as they left it: the bytes that they stored, and else those of
// the target. Its slices are valid until the next run.
type Touched struct {
	Addr machine.Addr // of the first byte
	Data []byte       // [PageSize]
	// Undefined has a bit for each of Data that is not known: it was stored so, or, where all of
	// a byte are set, the target may not have the byte at all.
	Undefined []byte
	// Stored has a bit for each byte of Data, the lowest of a byte first, that was stored to: also where the same was there before.
	Stored []byte // [PageSize / 8]
}

// PageSize is the number of bytes of a [Touched]; its address is a multiple of it.
const PageSize = pageSize

// Touched yields the pages that were stored to, in ascending order.
func (in *Interp) Touched() iter.Seq[Touched] {
	return func(yield func(Touched) bool) {
		var stored []uint64
		for number, p := range in.view.pages {
			if p.kind == targetPage && p.stored != nil {
				stored = append(stored, number)
			}
		}
		slices.Sort(stored)
		for _, number := range stored {
			p := in.view.pages[number]
			if !yield(Touched{machine.Addr(number << pageBits), p.data[:], p.shadow[:], p.stored[:]}) {
				return
			}
		}
	}
}

// Made reports whether v is an address that the Interp has given to something of its own: the
// native code has what lies there elsewhere, so that a pointer to it never is what the native
// pointer is.
func (in *Interp) Made(v uint64) bool {
	own := in.view.ranges
	for _, r := range [...]machine.Range{
		{Start: own.heap, End: in.heap.next},
		{Start: own.stack, End: in.stack.top},
		{Start: own.globals, End: in.names.globals.next},
		{Start: own.fixed, End: in.names.fixed.next},
		{Start: own.unknown, End: in.unknown.next},
		{Start: own.text + 1, End: in.names.text + 1},
	} {
		if r.Contains(machine.Addr(v)) {
			return true
		}
	}
	return false
}

// Unknown reports whether v is an address of a global whose value cannot be known: native code has one there.
func (in *Interp) Unknown(v uint64) bool {
	return machine.Addr(v) >= in.view.ranges.unknown && machine.Addr(v) < in.unknown.next
}
