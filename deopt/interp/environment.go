package interp

import (
	"strings"

	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// environment is the floating-point environment of the thread that a run continues.
type environment struct {
	known bool
	// rules holds the rules of each kind of float whose operations differ from those in the default environment.
	rules     map[ir.TypeKind]*floatRules
	direction softfloat.Direction // rounding direction of floats and doubles
	x87       softfloat.Direction
	text      string // "" for the default environment
}

// floatRules holds the rules by which operations on one kind of float compute, where these differ from the defaults. A nil pointer means the
// defaults.
type floatRules struct {
	softfloat.Environment
	long    bool  // set for x86_fp80, whose functions are those of the C library alone
	refusal error // not nil where arithmetic on this kind is not supported
}

// Bits of the control registers: MXCSR (Intel SDM vol. 1, 10.2.3), the x87 control word (8.1.5) and FPCR (Arm ARM, C5.2.8).
const (
	mxcsrOperands, mxcsrResults, mxcsrDirection = 1 << 6, 1 << 15, 13
	x87Precision, x87Direction                  = 8, 10
	fpcrFIZ, fpcrAH, fpcrNEP, fpcrFZ16          = 1 << 0, 1 << 1, 1 << 2, 1 << 19
	fpcrFZ, fpcrDefaultNaN, fpcrDirection       = 1 << 24, 1 << 25, 22
)

// The rounding directions by their numbers in MXCSR and the x87 control word, and in FPCR.
var (
	x86Directions   = [4]softfloat.Direction{softfloat.Nearest, softfloat.Downward, softfloat.Upward, softfloat.TowardZero}
	arm64Directions = [4]softfloat.Direction{softfloat.Nearest, softfloat.Upward, softfloat.Downward, softfloat.TowardZero}
)

// environmentOf decodes the control registers of a thread.
func environmentOf(a *machine.Arch, c *machine.FloatControl) environment {
	if c == nil || a != machine.AMD64 && a != machine.ARM64 {
		return environment{}
	}
	e, narrow := environment{known: true}, softfloat.Environment{}
	var unsupported16 bool // arithmetic on half is not supported
	flush := func(set bool) softfloat.Flush {
		if set {
			return softfloat.SignedZero
		}
		return softfloat.Kept
	}
	var refusal error
	if a == machine.AMD64 {
		narrow.Direction = x86Directions[c.MXCSR>>mxcsrDirection&3]
		narrow.Operands, narrow.Results = flush(c.MXCSR&mxcsrOperands != 0), flush(c.MXCSR&mxcsrResults != 0)
		e.x87 = x86Directions[c.X87>>x87Direction&3]
		long := softfloat.Environment{Direction: e.x87, Precision: [4]int{24, 0, 53, 0}[c.X87>>x87Precision&3]}
		if long != (softfloat.Environment{}) {
			e.text = "x87: " + long.String()
			e.set(long, nil, ir.X86FP80Kind)
		}
	} else {
		narrow.Direction = arm64Directions[c.FPCR>>fpcrDirection&3]
		narrow.Operands, narrow.Results, narrow.TinyBefore = flush(c.FPCR&fpcrFZ != 0), flush(c.FPCR&fpcrFZ != 0), c.FPCR&fpcrFZ != 0
		narrow.DefaultNaN = c.FPCR&fpcrDefaultNaN != 0
		if c.FPCR&(fpcrFIZ|fpcrAH|fpcrNEP) != 0 {
			refusal = unsupported("", "floating-point arithmetic with FPCR %#x (alternate behavior)", c.FPCR)
		}
		unsupported16 = c.FPCR&fpcrFZ16 != 0
	}
	e.direction = narrow.Direction
	if narrow == (softfloat.Environment{}) && refusal == nil && !unsupported16 {
		return e
	}
	if text := narrow.String(); text != "" {
		e.text = strings.TrimSuffix(text+"; "+e.text, "; ")
	}
	e.set(narrow, refusal, ir.FloatKind, ir.DoubleKind)
	// Compilers compute these types with library calls or in a wider format; the choice cannot be determined here.
	why := func(kind string) error {
		return unsupported("", "arithmetic on %s in the floating-point environment of the thread (%v)", kind, narrow)
	}
	if narrow.Direction != softfloat.Nearest || unsupported16 || narrow.DefaultNaN || refusal != nil {
		e.set(narrow, why("half"), ir.HalfKind)
	}
	e.set(narrow, why("bfloat"), ir.BFloatKind)
	if narrow.Direction != softfloat.Nearest {
		e.set(narrow, why("fp128"), ir.FP128Kind)
	}
	return e
}

func (e *environment) set(env softfloat.Environment, refusal error, kinds ...ir.TypeKind) {
	if e.rules == nil {
		e.rules = map[ir.TypeKind]*floatRules{}
	}
	for _, k := range kinds {
		e.rules[k] = &floatRules{env, k == ir.X86FP80Kind, refusal}
	}
}

// UsesFloats reports whether any decoded instruction depends on the floating-point environment.
func (in *Interp) UsesFloats() bool { return in.usesFloats }

// FloatEnvironment returns the differences from the default floating-point environment as text, "" for none.
func (in *Interp) FloatEnvironment() string { return in.environment.text }

// rulesOf returns the rules for a kind of float in the function. The thread's mode wins where it is known, because the attribute denormal-fp-math is
// only the compiler's assumption about it.
func (d *decoder) rulesOf(kind ir.TypeKind) *floatRules {
	if _, ok := formats[kind]; !ok {
		return nil
	}
	d.in.usesFloats = true
	if e := &d.in.environment; e.known {
		return e.rules[kind]
	}
	if kind != ir.FloatKind && kind != ir.DoubleKind {
		return nil
	}
	mode := d.fn.ir.StringAttribute("denormal-fp-math")
	if m := d.fn.ir.StringAttribute("denormal-fp-math-f32"); m != "" && kind == ir.FloatKind {
		mode = m
	}
	results, operands, both := strings.Cut(mode, ",")
	if !both {
		operands = results
	}
	r := &floatRules{Environment: softfloat.Environment{Operands: flushNamed[operands], Results: flushNamed[results]}}
	if r.Environment == (softfloat.Environment{}) {
		return nil
	}
	return r
}

// flushNamed maps the modes of denormal-fp-math (LangRef, "Function Attributes"). "ieee" and "dynamic" are absent: they keep subnormal numbers here,
// as the default environment does.
var flushNamed = map[string]softfloat.Flush{"preserve-sign": softfloat.SignedZero, "positive-zero": softfloat.PlainZero}

// unusual reports whether the environment is not the default one and changes the result of an instruction.
func (d *decoder) unusual(op ir.Op, shapes ...*shape) bool {
	switch op {
	case ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv, ir.OpFRem, ir.OpFCmp, ir.OpFPTrunc, ir.OpFPExt, ir.OpSIToFP, ir.OpUIToFP:
		for _, s := range shapes {
			if lane, _ := s.lane(); d.rulesOf(lane.typ.Kind) != nil {
				return true
			}
		}
	}
	return false
}

// number decodes a float as an operation sees it, with subnormal operands flushed if the environment does so.
func (r *floatRules) number(kind ir.TypeKind, w []word) softfloat.Number {
	if r == nil {
		return floatNumber(kind, w)
	}
	return r.Operand(formats[kind], floatNumber(kind, w))
}

// exact returns the rules for operations that neither round nor flush their results.
func (r *floatRules) exact() *floatRules {
	if r == nil {
		return nil
	}
	return &floatRules{Environment: softfloat.Environment{Operands: r.Operands, DefaultNaN: r.DefaultNaN}, refusal: r.refusal}
}

// set rounds the result of arithmetic into words.
func (r *floatRules) set(kind ir.TypeKind, dst []word, n softfloat.Number) {
	if r == nil {
		setFloat(kind, dst, n)
		return
	}
	f := formats[kind]
	setBig(dst, r.Encode(f, n, true), f.Bits())
}

// arith computes an operation exactly; the caller rounds the result.
func (r *floatRules) arith(op ir.Op, f softfloat.Format, x, y softfloat.Number) softfloat.Number {
	switch {
	case op == ir.OpFAdd:
		return r.Sum(x, y)
	case op == ir.OpFSub && y.Class != softfloat.NaN:
		return r.Sum(x, y.Negated())
	}
	return softOp(op, f, x, y)
}

// remainder computes frem, for which compiled code calls the C library. The result is exact. If the thread flushes subnormal numbers and one occurs,
// remainder refuses: the result depends on the library's version.
func (r *floatRules) remainder(kind ir.TypeKind, dst, x, y []word) error {
	if r.refusal != nil {
		return r.refusal
	}
	f := formats[kind]
	v := []softfloat.Number{floatNumber(kind, x), floatNumber(kind, y)}
	n := softfloat.Rem(v[0], v[1])
	if err := r.settled(f, "frem", append(v, n)...); err != nil {
		return err
	}
	r.exact().set(kind, dst, n)
	return nil
}

// settled returns an error if one of the numbers is subnormal and the environment flushes subnormal numbers.
func (r *floatRules) settled(f softfloat.Format, what string, list ...softfloat.Number) error {
	if r.Operands == softfloat.Kept && r.Results == softfloat.Kept {
		return nil
	}
	flush := softfloat.Environment{Operands: softfloat.SignedZero}
	for _, n := range list {
		if n.Class == softfloat.Finite && flush.Operand(f, n).Class == softfloat.Zero {
			return unsupported("", "%s of or to a subnormal number while the thread flushes them to zero", what)
		}
	}
	return nil
}

// unlike returns the error for an operation that is not supported in this environment.
func (r *floatRules) unlike(what string) error {
	return unsupported("", "%s in the floating-point environment of the thread (%v)", what, r.Environment)
}

// unlikeOperand returns an error for an intrinsic on a float that has special rules.
func (d *decoder) unlikeOperand(i *ir.Instr, args []slot) error {
	if len(args) > 0 {
		lane, _ := args[0].s.lane()
		if r := d.rulesOf(lane.typ.Kind); r != nil {
			return r.unlike(i.Call.Callee.Ref())
		}
	}
	return nil
}

// wholeDirection returns the direction of an intrinsic that rounds to an integer. Only rounding to nearest, as in lrint, follows the environment.
func (d *decoder) wholeDirection(to softfloat.Rounding, args []slot) (softfloat.Rounding, error) {
	if len(args) == 0 {
		return to, nil
	}
	lane, _ := args[0].s.lane()
	r := d.rulesOf(lane.typ.Kind)
	switch {
	case r == nil:
		return to, nil
	case r.refusal != nil:
		return to, r.refusal
	case to == softfloat.TiesToEven:
		return r.Direction.Whole(), nil
	}
	return to, nil
}

// softFunc is a function of floats that may refuse its operands. It receives them without flushing.
type softFunc func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error)

