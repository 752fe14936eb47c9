package abi

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// How LLVM lays out vectors
//
// LLVM's selection DAG gives each vector type one that fits a register of the target (TargetLoweringBase::getTypeConversion). It treats the operand
// of a stackmap or patchpoint in one of two ways. It leaves a type that has such a register unchanged; or it promotes integer elements to the next
// wider ones that make a vector with as many of them legal: <16 x i1> becomes <16 x i8>, <4 x i24> becomes <4 x i32>, and the bits above an
// element's own are garbage. Everything else, to widen, split or scalarize a vector, is an error of the code generator there. The operand of a
// statepoint whose type is not legal is stored to the stack as any store would store it.
//
// Which types are legal depends on the processor's features, and the record names none. But a legal vector fills a register, and the record has its
// size: with the number of elements that gives the width of each. The tables below list the possible sizes. The layout of other sizes is unknown.
//
// doc/facts.md has the places in LLVM's sources, by release. Sizes come from a record and types from a module, and both are hostile: no result has more
// elements than bits were recorded.

// registers describes the vector registers of an architecture as the code generator uses them.
type registers struct {
	sizes    []int // bytes of those that a vector may fill
	elements []int // bits of the elements that a legal vector may have
	masks    []int // bytes of the registers that hold one bit for each element; nil for none
	// promotes means that a vector of 8, 16 or 32-bit integers that fills no register is promoted like any other. Otherwise,
	// getPreferredVectorAction of the target has it widened.
	promotes bool
	// swaps means that processors without lxv and stxv (POWER8) may keep and spill vectors with their halves exchanged, depending on the pass that
	// removes swaps, and newer processors never do.
	swaps bool
}

var (
	x86    = &registers{sizes: []int{16, 32, 64}, elements: []int{8, 16, 32, 64}, masks: []int{2, 4, 8}}
	arm64  = &registers{sizes: []int{8, 16}, elements: []int{8, 16, 32, 64}, promotes: true}
	s390x  = &registers{sizes: []int{16}, elements: []int{8, 16, 32, 64, 128}}
	power  = &registers{sizes: []int{16}, elements: []int{8, 16, 32, 64, 128}}
	power8 = &registers{sizes: []int{16}, elements: []int{8, 16, 32, 64, 128}, swaps: true}
)

// byArch has no row for an architecture whose code was not looked at, nor for one whose vector registers have no size
// that is known before the code runs.
var byArch = map[string]*registers{"amd64": x86, "arm64": arm64, "s390x": s390x, "ppc64": power, "ppc64le": power8}

// LanePlace is the place of a vector in a record.
type LanePlace struct {
	Arch     *machine.Arch
	Register bool // in a register; else in a slot of the stack
	Size     int  // bytes recorded
	// Stored means that the site is a statepoint, whose operands of types that are not legal are stored to their slots.
	Stored bool
}

// Lanes describes how the elements of a vector lie: side by side, the first one where memory begins, or in the least significant bits of a
// register.
type Lanes struct {
	Len    int // elements
	Bits   int // of an element
	Stride int // bits from one element to the next; those above an element's own are garbage
}

// LanesOf returns how the elements of a vector type lie in a place. It returns an error if that is unknown.
func LanesOf(t *ir.Type, d *ir.DataLayout, p LanePlace) (Lanes, error) {
	size, bits := d.StoreSize(t), elementBits(t.Elem, d)
	if !sized(t, d) || p.Size <= 0 || t.Len > 8*uint64(p.Size) {
		return Lanes{}, fmt.Errorf("how LLVM laid out a %s in %d bytes is not known", t, p.Size)
	}
	out := Lanes{int(t.Len), bits, bits}
	var r *registers
	if p.Arch != nil {
		r = byArch[p.Arch.Name]
	}
	if r != nil && r.swaps && r.stride(t, bits, p.Size) != 0 {
		return Lanes{}, fmt.Errorf("POWER8 may keep a %s with its halves exchanged and newer processors do not, and which one the code is for is not recorded", t)
	}
	if p.Stored && !p.Register && uint64(p.Size) == size {
		return out, nil
	}
	if r == nil {
		return Lanes{}, fmt.Errorf("how LLVM lays out a %s on this architecture is not known", t)
	}
	if bits == 1 && slices.Contains(r.masks, p.Size) {
		return out, nil
	}
	out.Stride = r.stride(t, bits, p.Size)
	if out.Stride == 0 || p.Stored && out.Stride != bits {
		return Lanes{}, fmt.Errorf("how LLVM laid out a %s in %d bytes is not known", t, p.Size)
	}
	return out, nil
}

// stride returns the distance in bits between the elements of a vector that fills a register of size bytes, or 0 if LLVM keeps no vector of that
// type in one.
func (r *registers) stride(t *ir.Type, bits, size int) int {
	n := int(t.Len)
	if !slices.Contains(r.sizes, size) || 8*size%n != 0 {
		return 0
	}
	stride := 8 * size / n
	switch {
	case !slices.Contains(r.elements, stride) || stride < bits:
		return 0
	case stride == bits:
		return stride
	case t.Elem.Kind != ir.IntKind || n < 2 || n&(n-1) != 0:
		return 0 // getTypeConversion promotes integers alone, and widens a vector of another length
	case !r.promotes && slices.Contains(r.elements, bits):
		return 0
	}
	return stride
}

// LaneSizes returns the sizes in bytes, in ascending order, that a stackmap or patchpoint may record for a vector type, depending on the registers of
// the processor. It returns none if no processor's code generator accepts the type. ok is false if the architecture, by Go's name for it, is
// unknown.
func LaneSizes(t *ir.Type, d *ir.DataLayout, arch string) (sizes []int, ok bool) {
	r := byArch[arch]
	if r == nil || !sized(t, d) {
		return nil, r != nil
	}
	bits := elementBits(t.Elem, d)
	if bits == 1 && t.Len&(t.Len-1) == 0 {
		for _, size := range r.masks {
			if t.Len <= uint64(8*size) {
				sizes = append(sizes, size)
				break
			}
		}
	}
	for _, size := range r.sizes {
		if t.Len <= uint64(8*size) && r.stride(t, bits, size) != 0 {
			// The narrowest elements that make the vector legal are taken.
			return append(sizes, size), true
		}
	}
	return sizes, true
}

// sized reports whether a type is a vector of a size that is known.
func sized(t *ir.Type, d *ir.DataLayout) bool {
	if t.Kind != ir.VectorKind || t.Scalable || t.Len == 0 {
		return false
	}
	size := d.StoreSize(t)
	return size != 0 && size != ir.NoSize
}

// elementBits is the width of an element.
func elementBits(t *ir.Type, d *ir.DataLayout) int {
	switch t.Kind {
	case ir.PointerKind:
		return 8 * d.PointerBytes(t.AddrSpace)
	case ir.IntKind:
		return t.Bits
	}
	return int(8 * d.StoreSize(t))
}
