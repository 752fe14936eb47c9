package interp

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// shortWay is the fast path of an operation on at most three scalars of one word with all bits known. It returns the result, or false if the step
// must compute it, for example because the result is poison or an error. Bits above the width are clear in operands and results.
type shortWay func(a, b, c uint64) (uint64, bool)

// shortPair is the fast path of an operation on two scalars that returns a number and whether the operation overflowed, such as
// llvm.sadd.with.overflow.
type shortPair func(a, b uint64) (uint64, bool)

// shorten makes f the fast path of an instruction.
func (d *decoder) shorten(c *inst, f shortWay, out slot, args ...slot) {
	c.op, c.k, c.dst = opShort, uint64(len(d.fn.shorts)), int32(out.at)
	d.fn.shorts = append(d.fn.shorts, f)
	c.a = int32(args[0].at)
	c.b, c.c = c.a, c.a
	if len(args) > 1 {
		c.b = int32(args[1].at)
	}
	if len(args) > 2 {
		c.c = int32(args[2].at)
	}
}

// quickCall selects the fast path for a call of an intrinsic, if it has one.
func (d *decoder) quickCall(c *inst, i *ir.Instr, out slot) {
	f, ok := i.Call.Callee.(*ir.Func)
	if !ok || !f.Declared() || !strings.HasPrefix(f.Name, "llvm.") {
		return
	}
	name := strings.TrimPrefix(f.Name, "llvm.")
	if isSilent(name) {
		c.op = opNothing
		return
	}
	args, err := d.operands(i, len(i.Args))
	if err != nil || len(args) == 0 || len(args) > 3 || !scalars(args, len(args)) {
		return
	}
	if operation, _, ok := strings.Cut(name, ".with.overflow."); ok {
		x, ok := overflowIntrinsics[operation]
		if !ok {
			return
		}
		c.op, c.k = opPair, uint64(len(d.fn.pairs))
		c.dst, c.a, c.b = int32(out.at), int32(args[0].at), int32(args[1].at)
		d.fn.pairs = append(d.fn.pairs, x.short(args[0].s.bits))
		return
	}
	if out.s.bits == 0 || out.s.words != 1 {
		return
	}
	if g, _, ok := overloaded(intShorts, f.Name); ok {
		d.shorten(c, g(args[0].s.bits, out.s.bits), out, args...)
	} else if g, name, ok := overloaded(floatShorts, f.Name); ok && i.Flags&(ir.NoNaNs|ir.NoInfs) == 0 && d.rulesOf(out.s.typ.Kind) == nil {
		if h := g.of(out.s.typ.Kind); h != nil {
			if EffectOf("llvm."+name) == EffectMath {
				h = (&note{name: "llvm." + name}).short(d.in, h)
			}
			d.shorten(c, h, out, args...)
		}
	}
}

// overloaded returns the table's entry for the intrinsic llvm.KEY.TYPES, and the key.
func overloaded[T any](table map[string]T, full string) (x T, key string, ok bool) {
	for key = strings.TrimPrefix(full, "llvm."); ; {
		if x, ok = table[key]; ok {
			return x, key, true
		}
		dot := strings.LastIndexByte(key, '.')
		if dot < 0 {
			return x, "", false
		}
		key = key[:dot]
	}
}

// lane applies f to element k of the operands, where a scalar operand stands for each element. It stores the result in element k of out, or returns
// false if the slow path must compute the element.
func (f shortWay) lane(fr *frame, out int, k int, args []slot) bool {
	var v [3]uint64
	for j, a := range args {
		at := a.at
		if a.s.typ.Kind == ir.VectorKind {
			at += k
		}
		w := fr.w[at]
		if w.u != 0 {
			return false
		}
		v[j] = w.v
	}
	r, ok := f(v[0], v[1], v[2])
	if ok {
		fr.w[out+k] = word{v: r}
	}
	return ok
}