// sameEverywhere lists functions that round to an integer in one direction, independent of the environment.
var sameEverywhere = map[string]bool{"floor": true, "ceil": true, "trunc": true, "roundeven": true, "round": true}

// function returns an intrinsic for an environment that is not the default one, and the rules for its result.
func (r *floatRules) function(x laneFunc, i *ir.Instr) (softFunc, *floatRules, error) {
	if r == nil {
		return nil, nil, nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(i.Call.Callee.Ref(), "@"), "llvm.")
	_, key, _ := overloaded(floatIntrinsics, strings.TrimPrefix(name, constrainedPrefix))
	f, out := r.named(key, x)
	if r.refusal != nil {
		return nil, nil, r.refusal
	}
	if f == nil {
		return nil, nil, r.unlike(i.Call.Callee.Ref())
	}
	return f, out, nil
}

// named returns the function with that name, nil if it is not supported.
func (r *floatRules) named(name string, x laneFunc) (softFunc, *floatRules) {
	operands := func(f softfloat.Format, v []softfloat.Number) []softfloat.Number {
		var list []softfloat.Number
		for _, n := range v {
			list = append(list, r.Operand(f, n))
		}
		return list
	}
	plain := func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error) {
		return x.soft(f, operands(f, v)), nil
	}
	switch name {
	case "sqrt":
		return plain, r
	case "canonicalize", "fma":
		if r.long {
			return nil, nil
		}
		if name == "canonicalize" {
			return plain, r
		}
		return func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error) {
			v = operands(f, v)
			return r.MultiplyAdd(v[0], v[1], v[2]), nil
		}, r
	case "fmuladd":
		return func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error) {
			v = operands(f, v)
			product := f.Decode(r.Encode(f, softfloat.Mul(v[0], v[1]), true))
			return r.Sum(r.Operand(f, product), v[2]), nil
		}, r
	case "rint", "nearbyint":
		return func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error) {
			if err := r.settled(f, name, v...); err != nil {
				return v[0], err
			}
			return v[0].Round(r.Direction.Whole()), nil
		}, r.exact()
	case "minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum":
		return plain, r.exact()
	}
	if r.Direction != softfloat.Nearest && (!sameEverywhere[name] || name == "round") || r.long && !sameEverywhere[name] {
		return nil, nil
	}
	return func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error) {
		n := x.soft(f, v)
		return n, r.settled(f, name, append([]softfloat.Number{n}, v...)...)
	}, r.exact()
}

