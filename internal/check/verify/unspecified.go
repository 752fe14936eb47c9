package verify

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// anyResult holds the flags of operations that may give one of several results.
const anyResult = ir.NoSignedZeros | ir.AllowReciprocal | ir.AllowContract | ir.ApproxFunc | ir.Reassoc

// The C standard leaves the exact results of these functions open. Functions with the effect [interp.EffectMath] are not listed.
var (
	// Only the sign of the result is defined (C17 7.24.4; for bcmp only whether it is zero). LLVM's inline memcmp returns -1 or 1, and that of the C
	// library returns the difference.
	signOnly = []string{"memcmp", "bcmp", "strcmp", "strncmp", "strcoll", "strcasecmp", "strncasecmp"}
	// The number of comparisons and the order of equal elements are unspecified (C17 7.22.5).
	orderOpen = []string{"qsort", "qsort_r", "bsearch"}
	// The result may be either of 0.0 and -0.0 (C17 F.10.9.2, LangRef "llvm.minnum.*").
	zeroOpen = strings.Fields("fmin fminf fminl fmax fmaxf fmaxl llvm.minnum llvm.maxnum")
	// IEEE 754 defines the last digit of these functions: they have the effect EffectMath only because of errno.
	exact = strings.Fields("sqrt sqrtf fmod fmodf remainder remainderf drem dremf fdim fdimf fma fmaf ldexp ldexpf scalbn scalbnf scalbln scalblnf logb logbf nextafter nextafterf")
)

// unspecifiedByFunctions returns the reason why native code and the interpreter may differ although both are right, because of the functions that the
// interpreter called or of fast-math flags; or "".
func unspecifiedByFunctions(r *interpreted) string {
	blocks := r.machine.Profile()
	for _, c := range r.called() {
		switch {
		case c.Effect == interp.EffectMath && !slices.Contains(exact, c.Name):
			return fmt.Sprintf("it calls @%s, whose last digit may differ", c.Name)
		case slices.Contains(orderOpen, c.Name):
			return fmt.Sprintf("it calls @%s, whose order of comparisons is unspecified", c.Name)
		case slices.Contains(signOnly, c.Name) && !onlySign(blocks, c.Name):
			return fmt.Sprintf("it calls @%s, of whose result only the sign is specified, and uses the number", c.Name)
		}
	}
	for _, b := range blocks {
		for _, i := range b.Block.Instrs {
			if i.Flags&anyResult != 0 {
				return fmt.Sprintf("fast-math flags in @%s allow several results, and they differ", b.Block.Func.Name)
			}
			if name := zeroOpenCallee(i); name != "" {
				return fmt.Sprintf("it calls @%s, which may return 0.0 or -0.0", name)
			}
		}
	}
	return ""
}

// zeroOpenCallee returns the called function if it is in zeroOpen, or "".
func zeroOpenCallee(i *ir.Instr) string {
	if i.Call == nil {
		return ""
	}
	name := sites.CalledName(i)
	if strings.HasPrefix(name, "llvm.") { // remove the suffix for the type
		name = name[:strings.LastIndexByte(name, '.')]
	}
	if !slices.Contains(zeroOpen, name) {
		return ""
	}
	return name
}

// onlySign reports whether the executed code only compares the result of a function with zero. It returns false if the function may have been called
// through an unknown pointer.
func onlySign(blocks []interp.Profiled, name string) bool {
	seen := false
	for _, b := range blocks {
		for _, i := range b.Block.Instrs {
			if i.Call == nil || sites.CalledName(i) != name {
				continue
			}
			if !comparedWithZero(i) {
				return false
			}
			seen = true
		}
	}
	return seen
}

// comparedWithZero reports whether every use of the result of a call is a comparison with zero. Uses in bundles do not count.
func comparedWithZero(call *ir.Instr) bool {
	body, err := call.Block.Func.Body()
	if err != nil {
		return false
	}
	for _, b := range body {
		for _, i := range b.Instrs {
			if !slices.Contains(i.Args, ir.Value(call)) {
				continue
			}
			zero := false
			if i.Op == ir.OpICmp {
				c, is := i.Args[1].(*ir.Const)
				zero = is && c.Kind == ir.ConstInt && c.Int.Sign() == 0
			}
			if !zero {
				return false
			}
		}
	}
	return true
}

// sameSign reports whether two values are equal as far as the C standard defines them. It applies to results of functions of the C library for which
// only the sign is specified. called lists the functions that the run called and that no module defines, because a function that a module defines has
// an exact result.
func sameSign(value ir.Value, a, b interp.Value, called []interp.Called) bool {
	call, is := value.(*ir.Instr)
	if !is || call.Call == nil {
		return false
	}
	callee, direct := call.Call.Callee.(*ir.Func)
	if !direct || !callee.Declared() || !slices.Contains(signOnly, callee.Name) {
		return false
	}
	name := callee.Name
	if !slices.ContainsFunc(called, func(c interp.Called) bool { return c.Name == name }) { // another module of the program defines the function
		return false
	}
	x, known := sign(a)
	y, also := sign(b)
	return known && also && (x == y || name == "bcmp" && x != 0 && y != 0)
}

// sign returns the sign of a C int. known is false if a bit of the int is unknown.
func sign(v interp.Value) (sign int, known bool) {
	bits, unknown := v.Bits()
	if len(bits) != 1 || unknown[0] != 0 {
		return 0, false
	}
	return cmp.Compare(int32(bits[0]), 0), true
}

