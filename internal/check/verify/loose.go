package verify

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// anyResult are the flags of operations that may give one of several results.
const anyResult = ir.NoSignedZeros | ir.AllowReciprocal | ir.AllowContract | ir.ApproxFunc | ir.Reassoc

// The C standard leaves the exact results of these functions open. Functions with the effect [interp.EffectMath] are not listed.
var (
	// Only the sign of the result is defined (C17 7.24.4; for bcmp only whether it is zero): LLVM's inline memcmp returns -1 and 1, that of the C
	// library the difference.
	signs = []string{"memcmp", "bcmp", "strcmp", "strncmp", "strcoll", "strcasecmp", "strncasecmp"}
	// The number of comparisons and the order of equal elements are unspecified (C17 7.22.5).
	orders = []string{"qsort", "qsort_r", "bsearch"}
	// The result may be either of 0.0 and -0.0 (C17 F.10.9.2, LangRef "llvm.minnum.*").
	zeros = strings.Fields("fmin fminf fminl fmax fmaxf fmaxl llvm.minnum llvm.maxnum")
	// IEEE 754 defines the last digit of these functions: they have the effect EffectMath only because of errno.
	exact = strings.Fields("sqrt sqrtf fmod fmodf remainder remainderf drem dremf fdim fdimf fma fmaf ldexp ldexpf scalbn scalbnf scalbln scalblnf logb logbf nextafter nextafterf")
)

// loose returns the reason why native code and the interpreter may differ although both are right, or "".
func (p *prediction) loose() string {
	blocks := p.interp.machine.Profile()
	for _, c := range p.interp.called() {
		switch {
		case c.Effect == interp.EffectMath && !slices.Contains(exact, c.Name):
			return fmt.Sprintf("it calls @%s, of which the last place may differ, and so does what comes of it", c.Name)
		case slices.Contains(orders, c.Name):
			return fmt.Sprintf("it calls @%s, which may compare in another order, and so differs what comes of it", c.Name)
		case slices.Contains(signs, c.Name) && !onlySign(blocks, c.Name):
			return fmt.Sprintf("it calls @%s, of which only the sign is certain, and uses the number", c.Name)
		}
	}
	for _, b := range blocks {
		for _, i := range b.Block.Instrs {
			if i.Flags&anyResult != 0 {
				return fmt.Sprintf("fast-math flags in @%s allow several results, and they differ", b.Block.Func.Name)
			}
			if name := eitherZero(i); name != "" {
				return fmt.Sprintf("it calls @%s, which may give either of 0.0 and -0.0, and so differs what comes of it", name)
			}
		}
	}
	return ""
}

// eitherZero returns the called function of zeros, or "".
func eitherZero(i *ir.Instr) string {
	if i.Call == nil {
		return ""
	}
	name := sites.CalledName(i)
	if strings.HasPrefix(name, "llvm.") { // the type is the suffix
		name = name[:strings.LastIndexByte(name, '.')]
	}
	if !slices.Contains(zeros, name) {
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
			if !heldAgainstZero(i) {
				return false
			}
			seen = true
		}
	}
	return seen
}

// heldAgainstZero reports whether every use of the result of a call is a comparison with zero. Uses in bundles do not count.
func heldAgainstZero(call *ir.Instr) bool {
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