// conversion returns a conversion from or to a float for an environment that is not the default one. It returns nil where the default conversion is
// right.
func (d *decoder) conversion(i *ir.Instr, from, to *shape) (func(dst, src []word) error, error) {
	p, q := from.typ.Kind, to.typ.Kind
	hardware := func(k ir.TypeKind) bool { return k == ir.FloatKind || k == ir.DoubleKind }
	var number func(src []word) (softfloat.Number, error)
	var r *floatRules
	switch i.Op {
	case ir.OpFPExt:
		if r = d.rulesOf(q).exact(); r == nil || !hardware(p) || !hardware(q) {
			return nil, nil // computed exactly by integer code or by x87
		}
		number = func(src []word) (softfloat.Number, error) { return r.number(p, src), nil }
	case ir.OpFPTrunc:
		switch narrow := d.rulesOf(q); {
		case p == ir.X86FP80Kind && hardware(q):
			if long := d.rulesOf(p); long != nil {
				r = &floatRules{Environment: softfloat.Environment{Direction: long.Direction}}
			} else if narrow != nil {
				r = &floatRules{}
			} else {
				return nil, nil
			}
		case hardware(p) && hardware(q):
			r = narrow
		default:
			for _, x := range []*floatRules{d.rulesOf(p), narrow} {
				if x != nil && x.refusal != nil {
					return nil, x.refusal
				}
			}
			if x := d.rulesOf(p); p == ir.X86FP80Kind && x != nil {
				return nil, x.unlike(i.Op.String())
			}
			return nil, nil
		}
		number = func(src []word) (softfloat.Number, error) { return r.number(p, src), nil }
	case ir.OpSIToFP, ir.OpUIToFP:
		if r = d.rulesOf(q); r == nil {
			return nil, nil
		}
		if r.refusal != nil {
			return nil, r.refusal
		}
		if from.bits > 64 {
			return nil, r.unlike(i.Op.String() + " from more than 64 bits")
		}
		number = r.integer(i, from, to)
	default:
		return nil, nil
	}
	if r == nil || r.refusal != nil {
		if r != nil {
			return nil, r.refusal
		}
		return nil, nil
	}
	return func(dst, src []word) error {
		if !defined(src) {
			unknownWords(dst, to.bits, src)
			return nil
		}
		n, err := number(src)
		if err != nil {
			return err
		}
		if i.Flags&ir.NNeg != 0 && n.Neg {
			poisonWords(dst, to.bits)
			return nil
		}
		r.set(q, dst, n)
		if from.typ.Float() && !promised(i.Flags, p, src) || !promised(i.Flags, q, dst) {
			poisonWords(dst, to.bits)
		}
		return nil
	}, nil
}