// unspecifiedByIR returns the reason why the IR that the interpreter ran allows several results, or "".
func unspecifiedByIR(r *interpreted, again *reruns) string {
	if r.machine == nil {
		return ""
	}
	if r.machine.Frozen() {
		return "it freezes a value that is poison or undefined, for which any value is right"
	}
	asInteger := false
	for _, b := range r.machine.Profile() {
		for _, i := range b.Block.Instrs {
			switch {
			case comparesAllocas(i):
				return "it compares the addresses of two allocas, whose order is unspecified"
			case floatToBits(i), loadsInteger(i):
				asInteger = true
			}
		}
	}
	if asInteger && nanAsInteger(again) {
		return "it uses the bits of a NaN as an integer, and the payload is unspecified"
	}
	return ""
}

// comparesAllocas reports whether an instruction orders the addresses of two allocas, or subtracts one from the other.
func comparesAllocas(i *ir.Instr) bool {
	switch {
	case i.Op == ir.OpSub:
	case i.Op == ir.OpICmp && !slices.Contains([]string{"eq", "ne"}, i.Pred):
	default:
		return false
	}
	a, b := allocaOf(i.Args[0]), allocaOf(i.Args[1])
	return a != nil && b != nil && a != b
}

// allocaOf returns the alloca from which an address is computed, or nil.
func allocaOf(value ir.Value) *ir.Instr {
	for range 100 {
		i, ok := value.(*ir.Instr)
		switch {
		case !ok:
			return nil
		case i.Op == ir.OpAlloca:
			return i
		case slices.Contains([]ir.Op{ir.OpGEP, ir.OpBitCast, ir.OpPtrToInt, ir.OpIntToPtr, ir.OpAddrSpaceCast}, i.Op):
			value = i.Args[0]
		default:
			return nil
		}
	}
	return nil
}

// floatToBits reports whether an instruction converts the bits of floats to integers.
func floatToBits(i *ir.Instr) bool {
	return i.Op == ir.OpBitCast && scalarOf(i.Typ).Kind == ir.IntKind && floatBits(i.Args[0].Type()) > 0
}

// loadsInteger reports whether an instruction loads integers that are as wide as a float.
func loadsInteger(i *ir.Instr) bool {
	if i.Op != ir.OpLoad {
		return false
	}
	t := scalarOf(i.Typ)
	return t.Kind == ir.IntKind && (t.Bits == 32 || t.Bits == 64)
}

// scalarOf returns the type of a vector's elements, and any other type itself.
func scalarOf(t *ir.Type) *ir.Type {
	if t.Kind == ir.VectorKind {
		return t.Elem
	}
	return t
}

// floatBits returns the width of floats and doubles, and 0 for other types. For vectors it returns the width of their elements.
func floatBits(t *ir.Type) int {
	switch scalarOf(t).Kind {
	case ir.FloatKind:
		return 32
	case ir.DoubleKind:
		return 64
	}
	return 0
}

// lanes yields the bits of a value in parts of 32 or 64 bits.
func lanes(v interp.Value, width int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range max(v.Len(), 1) {
			part := v
			if v.Len() > 0 {
				part, _ = v.Elem(i)
			}
			words, _ := part.Bits()
			for _, w := range words {
				if !yield(w&(math.MaxUint64>>(64-width))) || width == 32 && w>>32 != 0 && !yield(w>>32) {
					return
				}
			}
		}
	}
}

// arithmetic holds the instructions that compute floats.
var arithmetic = []ir.Op{ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv, ir.OpFRem, ir.OpFPTrunc, ir.OpFPExt, ir.OpCall}

// nanAsInteger repeats the run of the interpreter. It reports whether the run computes a NaN and later converts a NaN to an integer, or loads one as
// an integer. LLVM does not define the payload and the sign of a NaN (LangRef, "Floating-Point NaN Values").
func nanAsInteger(again *reruns) bool {
	calculated, seen := map[uint64]bool{}, false // the calculated NaNs, without their signs
	err := again.trace(func(t interp.Traced) {
		if t.Value.IsNone() {
			return
		}
		switch width := floatBits(t.Instr.Typ); {
		case floatToBits(t.Instr):
			from := floatBits(t.Instr.Args[0].Type())
			for bits := range lanes(t.Value, from) {
				seen = seen || len(calculated) > 0 && nanBits(bits, from)
			}
		case loadsInteger(t.Instr):
			size := scalarOf(t.Instr.Typ).Bits
			for bits := range lanes(t.Value, size) {
				seen = seen || calculated[unsigned(bits, size)]
			}
		case width > 0 && slices.Contains(arithmetic, t.Instr.Op):
			for bits := range lanes(t.Value, width) {
				if nanBits(bits, width) && len(calculated) < maxNaNs {
					calculated[unsigned(bits, width)] = true
				}
			}
		}
	})
	return err == nil && seen
}

// maxNaNs bounds the NaNs that are remembered.
const maxNaNs = 1 << 10

// unsigned clears the sign of a float.
func unsigned(bits uint64, size int) uint64 { return bits &^ (1 << (size - 1)) }

func nanBits(bits uint64, size int) bool {
	switch size {
	case 32:
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	case 64:
		return math.IsNaN(math.Float64frombits(bits))
	}
	return false
}
