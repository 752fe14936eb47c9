package roots

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/vmlayout"
)

// Range is a range of addresses, without its end.
type Range struct{ Start, End uint64 }

// ParseRange parses START-END, two hexadecimal numbers with or without 0x, as in /proc/PID/maps.
func ParseRange(text string) (Range, error) {
	from, to, ok := strings.Cut(text, "-")
	start, err := strconv.ParseUint(strings.TrimPrefix(from, "0x"), 16, 64)
	end, late := strconv.ParseUint(strings.TrimPrefix(to, "0x"), 16, 64)
	if !ok || err != nil || late != nil || start >= end {
		return Range{}, fmt.Errorf("%q: expected START-END in hexadecimal, START below END", text)
	}
	return Range{start, end}, nil
}

// Heap holds the ranges and the objects with which roots are checked.
type Heap struct {
	Ranges    []Range
	FromSpace []Range  // parts that the collector has left
	Objects   *Objects // nil if no layout describes objects
}

func (h *Heap) empty() bool { return len(h.Ranges) == 0 && len(h.FromSpace) == 0 && h.Objects == nil }

// find returns the kind of memory to which a pointer's base points, and the object there, or nil if it is unknown. It does not check a derived
// pointer itself, which may point outside of the object. It does not check a base that the collector need not update: the base may still have its
// value from before the object moved. by holds the pointers of the frame by the index of their slot.
func (h *Heap) find(by map[int]*deopt.RootPointer, s *deopt.RootPointer) (Found, *Object) {
	if h.empty() {
		return "", nil
	}
	if s.GC.Base != nil {
		if s = by[*s.GC.Base]; s == nil {
			return Unchecked, nil
		}
	}
	all := words(s.Hex)
	if !s.Read() || s.BaseOnly || len(all) == 0 {
		return Unchecked, nil
	}
	worst, object := IsNull, (*Object)(nil)
	for _, at := range all {
		found, is := h.at(at)
		if worst == IsNull || found.Wrong() && !worst.Wrong() {
			worst, object = found, is
		}
	}
	return worst, object
}

// at returns the kind of memory to which a word points, or "" if it is unknown, and the object there, or nil.
func (h *Heap) at(bits uint64) (Found, *Object) {
	is, found := h.place(bits)
	if is == nil {
		return found, nil
	}
	return found, h.Objects.describe(is)
}

// place returns the object to which a word points, and the place of its address; "" if nothing is known about the place.
func (h *Heap) place(bits uint64) (*vmlayout.HeapObject, Found) {
	if bits == 0 {
		return nil, IsNull
	}
	if h.Objects == nil {
		return nil, h.space(bits)
	}
	addr, ok := h.Objects.layout.Reference(bits)
	if !ok {
		return nil, NoReference
	}
	if found := h.space(uint64(addr)); found != "" && found != InHeap {
		return nil, found
	}
	return h.Objects.at(uint64(addr))
}

// space returns the space that contains an address; "" if no heap was given and the address is not in from-space.
func (h *Heap) space(at uint64) Found {
	in := func(r Range) bool { return at >= r.Start && at < r.End }
	switch {
	case at == 0:
		return IsNull
	case slices.ContainsFunc(h.FromSpace, in):
		return InFromSpace
	case len(h.Ranges) == 0:
		return ""
	case slices.ContainsFunc(h.Ranges, in):
		return InHeap
	}
	return Outside
}

// words returns the 64-bit words of a value. A pointer has one word, and a vector of pointers has several.
func words(h frame.Hex) (all []uint64) {
	const digits = 16
	text := strings.TrimPrefix(string(h), "0x")
	for len(text) > 0 {
		cut := max(0, len(text)-digits)
		n, err := strconv.ParseUint(text[cut:], 16, 64)
		if err != nil {
			return nil
		}
		all, text = append(all, n), text[:cut]
	}
	return all
}
