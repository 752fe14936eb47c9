package ir

import (
	"fmt"
	"strings"
)

// TypeKind is the kind of a type of LLVM IR.
type TypeKind uint8

// The kinds of type.
const (
	VoidKind TypeKind = iota
	IntKind
	HalfKind
	BFloatKind
	FloatKind
	DoubleKind
	X86FP80Kind
	FP128Kind
	PointerKind
	VectorKind
	ArrayKind
	StructKind
	FuncKind
	LabelKind
	TokenKind
	MetadataKind
	PPCFP128Kind
	X86MMXKind
	X86AMXKind
	TargetKind // target("…"): Name is the whole text
)

// Type is a type of LLVM IR. Equal types are not always the same *Type: compare with [Type.Equal].
type Type struct {
	Kind      TypeKind
	Bits      int     // IntKind: width
	AddrSpace int     // address space of a PointerKind
	Elem      *Type   // VectorKind, ArrayKind: element; FuncKind: result; PointerKind: pointee, nil for ptr
	Len       uint64  // number of elements of a VectorKind or ArrayKind
	Fields    []*Type // fields of a StructKind, parameters of a FuncKind
	Packed    bool    // the StructKind is packed
	Variadic  bool    // the FuncKind is variadic
	Opaque    bool    // the StructKind is declared without a body
	Name      string  // name of a StructKind, without the % sign
	Scalable  bool    // VectorKind: <vscale x Len x Elem>

	weight, depth int // size of the text, which is limited: see typeTable
}

// These are the types without parameters.
var (
	Void  = &Type{Kind: VoidKind}
	I1    = &Type{Kind: IntKind, Bits: 1}
	I8    = &Type{Kind: IntKind, Bits: 8}
	I16   = &Type{Kind: IntKind, Bits: 16}
	I32   = &Type{Kind: IntKind, Bits: 32}
	I64   = &Type{Kind: IntKind, Bits: 64}
	Ptr   = &Type{Kind: PointerKind}
	Label = &Type{Kind: LabelKind}

	tokenType    = &Type{Kind: TokenKind}
	metadataType = &Type{Kind: MetadataKind}
)

var plainNames = map[TypeKind]string{
	VoidKind: "void", HalfKind: "half", BFloatKind: "bfloat", FloatKind: "float", DoubleKind: "double",
	X86FP80Kind: "x86_fp80", FP128Kind: "fp128", LabelKind: "label", TokenKind: "token", MetadataKind: "metadata",
	PPCFP128Kind: "ppc_fp128", X86MMXKind: "x86_mmx", X86AMXKind: "x86_amx",
}

// String returns the type as LLVM writes it. A named struct is written as its name.
func (t *Type) String() string {
	if t == nil {
		return "void"
	}
	if s, ok := plainNames[t.Kind]; ok {
		return s
	}
	switch t.Kind {
	case IntKind:
		return fmt.Sprintf("i%d", t.Bits)
	case PointerKind:
		space := ""
		if t.AddrSpace != 0 {
			space = fmt.Sprintf(" addrspace(%d)", t.AddrSpace)
		}
		if t.Elem == nil {
			return "ptr" + space
		}
		return t.Elem.String() + space + "*"
	case TargetKind:
		return t.Name
	case VectorKind:
		if t.Scalable {
			return fmt.Sprintf("<vscale x %d x %v>", t.Len, t.Elem)
		}
		return fmt.Sprintf("<%d x %v>", t.Len, t.Elem)
	case ArrayKind:
		return fmt.Sprintf("[%d x %v]", t.Len, t.Elem)
	case FuncKind:
		list := typeList(t.Fields)
		if t.Variadic {
			if list != "" {
				list += ", "
			}
			list += "..."
		}
		return fmt.Sprintf("%v (%s)", t.Elem, list)
	}
	if t.Name != "" {
		return "%" + quoteName(t.Name)
	}
	body := "{ " + typeList(t.Fields) + " }"
	if len(t.Fields) == 0 {
		body = "{}"
	}
	if t.Packed {
		return "<" + body + ">"
	}
	return body
}

func typeList(types []*Type) string {
	parts := make([]string, len(types))
	for i, f := range types {
		parts[i] = f.String()
	}
	return strings.Join(parts, ", ")
}

// Equal reports whether two types are the same. It compares named structs by name.
func (t *Type) Equal(u *Type) bool {
	if t == u {
		return true
	}
	if t == nil || u == nil || t.Kind != u.Kind || t.Bits != u.Bits || t.AddrSpace != u.AddrSpace || t.Len != u.Len || t.Name != u.Name || t.Scalable != u.Scalable {
		return false
	}
	if t.Kind == StructKind && t.Name != "" {
		return true
	}
	if t.Packed != u.Packed || t.Variadic != u.Variadic || len(t.Fields) != len(u.Fields) || (t.Elem == nil) != (u.Elem == nil) {
		return false
	}
	if t.Elem != nil && !t.Elem.Equal(u.Elem) {
		return false
	}
	for i := range t.Fields {
		if !t.Fields[i].Equal(u.Fields[i]) {
			return false
		}
	}
	return true
}

// Float reports whether t is a floating-point type.
func (t *Type) Float() bool {
	return t.Kind >= HalfKind && t.Kind <= FP128Kind || t.Kind == PPCFP128Kind
}

// First reports whether a value of t can be held in a register: an integer, a float, a pointer or a vector.
func (t *Type) First() bool { return t.Kind >= IntKind && t.Kind <= VectorKind }