// integer returns the function that reads the integers of a conversion to a float.
func (r *floatRules) integer(i *ir.Instr, from, to *shape) func(src []word) (softfloat.Number, error) {
	signed := i.Op == ir.OpSIToFP || i.Flags&ir.NNeg != 0
	return func(src []word) (softfloat.Number, error) {
		if signed {
			return softfloat.FromInt(toSigned(src, from.bits)), nil
		}
		n := softfloat.FromInt(toBig(src))
		if n.Class == softfloat.Zero && r.Direction == softfloat.Downward && to.typ.Kind != ir.X86FP80Kind {
			// Code for processors without such an instruction subtracts a constant from itself, which gives -0 here. The instruction gives +0.
			return n, unsupported("", "uitofp of 0 while the thread rounds downward")
		}
		return n, nil
	}
}

// exactFuncs are functions of the C library that never round their results.
var exactFuncs = map[string]bool{
	"floor": true, "ceil": true, "trunc": true, "round": true, "roundeven": true, "fmin": true, "fmax": true, "fmod": true, "remainder": true, "drem": true,
	"logb": true, "ilogb": true, "lround": true, "llround": true, "frexp": true, "modf": true,
}

// bitFuncs only inspect or copy bits of a float, and flush nothing.
var bitFuncs = map[string]bool{
	"fabs": true, "copysign": true, "isnan": true, "isinf": true, "finite": true, "signbit": true, "nan": true,
	"__isnan": true, "__isinf": true, "__finite": true, "__signbit": true,
}

