package interp

import (
	"iter"
	"slices"

	"example.com/reframe/internal/machine"
)

// Touched is a page of the target to which the runs of an Interp stored. Its slices are valid until the next run.
type Touched struct {
	Addr machine.Addr // address of the first byte
	Data []byte       // PageSize bytes
	// Undefined has a bit for each bit of Data, set if that bit is unknown. A bit is unknown if the program stored an undefined bit there, or if the
	// target does not have the byte.
	Undefined []byte
	// Stored has a bit for each byte of Data, lowest byte first, that was stored to, even if the store did not change it.
	Stored []byte // PageSize / 8 bytes
}

// PageSize is the size in bytes of a [Touched], whose address is a multiple of it.
const PageSize = pageSize

// Touched yields the pages that were stored to, in ascending order of address.
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

// Made reports whether v is an address that the Interp allocated. Native code has the corresponding object at another address, so a pointer to the
// object never equals the native pointer.
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

// Unknown reports whether v is the Interp's address of a global whose value is unknown. Native code has that global at another address.
func (in *Interp) Unknown(v uint64) bool {
	return machine.Addr(v) >= in.view.ranges.unknown && machine.Addr(v) < in.unknown.next
}
