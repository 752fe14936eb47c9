package truth_test

import (
	"debug/elf"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/test/livetest"
)

// maxStops returns the number of places at which each program is stopped.
func maxStops() int {
	if all {
		return 20
	}
	return 4
}

// maxHitsBefore bounds the number of breakpoints that a program reaches while its places are counted.
const maxHitsBefore = 3000

// stops stops the program at its sites, in one run for each, and compares the frames of the resulting core. The innermost function is then at a
// stackmap, at the start of a patchpoint, at the call of a statepoint, or after that call. QEMU implements the breakpoints, so the code is unchanged.
func (c *comparer) stops(t testing.TB, x *livetest.Cross, b *built) error {
	t.Helper()
	places, err := c.places(b.program)
	if err != nil {
		return err
	}
	addrs := slices.Sorted(maps.Keys(places))
	hits := map[uint64][]int{} // for each address, the number of stops before each time the program reached it
	s := x.Stub(t, b.program)
	s.Break(addrs...)
	for n := range maxHitsBefore {
		pc, stopped := s.Continue()
		if !stopped {
			break
		}
		hits[pc] = append(hits[pc], n)
	}
	s.Close()
	r := rand.New(rand.NewSource(c.Seed))
	reached := slices.Sorted(maps.Keys(hits))
	r.Shuffle(len(reached), func(a, b int) { reached[a], reached[b] = reached[b], reached[a] })
	for _, pc := range reached[:min(len(reached), maxStops())] {
		n := pick(r, hits[pc]...)
		s := x.Stub(t, b.program)
		s.Break(addrs...)
		at := uint64(0)
		for range n + 1 {
			at, _ = s.Continue()
		}
		if at != pc {
			s.Close()
			return fmt.Errorf("stop %d is at %#x and was at %#x", n, at, pc)
		}
		if err := c.opened(t, b, s.Core(), places[pc]); err != nil {
			return err
		}
	}
	return nil
}

// places returns the addresses of the records of a static program, with their ids. For arm64 it also returns the addresses of calls that return to
// records of statepoints; they are four bytes before the record, because an instruction has four bytes.
func (c *comparer) places(program string) (map[uint64][]place, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section := f.Section(".llvm_stackmaps")
	if section == nil {
		return nil, fmt.Errorf("%s has no stack map", program)
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	list, err := stackmap.Parse(data, stackmap.Options{Order: c.order})
	if err != nil {
		return nil, err
	}
	places := map[uint64][]place{}
	for _, m := range list.Maps {
		for n := range m.Functions {
			for r := range m.Records(&m.Functions[n]) {
				at, id := uint64(m.Functions[n].Addr)+uint64(r.Offset), uint64(r.ID)
				places[at] = append(places[at], place{id, false})
				if _, statepoint := r.AsStatepoint(); statepoint && c.Machine == "arm64" {
					places[at-4] = append(places[at-4], place{id, true})
				}
			}
		}
	}
	return places, nil
}

// A place is an address that belongs to a record.
type place struct {
	id   uint64
	call bool // the address is that of the call which returns to the record's address
}

// standsAt reports whether a program whose log ends with this site may be stopped at a place. The address after the call of a deoptimize belongs to
// other code, which runs if the exit is not taken.
func (s *site) standsAt(p place) bool {
	if s.Kind == deoptimize && !p.call {
		return false
	}
	if s.Known {
		return p.id == s.ID
	}
	return p.id == deoptID
}
