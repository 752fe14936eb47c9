package interp

import (
	"math/bits"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// asmRule describes inline assembly that the interpreter can run: its text as clang emits it, and its operands.
type asmRule struct {
	texts []string
	// operands lists the alternative forms of the constraints, without clobbers.
	operands []string
	width    int // width of each operand in bits, 0 for any width
	// run computes the results from the arguments. If it returns false, the results are undefined. It is nil for a rule without results.
	run func(in *Interp, width int, args []uint64) ([]uint64, bool)
}

// The constraints of an instruction whose destination is not its source, and of one that modifies its operand.
var (
	asmOneToOne = []string{"=r,r", "=&r,r", "=r,rm", "=&r,rm", "=r,g", "=r,mr"}
	asmChanged  = []string{"=r,0", "=&r,0", "={ax},{ax}", "={ax},0", "=q,0", "=Q,0"}
)

// asmRules holds the x86 instructions that programs most often write by hand, one instruction a rule (Intel SDM vol. 2). The interpreter refuses any
// other text.
var asmRules = []asmRule{
	// Fences and hints do nothing: memory accesses are already in order.
	{texts: []string{"mfence", "lfence", "sfence", "pause", "nop", "rep; nop", "rep;nop", "rep nop", "rep ; nop", "cld",
		"lock; addl $$0,0(%rsp)", "lock; addl $$0, 0(%rsp)", "lock; addl $$0,0(%esp)", "lock; addl $$0, 0(%esp)",
		"lock; orl $$0,0(%rsp)", "lock; orl $$0,(%rsp)", "lock orl $$0,(%rsp)", "lock addl $$0,0(%rsp)", "lock addl $$0,-4(%rsp)"},
		operands: []string{""}},
	// The time stamp advances by one with each step, as in clock_gettime.
	{texts: []string{"rdtsc", "rdtscp", "mfence; rdtsc", "lfence; rdtsc", "lfence\n\trdtsc", "mfence\n\trdtsc"}, operands: []string{"={ax},={dx}", "={eax},={edx}"},
		run: func(in *Interp, _ int, _ []uint64) ([]uint64, bool) {
			now := in.run.steps + in.run.bulk
			return []uint64{now & 0xffffffff, now >> 32}, true
		}},
	{texts: []string{"bswap $0", "bswapl $0"}, operands: asmChanged, width: 32, run: asmUnary(swapped)},
	{texts: []string{"bswap $0", "bswapq $0", "bswap ${0:q}"}, operands: asmChanged, width: 64, run: asmUnary(swapped)},
	{texts: []string{"rorw $$8, $0", "rorw $$8,$0", "rorw $$8, ${0:w}", "rorw $$8,${0:w}", "rolw $$8, $0", "rolw $$8,$0", "rolw $$8, ${0:w}", "rolw $$8,${0:w}",
		"xchgb ${0:b},${0:h}", "xchgb ${0:h},${0:b}", "xchgb ${0:b}, ${0:h}", "xchgb ${0:h}, ${0:b}"}, operands: asmChanged, width: 16, run: asmUnary(swapped)},
	{texts: []string{"bsfl $1, $0", "bsfl $1,$0", "bsf $1, $0", "bsf $1,$0"}, operands: asmOneToOne, width: 32, run: scanForward},
	{texts: []string{"bsfq $1, $0", "bsfq $1,$0", "bsf $1, $0", "bsf $1,$0"}, operands: asmOneToOne, width: 64, run: scanForward},
	{texts: []string{"bsrl $1, $0", "bsrl $1,$0", "bsr $1, $0", "bsr $1,$0"}, operands: asmOneToOne, width: 32, run: scanReverse},
	{texts: []string{"bsrq $1, $0", "bsrq $1,$0", "bsr $1, $0", "bsr $1,$0"}, operands: asmOneToOne, width: 64, run: scanReverse},
	{texts: []string{"popcntl $1, $0", "popcntl $1,$0", "popcnt $1, $0", "popcnt $1,$0"}, operands: asmOneToOne, width: 32, run: asmUnary(counted)},
	{texts: []string{"popcntq $1, $0", "popcntq $1,$0", "popcnt $1, $0", "popcnt $1,$0"}, operands: asmOneToOne, width: 64, run: asmUnary(counted)},
	{texts: []string{"tzcntl $1, $0", "tzcntl $1,$0", "tzcnt $1, $0", "tzcnt $1,$0"}, operands: asmOneToOne, width: 32, run: asmUnary(trailing)},
	{texts: []string{"tzcntq $1, $0", "tzcntq $1,$0", "tzcnt $1, $0", "tzcnt $1,$0"}, operands: asmOneToOne, width: 64, run: asmUnary(trailing)},
	{texts: []string{"lzcntl $1, $0", "lzcntl $1,$0", "lzcnt $1, $0", "lzcnt $1,$0"}, operands: asmOneToOne, width: 32, run: asmUnary(leading)},
	{texts: []string{"lzcntq $1, $0", "lzcntq $1,$0", "lzcnt $1, $0", "lzcnt $1,$0"}, operands: asmOneToOne, width: 64, run: asmUnary(leading)},
	{texts: []string{"mulq $3"}, operands: []string{"={ax},={dx},{ax},r", "={ax},={dx},{ax},rm", "={ax},={dx},0,r", "={ax},={dx},0,rm", "={ax},=&{dx},{ax},rm"},
		width: 64, run: func(_ *Interp, _ int, args []uint64) ([]uint64, bool) {
			high, low := bits.Mul64(args[0], args[1])
			return []uint64{low, high}, true
		}},
	// From Snappy: a conditional move that tests the low half of a number, and a number modulo 4 with the zero flag.
	{texts: []string{"testl ${2:k}, ${2:k}\n\tcmovzq $1, $0"}, operands: []string{"=r,r,r,0"}, width: 64,
		run: func(_ *Interp, _ int, args []uint64) ([]uint64, bool) {
			if uint32(args[1]) == 0 {
				return args[:1], true
			}
			return args[2:], true
		}},
	{texts: []string{"and $$3, ${0:k}", "andl $$3, ${0:k}"}, operands: []string{"=r,={@ccz},0"},
		run: func(_ *Interp, _ int, args []uint64) ([]uint64, bool) {
			low := args[0] & 3
			return []uint64{low, truth(low == 0)}, true
		}},
}

func asmUnary(f func(v uint64, width int) uint64) func(*Interp, int, []uint64) ([]uint64, bool) {
	return func(_ *Interp, width int, args []uint64) ([]uint64, bool) { return []uint64{f(args[0], width)}, true }
}

func swapped(v uint64, width int) uint64  { return bits.ReverseBytes64(v) >> (64 - width) }
func counted(v uint64, _ int) uint64      { return uint64(bits.OnesCount64(v)) }
func trailing(v uint64, width int) uint64 { return uint64(min(bits.TrailingZeros64(v), width)) }
func leading(v uint64, width int) uint64  { return uint64(bits.LeadingZeros64(v) - 64 + width) }

// scanForward returns the number of trailing zeros, and false for zero, for which bsf and bsr leave their destination undefined.
func scanForward(_ *Interp, _ int, args []uint64) ([]uint64, bool) {
	return []uint64{uint64(bits.TrailingZeros64(args[0]))}, args[0] != 0
}

func scanReverse(_ *Interp, _ int, args []uint64) ([]uint64, bool) {
	return []uint64{uint64(63 - bits.LeadingZeros64(args[0]))}, args[0] != 0
}

// withoutClobbers removes the clobbers from the constraints of inline assembly, because clobbers do not affect values of LLVM IR.
func withoutClobbers(constraints string) string {
	operands := slices.DeleteFunc(strings.Split(constraints, ","), func(c string) bool { return strings.HasPrefix(c, "~") })
	return strings.Join(operands, ",")
}

// knownAsm returns the rule for inline assembly with operands of these widths, or nil if there is none.
func knownAsm(a *ir.InlineAsm, widths []int) *asmRule {
	text, operands := strings.TrimSpace(strings.ReplaceAll(a.Text, "%%", "%")), withoutClobbers(a.Constraints)
	for k := range asmRules {
		r := &asmRules[k]
		if slices.Contains(r.texts, text) && slices.Contains(r.operands, operands) &&
			!slices.ContainsFunc(widths, func(w int) bool { return r.width != 0 && w != r.width }) {
			return r
		}
	}
	return nil
}

// writtenAsm decodes inline assembly that matches a rule of the table.
func (d *decoder) writtenAsm(i *ir.Instr, a *ir.InlineAsm, out slot) (step, error) {
	refusal := unsupported("build the module without it, or resume a frame further out", "inline assembly %q with %q", clipped(a.Text), clipped(a.Constraints))
	if triple := i.Block.Func.Module.Triple; triple != "" && !ofX86(triple) || !d.in.knowsLists() {
		return nil, refusal
	}
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	var parts []*shape // shapes of the results
	var at []int
	if s := out.s; s != nil && s.words > 0 {
		for k := range max(s.n, 1) {
			part, where := s, 0
			if s.n > 0 {
				part, where, _ = s.part(k)
			}
			parts, at = append(parts, part), append(at, where)
		}
	}
	var widths []int
	for _, s := range args {
		parts = append(parts, s.s)
	}
	for _, s := range parts {
		if s.bits == 0 || s.bits > 64 || s.typ.Kind != ir.IntKind {
			return nil, refusal
		}
		widths = append(widths, s.bits)
	}
	rule := knownAsm(a, widths)
	if rule == nil || len(at) != strings.Count(withoutClobbers(a.Constraints), "=") {
		return nil, refusal
	}
	if rule.run == nil {
		return func(*frame) error { return nil }, nil
	}
	parts = parts[:len(at)]
	unset := out.s.undefined()
	return func(fr *frame) error {
		words := out.in(fr)
		copy(words, unset)
		values := make([]uint64, len(args))
		for k, s := range args {
			w := s.in(fr)
			if !defined(w) {
				return nil
			}
			values[k] = w[0].v
		}
		results, known := rule.run(fr.in, rule.width, values)
		if !known {
			return nil
		}
		for k, s := range parts {
			words[at[k]] = word{v: results[k] & maskAt(s.bits, 0)}
		}
		return nil
	}, nil
}

// clipped cuts a text that is too long for a message.
func clipped(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
