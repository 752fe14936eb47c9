package lint

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// operands reports operands whose value the record will not hold. needed holds the operands that are required to resume, with their names.
func (l *linter) operands(s *ir.Site, needed map[int]string) {
	for k, v := range s.Live {
		rule, why, do := Loss(s, v)
		if rule == "" {
			continue
		}
		f := Finding{Rule: rule, Severity: LintWarning, What: fmt.Sprintf("operand %d, %s %s, %s", k, v.Type(), shortRef(v), why), Do: do}
		if sites.NameOf(v) != "" {
			f.Names = []string{sites.NameOf(v)}
		}
		if as, ok := needed[k]; ok && rule != WideVector && rule != X87Operand || rule == NotCompiled {
			f.Severity = CannotResume
			if ok && as != sites.NameOf(v) {
				f.What += ", and " + as + " is needed where it resumes"
			}
		}
		l.site(s, f)
	}
}

// shortRef returns an operand as the module writes it, shortened: a constant may be as long as the module.
func shortRef(v ir.Value) string {
	const longest = 60
	if r := []rune(v.Ref()); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return v.Ref()
}

// Loss returns the rule by which the value of an operand is lost, the reason, and the fix; "" if it is not lost.
func Loss(s *ir.Site, v ir.Value) (rule Rule, what, do string) {
	t := v.Type()
	if sites.IsUndef(v) {
		return UndefinedOperand, "becomes whatever is cheapest for the compiler: 0xfefefefe, or any register", "record a value, or a constant that means no value"
	}
	if c, ok := v.(*ir.Const); ok && t.Kind == ir.IntKind && (c.Kind == ir.ConstInt || c.Kind == ir.ConstZero) {
		if c.Kind == ir.ConstInt && !sites.StatepointLike(s) && !fits64(c.Int, t.Bits) {
			return LostOperand, "only its low 64 bits are recorded", "record it in parts of 64 bits"
		}
		return "", "", ""
	}
	if sites.Leaves(t) == 0 {
		return NotCompiled, "crashes the code generator: it has no element", "leave it out"
	}
	rule, what, do = lossOf(s, v, sites.FirstLeaf(t))
	if (rule == "" || rule == X87Operand) && sites.Leaves(t) > 1 {
		return LostOperand, "only its first element is recorded", "record its elements one by one"
	}
	return rule, what, do
}

// fits64 reports whether a number of that width is the sign extension of a 64-bit number.
func fits64(n *big.Int, bits int) bool {
	signed := n
	if bits > 0 && n.Bit(bits-1) != 0 {
		signed = new(big.Int).Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	return signed.IsInt64()
}

// lossOf is Loss for a scalar or vector. All cases were seen with llc 14 to 22.
func lossOf(s *ir.Site, v ir.Value, t *ir.Type) (rule Rule, what, do string) {
	const crashes, split = "crashes the code generator", "record it in parts of 64 bits"
	if t.Kind == ir.MetadataKind {
		return NotCompiled, crashes, "leave it out"
	}
	if sites.StatepointLike(s) {
		if p, ok := v.(*ir.Param); ok && forX86(s) && abi.OnStackInParts(s.Func, p) {
			return LostOperand, "is passed on the stack in two parts, and its address is recorded instead", split
		}
		return x87Loss(s, t)
	}
	switch {
	case t.Kind == ir.X86FP80Kind:
		return LostOperand, "has no location unless it is spilled, and then later locations move up", noX87
	case t.Kind == ir.IntKind && t.Bits > 64:
		return NotCompiled, crashes, split
	case t.Kind == ir.PPCFP128Kind && !strings.HasPrefix(arch(s), "powerpc"):
		return NotCompiled, crashes, split
	case (t.Kind == ir.FloatKind || t.Kind == ir.DoubleKind) && sites.MayVanish(s, v):
		return X87Operand, "has no location if compiled without SSE, and then later locations move up", noX87
	case t.Kind != ir.VectorKind:
		return "", "", ""
	}
	return vectorLoss(t, s)
}

// vectorLoss is Loss for a vector operand of a stackmap or patchpoint. The code generator keeps a vector that fills a register of its target, and
// promotes one with as many elements to that, but neither widens nor splits vectors.
func vectorLoss(t *ir.Type, s *ir.Site) (rule Rule, what, do string) {
	const one = "record its elements one by one"
	if t.Scalable && forX86(s) {
		return NotCompiled, "crashes the code generator: x86-64 has no such registers", one
	}
	sizes, known := abi.LaneSizes(t, s.Func.Module.Layout, laneArch(s))
	bfloat := t.Elem.Kind == ir.BFloatKind && forX86(s) // legal with AVX512BF16 alone
	switch {
	case !known:
		return LostOperand, "may have an unknown layout in memory", one
	case len(sizes) == 0:
		return NotCompiled, "crashes the code generator, which must widen or split it", one
	case bfloat, forX86(s) && !slices.Contains(sizes, 16):
		return WideVector, "crashes the code generator unless it compiles for AVX, or AVX-512 for 512 bits and for masks", one
	}
	return "", "", ""
}

const noX87 = "record its bits as integers, or an x86_fp80 as a double"

// x87Loss is the Loss of an operand of a statepoint that is in an x87 register. Other operands of statepoints get a stack slot.
func x87Loss(s *ir.Site, t *ir.Type) (rule Rule, what, do string) {
	switch {
	case t.Kind != ir.X86FP80Kind:
		return "", "", ""
	case deoptLiveIn(s):
		return LostOperand, "has no location if its deopt values are live-in, unless it is spilled; then later locations move up", noX87
	}
	return X87Operand, "has no location with -O0 -use-registers-for-deopt-values, and then later locations move up", noX87
}

// deoptLiveIn reports whether the deopt values of a statepoint may stay in registers that its call overwrites: it has the flag DeoptLiveIn (LLVM's
// Statepoint.h), or the attribute that rewrite-statepoints-for-gc converts to that flag.
func deoptLiveIn(s *ir.Site) bool {
	const flags, liveIn = 4, 1 // the number of gc.statepoint's operand flags, and a bit of that operand
	if s.Instr.Typ.Kind != ir.TokenKind {
		return s.Instr.Call != nil && s.Instr.Call.Attrs["deopt-lowering"] == "live-in"
	}
	if len(s.Instr.Args) <= flags {
		return false
	}
	c, ok := s.Instr.Args[flags].(*ir.Const)
	return ok && c.Kind == ir.ConstInt && c.Int.Bit(liveIn) != 0
}

// laneArch returns the architecture of a site's module in the form of [abi.LaneSizes].
func laneArch(s *ir.Site) string {
	switch name := arch(s); {
	case forX86(s):
		return "amd64"
	case name == "aarch64":
		return "arm64"
	case name == "powerpc64":
		return "ppc64"
	case name == "powerpc64le":
		return "ppc64le"
	default:
		return name
	}
}

// arch returns the first part of a module's triple.
func arch(s *ir.Site) string {
	first, _, _ := strings.Cut(s.Func.Module.Triple, "-")
	return first
}

func forX86(s *ir.Site) bool { return sites.X86Triple(s.Func.Module.Triple) }
