package sites

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
)

// GCPointers returns the pointers of the module that each location in the pairs of a statepoint's record may hold; a single pointer if it is certain. It
// returns nil if the record does not fit. Locations that may hold the same pointers share the slice.
//
// The code generator writes one pair for each relocated pointer, and one for each gc pointer in the deopt bundle that is not relocated, in an order
// that it chooses (StatepointLowering.cpp). It merges pointers that it found to be equal, and drops relocates that it found to be unused. A record
// fits only if it has as many pairs and pointers as the module requires. Pairs are then distinguished by four properties: the number of pointers
// derived from a base, whether the base is relocated itself, whether a pointer is null or in a vector, and the locations of pointers that are also
// deopt values.
func GCPointers(s *ir.Site, sp *stackmap.Statepoint) map[stackmap.Location][]ir.Value {
	module, ok := pointersOfSite(s)
	if !ok || len(module.nodes) == 0 {
		return nil
	}
	record, ok := pointersOfRecord(sp)
	if !ok || len(record.nodes) != len(module.nodes) || record.pairs != module.pairs {
		return nil
	}
	pinDeopt(s, sp, module, record)
	refine(module, record)
	by := map[int][]ir.Value{}
	for n, v := range module.nodes {
		by[module.color[n]] = append(by[module.color[n]], v)
	}
	of := map[int]int{}
	for n := range record.nodes {
		of[record.color[n]]++
	}
	held := map[stackmap.Location][]ir.Value{}
	for n, l := range record.nodes {
		c := record.color[n]
		if len(by[c]) != of[c] {
			return nil
		}
		held[l] = by[c]
	}
	return held
}

// maxPossible bounds the result of [PossibleNames]: a record may have thousands of pointers that it does not distinguish.
const maxPossible = 64

// PossibleNames returns the names of the pointers that a location may hold, and the number of further pointers that it omits.
func PossibleNames(values []ir.Value) (names []string, more int) {
	shown := values[:min(len(values), maxPossible)]
	for _, v := range shown {
		names = append(names, NameOf(v))
	}
	return names, len(values) - len(shown)
}

// CommonType returns the type of all values. It returns nil if they have different types, or if there are none.
func CommonType(values []ir.Value) *ir.Type {
	if len(values) == 0 {
		return nil
	}
	t := values[0].Type()
	if slices.ContainsFunc(values, func(v ir.Value) bool { return v.Type().String() != t.String() }) {
		return nil
	}
	return t
}

// pointerGraph holds the pairs of a site or of its record: an edge leads from each derived pointer to its base.
type pointerGraph[N comparable] struct {
	nodes []N
	index map[N]int
	base  []int // node of the base; -1 if the pointer is only a base
	color []int // equal for nodes that are not distinguished
	pairs int
}

// These are the kinds of pointers. They are the first colors.
const (
	scalarPointer = iota
	vectorPointer
	nullPointer
	firstPin
)

func newPointerGraph[N comparable]() *pointerGraph[N] { return &pointerGraph[N]{index: map[N]int{}} }

// node returns the node of a pointer. It adds the node if it is new.
func (g *pointerGraph[N]) node(of N, kind int) int {
	n, known := g.index[of]
	if !known {
		n = len(g.nodes)
		g.index[of] = n
		g.nodes, g.base, g.color = append(g.nodes, of), append(g.base, -1), append(g.color, kind)
	}
	return n
}

// pair adds an edge. It returns false if the derived pointer has one already.
func (g *pointerGraph[N]) pair(base, derived int) bool {
	if g.base[derived] >= 0 {
		return false
	}
	g.base[derived] = base
	g.pairs++
	return true
}

