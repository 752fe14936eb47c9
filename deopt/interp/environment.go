package interp

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// environment is the floating-point environment of the thread that a run continues.
type environment struct {
	known bool
	// rules has an entry for each kind of float whose operations differ from those in the default environment.
	rules    map[ir.TypeKind]*floatRules
	rounding [2]uint32 // rounding directions of vector registers and of x87, as llvm.get.rounding encodes them
	text     string    // "" for the default environment
}

// nearestEven is the encoding of the default rounding direction in llvm.get.rounding.
const nearestEven = 1

var defaultRounding = [2]uint32{nearestEven, nearestEven}

// floatRules holds the rules for operations on one kind of float, if they differ from the default environment's. A nil pointer means the default
// rules.
type floatRules struct {
	softfloat.Environment
	text    string // the differences from the default environment
	refusal error  // the error of arithmetic on this kind, nil if arithmetic is supported
}

// Bits of the control registers: MXCSR (Intel SDM vol. 1, 10.2.3), the x87 control word (8.1.5) and FPCR (Arm ARM, C5.2.8).
const (
	mxcsrOperands, mxcsrResults, mxcsrDirection = 1 << 6, 1 << 15, 13
	x87Precision, x87Direction                  = 8, 10
	fpcrFIZ, fpcrAH, fpcrNEP, fpcrFZ16          = 1 << 0, 1 << 1, 1 << 2, 1 << 19
	fpcrFZ, fpcrDefaultNaN, fpcrDirection       = 1 << 24, 1 << 25, 22
)

// The encodings in llvm.get.rounding of the rounding directions, indexed by the direction field of MXCSR and the x87 control word, and by that of
// FPCR.
var (
	x86Directions   = [4]uint32{nearestEven, 3, 2, 0}
	arm64Directions = [4]uint32{nearestEven, 2, 3, 0}
	directionNames  = [4]string{"toward zero", "to nearest", "upward", "downward"}
)

// environmentOf decodes the control registers of a thread.
func environmentOf(a *machine.Arch, c *machine.FloatControl) environment {
	if c == nil || a != machine.AMD64 && a != machine.ARM64 {
		return environment{rounding: defaultRounding}
	}
	e, narrow := environment{known: true, rounding: defaultRounding}, softfloat.Environment{}
	flush := func(set bool) softfloat.Flush {
		if set {
			return softfloat.SignedZero
		}
		return softfloat.Kept
	}
	var texts, long []string
	var narrow16 bool // operations on half follow other rules than those on float
	var unusual string
	if a == machine.AMD64 {
		e.rounding = [2]uint32{x86Directions[c.MXCSR>>mxcsrDirection&3], x86Directions[c.X87>>x87Direction&3]}
		narrow.Operands, narrow.Results = flush(c.MXCSR&mxcsrOperands != 0), flush(c.MXCSR&mxcsrResults != 0)
		if e.rounding[1] != nearestEven {
			long = append(long, "rounding "+directionNames[e.rounding[1]])
		}
		if bits := [4]int{24, 0, 53, 0}[c.X87>>x87Precision&3]; bits != 0 {
			long = append(long, fmt.Sprintf("precision of %d bits", bits))
		}
	} else {
		e.rounding[0] = arm64Directions[c.FPCR>>fpcrDirection&3]
		narrow.Operands, narrow.Results, narrow.TinyBefore = flush(c.FPCR&fpcrFZ != 0), flush(c.FPCR&fpcrFZ != 0), c.FPCR&fpcrFZ != 0
		narrow.DefaultNaN = c.FPCR&fpcrDefaultNaN != 0
		if c.FPCR&(fpcrFIZ|fpcrAH|fpcrNEP) != 0 {
			unusual = fmt.Sprintf("alternate behavior, FPCR %#x", c.FPCR)
		}
		narrow16 = c.FPCR&fpcrFZ16 != 0
	}
	if e.rounding[0] != nearestEven {
		unusual = "rounding " + directionNames[e.rounding[0]]
	}
	half := ""
	if narrow16 {
		half = "half: subnormal numbers are zero"
	}
	for _, text := range []string{unusual, narrow.String(), half} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	e.text = strings.Join(texts, ", ")
	switch {
	case unusual != "":
		e.refuse(narrow, e.text, ir.FloatKind, ir.DoubleKind, ir.FP128Kind)
	case narrow != softfloat.Environment{}:
		e.set(&floatRules{narrow, e.text, nil}, ir.FloatKind, ir.DoubleKind)
	}
	// Compilers compute half and bfloat with library calls or in a wider format; the choice cannot be determined here.
	if unusual != "" || narrow16 || narrow.DefaultNaN {
		e.refuse(narrow, e.text, ir.HalfKind)
	}
	if unusual != "" || narrow16 || narrow != (softfloat.Environment{}) {
		e.refuse(narrow, e.text, ir.BFloatKind)
	}
	if len(long) > 0 {
		text := "x87: " + strings.Join(long, ", ")
		e.refuse(softfloat.Environment{}, text, ir.X86FP80Kind)
		e.text = strings.TrimPrefix(e.text+"; "+text, "; ")
	}
	return e
}

