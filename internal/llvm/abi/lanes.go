package abi

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// How LLVM lays out vectors
//
// LLVM's selection DAG maps each vector type to one that fits a register of the target (TargetLoweringBase::getTypeConversion). For the operand of a
// stackmap or patchpoint there are two cases. A legal type stays unchanged. Otherwise integer elements are promoted to the next wider ones that make a
// vector with the same number of elements legal: <16 x i1> becomes <16 x i8>, <4 x i24> becomes <4 x i32>, and the added bits are garbage. All other types,
// which would be widened, split or scalarized, are an error of the code generator. The operand of a statepoint whose type is not legal is stored to the
// stack like any other store of that type.
//
// Which types are legal depends on the processor's features, which the record does not contain. But a legal vector fills a register, and the record has its
// size. Divided by the number of elements, this gives the width of an element. The tables below list the possible sizes. The layout of other sizes is unknown.
//
// doc/dev/facts.md names the places in LLVM's sources, by release. Sizes come from a record and types from a module, and both are hostile: no result has more
// elements than the record has bits.

// registers describes the vector registers of an architecture as the code generator uses them.
type registers struct {
	sizes    []int // sizes in bytes of the registers that a vector may fill
	elements []int // widths in bits of the elements of legal vectors
	masks    []int // sizes in bytes of mask registers, with one bit for each element; nil for none
	// promotes reports whether a small vector of 8, 16 or 32-bit integers is promoted like any other. Otherwise getPreferredVectorAction of the target widens
	// it.
	promotes bool
	// swaps reports whether processors without lxv and stxv (POWER8) may keep and spill vectors with exchanged halves, depending on the pass that removes
	// swaps. Newer processors never do.
	swaps bool
}

var (
	x86    = &registers{sizes: []int{16, 32, 64}, elements: []int{8, 16, 32, 64}, masks: []int{2, 4, 8}}
	arm64  = &registers{sizes: []int{8, 16}, elements: []int{8, 16, 32, 64}, promotes: true}
	s390x  = &registers{sizes: []int{16}, elements: []int{8, 16, 32, 64, 128}}
	power  = &registers{sizes: []int{16}, elements: []int{8, 16, 32, 64, 128}}
	power8 = &registers{sizes: []int{16}, elements: []int{8, 16, 32, 64, 128}, swaps: true}
)

// byArch lists the supported architectures. Those whose vector registers have a size that is known only at run time are not supported.
var byArch = map[string]*registers{"amd64": x86, "arm64": arm64, "s390x": s390x, "ppc64": power, "ppc64le": power8}

// LanePlace describes a record's location of a vector.
type LanePlace struct {
	Arch     *machine.Arch
	Register bool // the vector is in a register; otherwise it is in a stack slot
	Size     int  // size in the record, in bytes
	// Stored reports whether the site is a statepoint, which stores operands of types that are not legal to their slots.
	Stored bool
}

// Lanes describes the layout of a vector's elements. They lie side by side, the first one at the start of the memory or in the least significant bits of
// the register.
type Lanes struct {
	Len    int // number of elements
	Bits   int // width of an element
	Stride int // distance in bits between elements; the bits above an element are garbage
}

// LanesOf returns the layout of a vector's elements in a location, or an error if the layout is unknown.
func LanesOf(t *ir.Type, d *ir.DataLayout, p LanePlace) (Lanes, error) {
	size, bits := d.StoreSize(t), elementBits(t.Elem, d)
	if !sized(t, d) || p.Size <= 0 || t.Len > 8*uint64(p.Size) {
		return Lanes{}, fmt.Errorf("unknown layout of a %s in %d bytes", t, p.Size)
	}
	out := Lanes{int(t.Len), bits, bits}
	var r *registers
	if p.Arch != nil {
		r = byArch[p.Arch.Name]
	}
	if r != nil && r.swaps && r.stride(t, bits, p.Size) != 0 {
		return Lanes{}, fmt.Errorf("code for POWER8 may exchange the halves of a %s, and the record does not name the processor", t)
	}
	if p.Stored && !p.Register && uint64(p.Size) == size {
		return out, nil
	}
	if r == nil {
		return Lanes{}, fmt.Errorf("unknown layout of a %s on this architecture", t)
	}
	if bits == 1 && slices.Contains(r.masks, p.Size) {
		return out, nil
	}
	out.Stride = r.stride(t, bits, p.Size)
	if out.Stride == 0 || p.Stored && out.Stride != bits {
		return Lanes{}, fmt.Errorf("unknown layout of a %s in %d bytes", t, p.Size)
	}
	return out, nil
}

// stride returns the distance in bits between the elements of a vector in a register of size bytes, or 0 if LLVM does not keep such a vector in one.
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
		return 0 // getTypeConversion promotes only integers, and widens vectors of other lengths
	case !r.promotes && slices.Contains(r.elements, bits):
		return 0
	}
	return stride
}

// LaneSizes returns the sizes in bytes, in ascending order, that a stackmap or patchpoint may record for a vector type; they depend on the processor's
// registers. It returns none if the code generator always rejects the type. ok is false if the architecture, by Go's name, is unknown.
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
			// LLVM uses the narrowest elements that make the vector legal.
			return append(sizes, size), true
		}
	}
	return sizes, true
}

// sized reports whether a type is a vector of known size.
func sized(t *ir.Type, d *ir.DataLayout) bool {
	if t.Kind != ir.VectorKind || t.Scalable || t.Len == 0 {
		return false
	}
	size := d.StoreSize(t)
	return size != 0 && size != ir.NoSize
}

// elementBits returns the width of an element in bits.
func elementBits(t *ir.Type, d *ir.DataLayout) int {
	switch t.Kind {
	case ir.PointerKind:
		return 8 * d.PointerBytes(t.AddrSpace)
	case ir.IntKind:
		return t.Bits
	}
	return int(8 * d.StoreSize(t))
}