// pointersOfSite returns the pairs that the record of a site has unless the code generator merges or drops some. It returns false if a pointer may be
// recorded in several ways: undef, addresses of globals, and expressions on them. It also returns false if pointers of several address spaces may be references.
func pointersOfSite(s *ir.Site) (*pointerGraph[ir.Value], bool) {
	relocated, err := s.Relocated()
	if err != nil || len(relocated) == 0 {
		return nil, false
	}
	g := newPointerGraph[ir.Value]()
	var null ir.Value
	add := func(v ir.Value) (int, bool) {
		c, constant := v.(*ir.Const)
		kind := scalarPointer
		switch {
		case constant && (c.Kind != ir.ConstNull || v.Type().Kind != ir.PointerKind), !constant && NameOf(v) == "":
			return 0, false
		case constant && null == nil:
			null, kind = v, nullPointer
		case constant:
			v, kind = null, nullPointer
		case v.Type().Kind == ir.VectorKind:
			kind = vectorPointer
		}
		return g.node(v, kind), true
	}
	for _, r := range relocated {
		base, known := add(r.Base)
		derived, ok := add(r.Derived)
		if !known || !ok || !g.pair(base, derived) {
			return nil, false
		}
	}
	space := scalarOf(relocated[0].Derived.Type()).AddrSpace
	known := s.Func.GC == "statepoint-example" || s.Func.GC == "coreclr" // their references are the pointers of address space 1
	for _, r := range relocated {
		if scalarOf(r.Base.Type()).AddrSpace != space || scalarOf(r.Derived.Type()).AddrSpace != space {
			return nil, false
		}
	}
	if known && space != 1 {
		return nil, false
	}
	for _, v := range s.Live {
		t := scalarOf(v.Type())
		switch {
		case t.Kind != ir.PointerKind, t.AddrSpace != space && known:
			continue
		case t.AddrSpace != space: // a pointer of another space may be a reference; only the collector's own code decides that
			return nil, false
		}
		n, ok := add(v)
		if !ok {
			return nil, false
		}
		if g.base[n] < 0 {
			g.pair(n, n)
		}
	}
	return g, true
}

// scalarOf returns the type of a vector's elements, and any other type itself.
func scalarOf(t *ir.Type) *ir.Type {
	if t.Kind == ir.VectorKind {
		return t.Elem
	}
	return t
}

// pointersOfRecord returns the pairs of a record. It returns false if two pairs have the same derived pointer. A constant other than null is a pointer
// that the code generator found to be constant or undefined.
func pointersOfRecord(sp *stackmap.Statepoint) (*pointerGraph[stackmap.Location], bool) {
	g := newPointerGraph[stackmap.Location]()
	add := func(l stackmap.Location) int {
		kind := scalarPointer
		switch {
		case l.Kind == stackmap.Constant && l.Offset == 0:
			kind = nullPointer
		case l.Size > 8:
			kind = vectorPointer
		}
		return g.node(l, kind)
	}
	for _, p := range sp.Pairs {
		if !g.pair(add(p.Base), add(p.Derived)) {
			return nil, false
		}
	}
	return g, true
}

// pinDeopt gives a pointer of the deopt bundle and its location a new common color if a pair has the same location. The code generator may put the
// deopt value and the pair at different locations.
func pinDeopt(s *ir.Site, sp *stackmap.Statepoint, module *pointerGraph[ir.Value], record *pointerGraph[stackmap.Location]) {
	pinned := map[int]int{} // the module's node by the record's; -1 if several values have the location
	for k, v := range s.Live {
		n, is := module.index[v]
		at, listed := 0, false
		if k < len(sp.Deopt) {
			at, listed = record.index[sp.Deopt[k]]
		}
		if !is || !listed || module.color[n] == nullPointer {
			continue
		}
		if other, taken := pinned[at]; taken && other != n {
			n = -1
		}
		pinned[at] = n
	}
	for k, at := range slices.Sorted(maps.Keys(pinned)) {
		if n := pinned[at]; n >= 0 {
			module.color[n], record.color[at] = firstPin+k, firstPin+k
		}
	}
}

// maxRefined bounds the rounds of refine. Pointers are derived from bases, so two rounds suffice for records that LLVM writes.
const maxRefined = 8

// refine divides the colors of two graphs until they no longer change: nodes keep the same color only if their bases, and the pointers derived from them,
// have the same colors.
func refine(module *pointerGraph[ir.Value], record *pointerGraph[stackmap.Location]) {
	for colors, round := 0, 0; round < maxRefined; round++ {
		next := map[string]int{}
		color := func(own []int, base []int) []int {
			derived := make([][]int, len(own))
			for n, b := range base {
				if b >= 0 && b != n {
					derived[b] = append(derived[b], own[n])
				}
			}
			out := make([]int, len(own))
			for n := range own {
				var key strings.Builder
				slices.Sort(derived[n])
				fmt.Fprint(&key, own[n], derived[n])
				switch b := base[n]; {
				case b == n:
					key.WriteString(" self")
				case b >= 0:
					fmt.Fprint(&key, " of ", own[b])
				}
				if _, known := next[key.String()]; !known {
					next[key.String()] = len(next)
				}
				out[n] = next[key.String()]
			}
			return out
		}
		module.color, record.color = color(module.color, module.base), color(record.color, record.base)
		if len(next) == colors {
			return
		}
		colors = len(next)
	}
}