func (e *environment) set(r *floatRules, kinds ...ir.TypeKind) {
	if e.rules == nil {
		e.rules = map[ir.TypeKind]*floatRules{}
	}
	for _, k := range kinds {
		e.rules[k] = r
	}
}

// refuse makes arithmetic on some kinds of float unsupported. Comparisons still flush their operands.
func (e *environment) refuse(env softfloat.Environment, text string, kinds ...ir.TypeKind) {
	for _, k := range kinds {
		r := &floatRules{Environment: env, text: text}
		r.refusal = r.unlike("arithmetic on " + (&ir.Type{Kind: k}).String())
		e.set(r, k)
	}
}

// UsesFloats reports whether any decoded instruction depends on the floating-point environment.
func (in *Interp) UsesFloats() bool { return in.usesFloats }

// FloatEnvironment returns the differences from the default floating-point environment as text, "" for none.
func (in *Interp) FloatEnvironment() string { return in.environment.text }

// rulesOf returns the rules for a kind of float in the function that is decoded. The attribute denormal-fp-math applies only if the thread's
// environment is unknown, because the attribute is only an assumption of the compiler.
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
	env := softfloat.Environment{Operands: flushNamed[operands], Results: flushNamed[results]}
	if env == (softfloat.Environment{}) {
		return nil
	}
	return &floatRules{env, env.String(), nil}
}

// flushNamed maps the modes of denormal-fp-math (LangRef, "Function Attributes"). "ieee" and "dynamic" are absent: they keep subnormal numbers here,
// as the default environment does.
var flushNamed = map[string]softfloat.Flush{"preserve-sign": softfloat.SignedZero, "positive-zero": softfloat.PlainZero}

// unusual reports whether the rules for a float among the shapes can change the result of an operation.
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

// number decodes the operand of an operation. It flushes a subnormal operand if the rules require that.
func (r *floatRules) number(kind ir.TypeKind, w []word) softfloat.Number {
	if r == nil {
		return floatNumber(kind, w)
	}
	return r.Operand(formats[kind], floatNumber(kind, w))
}

// exact returns the rules for operations whose results are exact, so that they need no rounding, and are not flushed.
func (r *floatRules) exact() *floatRules {
	if r == nil {
		return nil
	}
	return &floatRules{softfloat.Environment{Operands: r.Operands, DefaultNaN: r.DefaultNaN}, r.text, r.refusal}
}

// set rounds the result of an operation by the rules, and stores it in dst.
func (r *floatRules) set(kind ir.TypeKind, dst []word, n softfloat.Number) {
	if r == nil {
		setFloat(kind, dst, n)
		return
	}
	f := formats[kind]
	setBig(dst, r.Encode(f, n), f.Bits())
}

// remainder computes frem, whose result is exact. Compiled code calls the C library for frem. If the thread flushes subnormal numbers and an operand
// or the result is subnormal, remainder returns an error, because the library's version determines the result.
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

// unlike returns the error for an operation that is not supported under these rules.
func (r *floatRules) unlike(what string) error {
	return unsupported("", "%s in the floating-point environment of the thread (%s)", what, r.text)
}

// unlikeOperand returns an error if the rules for the intrinsic's first operand differ from the default environment's.
func (d *decoder) unlikeOperand(i *ir.Instr, args []slot) error {
	if len(args) > 0 {
		lane, _ := args[0].s.lane()
		if r := d.rulesOf(lane.typ.Kind); r != nil {
			return r.unlike(i.Call.Callee.Ref())
		}
	}
	return nil
}

// softFunc computes a function of floats, or returns an error if it does not support the operands. The caller does not flush the operands.
type softFunc func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error)

