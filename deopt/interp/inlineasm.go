package interp

import (
	"strconv"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// inlineAsm decodes a call of inline assembly. Most inline assembly has an empty text, because programs use it as an optimization barrier. An empty
// text does nothing: an output that is tied to an input has the input's value, and any other output is undefined.
func (d *decoder) inlineAsm(i *ir.Instr, a *ir.InlineAsm, out slot) (step, error) {
	if !a.Empty() {
		return d.writtenAsm(i, a, out)
	}
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	ties, ok := tiesOf(a.Constraints, len(args))
	if !ok {
		return nil, wrongUse(i)
	}
	if len(ties) == 0 || out.s == nil || out.s.words == 0 {
		return func(*frame) error { return nil }, nil
	}
	if len(ties) > 1 && len(ties) != out.s.n {
		return nil, wrongUse(i)
	}
	unset := out.s.undefined()
	return func(fr *frame) error {
		words := out.in(fr)
		copy(words, unset)
		for k, arg := range ties {
			if arg < 0 {
				continue
			}
			part, at := out.s, 0
			if len(ties) > 1 {
				part, at, _ = out.s.part(k)
			}
			if !alike(part, args[arg].s) {
				return unsupported("", "inline assembly that takes %v for %v", args[arg].s.typ, part.typ)
			}
			copy(words[at:at+part.words], args[arg].in(fr))
		}
		return nil
	}, nil
}

// tiesOf returns for each result the index of the argument that shares its register or memory, or -1 (LangRef, "Inline Asm Constraint String"). It
// returns false if the constraints do not match the number of arguments.
func tiesOf(constraints string, args int) (ties []int, ok bool) {
	var results []int // for each operand: index of the result, or -1 for an input
	arg := 0
	for _, c := range strings.Split(constraints, ",") {
		result := -1
		switch {
		case c == "" || c[0] == '~' || c[0] == '!':
			continue // a clobber or a label is not an operand
		case c[0] == '=' && !strings.Contains(c, "*"):
			result = len(ties)
			ties = append(ties, -1)
		default:
			if n, err := strconv.Atoi(c); err == nil {
				if n < 0 || n >= len(results) || results[n] < 0 {
					return nil, false
				}
				ties[results[n]] = arg
			}
			arg++
		}
		results = append(results, result)
	}
	return ties, arg == args
}