// inEnvironment runs a built-in function. It refuses a function of floats whose result may depend on an environment that is not the default one.
func (in *Interp) inEnvironment(c *Invocation, f *external) (Value, error) {
	e := &in.environment
	if e.rules == nil || f.Effect == EffectNative || in.opt.Funcs[c.Name] != nil {
		return f.run(c)
	}
	var kinds []ir.TypeKind
	note := func(s *shape) {
		if s == nil || s.bits == 0 && s.n == 0 {
			return
		}
		if lane, _ := s.lane(); lane.typ.Float() {
			kinds = append(kinds, lane.typ.Kind)
		}
	}
	for _, a := range c.Args {
		note(a.s)
	}
	note(c.ret)
	name := c.Name
	if e.direction != softfloat.Nearest && strings.Contains(name, "printf") && (len(kinds) > 0 || strings.HasPrefix(strings.TrimLeft(name, "_"), "v")) {
		return Value{}, unsupported("", "@%s while the thread does not round to nearest", c.Name)
	}
	var r *floatRules
	for _, k := range kinds {
		if x := e.rules[k]; x != nil {
			r = x
		}
	}
	if r == nil {
		return f.run(c)
	}
	base := name
	if k := len(base) - 1; k > 0 && base[k] == 'f' && !bitFuncs[base] && !exactFuncs[base] {
		base = base[:k]
	}
	if bitFuncs[base] {
		return f.run(c)
	}
	if v, done, err := in.inDirection(c, base, r); done || err != nil {
		return v, err
	}
	if (r.Direction != softfloat.Nearest || r.long || r.DefaultNaN) && !exactFuncs[base] {
		return Value{}, r.unlike("@" + c.Name)
	}
	v, err := f.run(c)
	if err != nil {
		return v, err
	}
	for _, x := range append([]Value{v}, c.Args...) {
		if x.s == nil || !defined(x.w) || formats[x.s.typ.Kind] == (softfloat.Format{}) {
			continue
		}
		if err := r.settled(formats[x.s.typ.Kind], "@"+c.Name, floatNumber(x.s.typ.Kind, x.w)); err != nil {
			return Value{}, err
		}
	}
	return v, nil
}

// inDirection runs functions that follow the rounding direction of the environment; done is false for others.
func (in *Interp) inDirection(c *Invocation, name string, r *floatRules) (v Value, done bool, err error) {
	x, ok := floatIntrinsics[name]
	if n, is := x.(noted); is {
		x = n.floatIntrinsic
	}
	lanes, is := x.(laneFunc)
	hardware := c.ret != nil && (c.ret.typ.Kind == ir.FloatKind || c.ret.typ.Kind == ir.DoubleKind)
	if !ok || !is || !hardware || len(c.Args) < lanes.args || name != "sqrt" && name != "fma" && name != "rint" && name != "nearbyint" {
		return Value{}, false, nil
	}
	kind := c.ret.typ.Kind
	var list []softfloat.Number
	for k := range lanes.args {
		a := c.Args[k]
		if a.s == nil || a.s.typ.Kind != kind || !defined(a.w) {
			return Value{}, false, nil
		}
		list = append(list, floatNumber(kind, a.w))
	}
	soft, out := r.named(name, lanes)
	if r.refusal != nil || soft == nil {
		return Value{}, false, nil
	}
	n, err := soft(formats[kind], list)
	if err != nil {
		return Value{}, true, err
	}
	w := make([]word, c.ret.words)
	out.set(kind, w, n)
	return Value{c.ret, w}, true, nil
}

// getRounding implements llvm.get.rounding, which x86-64 reads from the x87 control word.
func getRounding(d *decoder, _ *ir.Instr, _ []slot, out slot) (step, error) {
	direction := d.in.environment.direction
	if d.in.opt.Arch == machine.AMD64 {
		direction = d.in.environment.x87
	}
	v := map[softfloat.Direction]uint64{softfloat.TowardZero: 0, softfloat.Nearest: 1, softfloat.Upward: 2, softfloat.Downward: 3}[direction]
	return func(fr *frame) error {
		fr.w[out.at] = word{v: v}
		return nil
	}, nil
}

// roundingNamed maps the direction names of constrained intrinsics (LangRef, "Constrained Floating-Point Intrinsics").
var roundingNamed = map[string]softfloat.Direction{
	"round.tonearest": softfloat.Nearest, "round.downward": softfloat.Downward, "round.upward": softfloat.Upward, "round.towardzero": softfloat.TowardZero,
}