// function adapts the float function x to the rules. It also returns the rules for rounding its result. It returns nil for the default rules.
func (r *floatRules) function(x laneFunc, i *ir.Instr) (softFunc, *floatRules, error) {
	if r == nil {
		return nil, nil, nil
	}
	if r.refusal != nil {
		return nil, nil, r.refusal
	}
	name := strings.TrimPrefix(strings.TrimPrefix(i.Call.Callee.Ref(), "@"), "llvm.")
	_, key, _ := overloaded(floatIntrinsics, strings.TrimPrefix(name, constrainedPrefix))
	plain := func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error) {
		v = slices.Clone(v)
		for k := range v {
			v[k] = r.Operand(f, v[k])
		}
		if key == "fmuladd" {
			product := f.Decode(r.Encode(f, softfloat.Mul(v[0], v[1])))
			return softfloat.Add(r.Operand(f, product), v[2]), nil
		}
		return x.soft(f, v), nil
	}
	switch key {
	case "sqrt", "canonicalize", "fma", "fmuladd":
		return plain, r, nil
	case "minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum":
		return plain, r.exact(), nil
	}
	return func(f softfloat.Format, v []softfloat.Number) (softfloat.Number, error) {
		n := x.soft(f, v)
		return n, r.settled(f, key, append([]softfloat.Number{n}, v...)...)
	}, r.exact(), nil
}

// conversion returns a conversion from or to a float by rules that differ from the default environment's. It returns nil if the default conversion
// has the same results.
func (d *decoder) conversion(i *ir.Instr, from, to *shape) (func(dst, src []word) error, error) {
	p, q := from.typ.Kind, to.typ.Kind
	hardware := func(k ir.TypeKind) bool { return k == ir.FloatKind || k == ir.DoubleKind }
	r, signed := d.rulesOf(q), i.Op == ir.OpSIToFP || i.Flags&ir.NNeg != 0
	var number func(src []word) softfloat.Number
	switch i.Op {
	case ir.OpFPExt:
		if !hardware(p) || !hardware(q) {
			return nil, nil // computed exactly by integer code or by x87
		}
		r = r.exact()
		number = func(src []word) softfloat.Number { return r.number(p, src) }
	case ir.OpFPTrunc:
		if x := d.rulesOf(p); x != nil && x.refusal != nil {
			return nil, x.refusal
		}
		if r != nil && r.refusal == nil && !hardware(p) {
			return nil, nil // x87 flushes nothing, and a library function computes the conversion of other types
		}
		number = func(src []word) softfloat.Number { return r.number(p, src) }
	case ir.OpSIToFP, ir.OpUIToFP:
		number = func(src []word) softfloat.Number {
			if signed {
				return softfloat.FromInt(toSigned(src, from.bits))
			}
			return softfloat.FromInt(toBig(src))
		}
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
		n := number(src)
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

// exactFuncs are functions of the C library that never round their results.
var exactFuncs = map[string]bool{
	"floor": true, "ceil": true, "trunc": true, "round": true, "roundeven": true, "fmin": true, "fmax": true, "fmod": true, "remainder": true, "drem": true,
	"logb": true, "ilogb": true, "lround": true, "llround": true, "frexp": true, "modf": true,
}

// bitFuncs are functions of the C library that only inspect or copy bits of a float, and flush nothing.
var bitFuncs = map[string]bool{
	"fabs": true, "copysign": true, "isnan": true, "isinf": true, "finite": true, "signbit": true, "nan": true,
	"__isnan": true, "__isinf": true, "__finite": true, "__signbit": true,
}

// inEnvironment runs a built-in function. It returns an error for a function of floats whose result may depend on a floating-point environment that
// is not the default one.
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
	if e.rounding != defaultRounding && strings.Contains(name, "printf") && (len(kinds) > 0 || strings.HasPrefix(strings.TrimLeft(name, "_"), "v")) {
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
	if (r.refusal != nil || r.DefaultNaN) && !exactFuncs[base] {
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

// getRounding implements llvm.get.rounding, which x86-64 reads from the x87 control word.
func getRounding(d *decoder, _ *ir.Instr, _ []slot, out slot) (step, error) {
	v := d.in.environment.rounding[0]
	if d.in.opt.Arch == machine.AMD64 {
		v = d.in.environment.rounding[1]
	}
	return func(fr *frame) error {
		fr.w[out.at] = word{v: uint64(v)}
		return nil
	}, nil
}
