package ir

import (
	"encoding/binary"
	"slices"
)

// These limit the depth and the length of a type's text. With named types (%a = type { %b, %b }) a short source can describe an exponentially large type;
// LLVM's own output is far below these limits.
const (
	maxTypeDepth  = 256
	maxTypeWeight = 1 << 16
)

// typeTable holds each type of a module once, so that equal types are the same *Type and are compared by pointer.
type typeTable struct {
	ids   map[*Type]uint64
	known map[typeKey]*Type
	named map[string]*Type // %name; opaque until its definition is parsed
	first map[string]int   // position of the first use of each undefined name
}

type typeKey struct {
	kind     TypeKind
	n        uint64 // width, address space or length
	elem     uint64 // id of Elem, 0 for none
	fields   string // ids of Fields
	a, b     bool   // Packed or Variadic (a), Scalable (b)
	spelling string // text of a TargetKind
}

func newTypeTable() typeTable {
	return typeTable{ids: map[*Type]uint64{}, known: map[typeKey]*Type{}, named: map[string]*Type{}, first: map[string]int{}}
}

// id returns the number of a type. Numbers start at 1, in order of first use.
func (t *typeTable) id(typ *Type) uint64 {
	if typ == nil {
		return 0
	}
	n, ok := t.ids[typ]
	if !ok {
		n = uint64(len(t.ids)) + 1
		t.ids[typ] = n
	}
	return n
}

// shared returns the type that all modules share and that equals typ, or nil.
func shared(typ *Type) *Type {
	switch typ.Kind {
	case IntKind:
		switch typ.Bits {
		case 1:
			return I1
		case 8:
			return I8
		case 16:
			return I16
		case 32:
			return I32
		case 64:
			return I64
		}
	case PointerKind:
		if typ.Elem == nil && typ.AddrSpace == 0 {
			return Ptr
		}
	case VoidKind:
		return Void
	case LabelKind:
		return Label
	case TokenKind:
		return tokenType
	case MetadataKind:
		return metadataType
	}
	return nil
}

// intern returns the table's copy of a type, which must be unnamed unless it is a target type. It returns nil if the type is too large.
func (t *typeTable) intern(typ Type) *Type {
	if s := shared(&typ); s != nil {
		return s
	}
	k := typeKey{
		kind: typ.Kind, n: uint64(typ.Bits) + uint64(typ.AddrSpace) + typ.Len, // at most one of the three numbers is nonzero
		elem: t.id(typ.Elem), a: typ.Packed || typ.Variadic, b: typ.Scalable, spelling: typ.Name,
	}
	if len(typ.Fields) > 0 {
		ids := make([]byte, 0, 4*len(typ.Fields))
		for _, f := range typ.Fields {
			ids = binary.AppendUvarint(ids, t.id(f))
		}
		k.fields = string(ids)
	}
	if known, ok := t.known[k]; ok {
		return known
	}
	typ.measure(typ.Elem)
	for _, f := range typ.Fields {
		typ.measure(f)
	}
	if typ.weight > maxTypeWeight || typ.depth > maxTypeDepth {
		return nil
	}
	made := new(Type) // allocate only here: taking &typ would move every argument to the heap
	*made = typ
	made.Fields = slices.Clone(typ.Fields) // the caller may reuse its slice
	t.known[k] = made
	return made
}

// measure adds a part to the weight and depth of the type's text.
func (t *Type) measure(part *Type) {
	if part == nil || part.Kind == StructKind && part.Name != "" {
		t.weight++ // a named struct is written as its name
		return
	}
	t.weight += part.weight + 1
	t.depth = max(t.depth, part.depth+1)
}
