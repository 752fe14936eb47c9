package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// constrainedOps are the constrained intrinsics that correspond to instructions. Each other constrained intrinsic corresponds to an intrinsic of the
// same name (LangRef, "Constrained Floating-Point Intrinsics").
var constrainedOps = map[string]ir.Op{
	"fadd": ir.OpFAdd, "fsub": ir.OpFSub, "fmul": ir.OpFMul, "fdiv": ir.OpFDiv, "frem": ir.OpFRem,
	"fptoui": ir.OpFPToUI, "fptosi": ir.OpFPToSI, "uitofp": ir.OpUIToFP, "sitofp": ir.OpSIToFP,
	"fptrunc": ir.OpFPTrunc, "fpext": ir.OpFPExt, "fcmp": ir.OpFCmp, "fcmps": ir.OpFCmp,
}

const constrainedPrefix = "experimental.constrained."

// constrained decodes a constrained intrinsic as the unconstrained operation, in the thread's floating-point environment. This is the same, because
// no instruction here changes the rounding mode or reads exception flags. It refuses an intrinsic that names a rounding mode other than to nearest.
func (d *decoder) constrained(i *ir.Instr, name string, out slot) (step, error) {
	plain := *i
	plain.Args = nil
	for _, a := range i.Args {
		m, ok := a.(*ir.Metadata)
		if !ok {
			plain.Args = append(plain.Args, a)
			continue
		}
		switch text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(m.Text), "metadata"), " !\""); {
		case floatPredicateNamed(text):
			plain.Pred = text
		case strings.HasPrefix(text, "fpexcept."), text == "round.dynamic":
		default:
			if text != "round.tonearest" || d.in.environment.rounding[0] != nearestEven {
				return nil, unsupported("", "the rounding mode %q", text)
			}
		}
	}
	for key := name; ; {
		if op, ok := constrainedOps[key]; ok {
			plain.Op, plain.Call = op, nil
			return d.operation(&plain, out)
		}
		if f := floatIntrinsics[key]; f != nil {
			args, err := d.operands(&plain, len(plain.Args))
			if err != nil {
				return nil, err
			}
			return f.decode(d, &plain, args, out)
		}
		dot := strings.LastIndexByte(key, '.')
		if dot < 0 {
			return nil, unsupported("", "the intrinsic %s", i.Call.Callee.Ref())
		}
		key = key[:dot]
	}
}

func floatPredicateNamed(text string) bool {
	_, ok := floatPredicates[text]
	return ok
}
