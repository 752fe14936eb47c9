package sites

import (
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// MayVanish reports whether a site's record may lack a location for an operand; the later locations then move up, see [Alignment]. This happens to operands
// in x87 registers: an x86_fp80, and without SSE a float or double. Without SSE is the default of compilers for 32-bit x86. A module for x86-64 does not show
// whether llc ran with -mattr=-sse2; the number of locations shows it, except in a statepoint. Only the first element of an aggregate counts.
func MayVanish(s *ir.Site, v ir.Value) bool {
	switch FirstLeaf(v.Type()).Kind {
	case ir.X86FP80Kind:
		return true
	case ir.FloatKind, ir.DoubleKind:
		triple := s.Func.Module.Triple
		return isI386(triple) || RecordsStatepoint(s) && X86Triple(triple)
	}
	return false
}

// isI386 reports whether a triple is for 32-bit x86.
func isI386(triple string) bool {
	first, _, _ := strings.Cut(triple, "-")
	return first == "x86" || len(first) == 4 && first[0] == 'i' && first[2:] == "86"
}

// unrecorded returns the reason why a value without a location is unavailable.
func unrecorded(t *ir.Type) string {
	if t.Kind == ir.X86FP80Kind {
		return "LLVM records no location for an x86_fp80"
	}
	return "LLVM records no location for a " + t.String() + " in an x87 register"
}

// inX87 reports whether computations keep a value of type t in an x87 register, with the compilers' defaults for a triple.
func inX87(t *ir.Type, triple string) bool {
	k := FirstLeaf(t).Kind
	return k == ir.X86FP80Kind && X86Triple(triple) || isI386(triple) && (k == ir.FloatKind || k == ir.DoubleKind)
}

// ConfusedX87 is the reason why a value is unavailable if x87 values may be confused (llvm-project issue 55586).
const ConfusedX87 = "LLVM may have stored another value for it: a stackmap of the function takes a value in an x87 register, and " +
	"LLVM shifts the values after it"

// confused returns the reason why the location of a value of type t may hold another value, or "". The cause is an error of LLVM (llvm-project issue
// 55586). handleCall of X86FloatingPoint.cpp removes the operands of a stackmap from the instruction but leaves their registers in its model of the
// x87 stack, because a stackmap overwrites no register. If the register is later assigned to another value, the model contains it twice. At the end
// of the block adjustLiveRegs then pops the new value instead of the old. The program itself continues with the wrong value, also in slots that it
// stores. A build of LLVM with assertions aborts there. No record shows the register of a removed operand, so all operands of the function are
// uncertain. If a stackmap has only one such operand and it has a location, it was not in a register.
func confused(s *ir.Site, t *ir.Type) string {
	triple := s.Func.Module.Triple
	if !inX87(t, triple) {
		return ""
	}
	all, err := s.Func.Sites()
	if err != nil {
		return ""
	}
	for _, other := range all {
		if other.Kind != ir.StackMapSite {
			continue
		}
		n := 0
		for _, v := range other.Live {
			if !IsUndef(v) && inX87(v.Type(), triple) {
				n++
			}
		}
		if n > 1 || n == 1 && other.Instr != s.Instr {
			return ConfusedX87
		}
	}
	return ""
}

// Halved returns the reason why a location cannot hold a whole value of type t, or "". The record does not show this, because the sizes may be equal by
// chance.
func Halved(s *ir.Site, t *ir.Type, l stackmap.Location, arch *machine.Arch) string {
	// The record holds an address in the frame if the operand's value is that address, also as an integer. It holds one too for an argument that is passed in
	// parts on the stack, such as an i128 (StatepointLowering.cpp, lowerStatepointMetaArgs; SelectionDAGBuilder.cpp, LowerArguments, where it is a BUILD_PAIR).
	// An integer as wide as an address is not passed in parts.
	address := t.Kind == ir.PointerKind || t.Kind == ir.IntKind && t.Bits == 8*s.Func.Module.Layout.PointerBytes(0)
	if l.Kind == stackmap.Direct && !address {
		return "LLVM records its address in the frame, not its value"
	}
	if (t.Kind == ir.StructKind || t.Kind == ir.ArrayKind) && Leaves(t) > 1 {
		return "LLVM records only the first element of an aggregate"
	}
	if leaf := FirstLeaf(t); leaf.Kind == ir.VectorKind && l.Kind != stackmap.Constant && l.Kind != stackmap.ConstantIndex {
		if _, err := VectorLayout(s, leaf, l, arch); err != nil {
			return err.Error()
		}
	}
	return confused(s, t)
}

// Reshaped reports whether a location may hold a struct or array with one element in another form than a store of its type: LLVM records only the element.
func Reshaped(s *ir.Site, t *ir.Type) bool {
	layout := s.Func.Module.Layout
	return (t.Kind == ir.StructKind || t.Kind == ir.ArrayKind) && layout.StoreSize(t) != layout.StoreSize(FirstLeaf(t))
}

// MarksUndef reports whether a location holds the number that LLVM records for undef and poison: as an entry of the constant table, or sign-extended from 32
// bits (seen: LLVM 14 to 22). The code generator may find a computed operand to be undef.
func MarksUndef(m *stackmap.Map, l stackmap.Location) bool {
	const mark = 0xFEFEFEFE
	if l.Kind != stackmap.Constant && l.Kind != stackmap.ConstantIndex {
		return false
	}
	v, err := m.Constant(l)
	return err == nil && uint32(v) == mark
}

// UndefMark is the reason why a constant may be undefined: see [MarksUndef].
const UndefMark = "the record holds 0xfefefefe, which LLVM writes for undef; it may also be that number"

// IsUndef reports whether an operand is undef or poison in the module.
func IsUndef(v ir.Value) bool {
	c, ok := v.(*ir.Const)
	return ok && (c.Kind == ir.ConstUndef || c.Kind == ir.ConstPoison)
}

// IsConst reports whether an operand is a constant in the module.
func IsConst(v ir.Value) bool {
	_, ok := v.(*ir.Const)
	return ok
}

// Leaves returns the number of scalars in a type, at most two.
func Leaves(t *ir.Type) int {
	switch t.Kind {
	case ir.StructKind:
		n := 0
		for _, f := range t.Fields {
			if n += Leaves(f); n > 1 {
				break
			}
		}
		return n
	case ir.ArrayKind:
		if t.Len == 0 {
			return 0
		}
		return int(min(t.Len, 2)) * Leaves(t.Elem)
	}
	return 1
}
