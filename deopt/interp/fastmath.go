package interp

import (
	"cmp"

	"math"

	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

// special reports whether a float is a NaN, and whether it is infinite.
func special(k ir.TypeKind, w []word) (nan, inf bool) {
	if k == ir.X86FP80Kind || k == ir.FP128Kind {
		c := floatNumber(k, w).Class
		return c == softfloat.NaN, c == softfloat.Inf
	}
	f := floatOf(k, w[0].v)
	return math.IsNaN(f), math.IsInf(f, 0)
}

// promised reports whether all floats of the list satisfy the flags nnan and ninf. If an operand or the result of an instruction violates its flags,
// the result is poison (LangRef, "Fast-Math Flags").
func promised(flags ir.Flags, k ir.TypeKind, list ...[]word) bool {
	if flags&(ir.NoNaNs|ir.NoInfs) == 0 {
		return true
	}
	for _, w := range list {
		nan, inf := special(k, w)
		if nan && flags&ir.NoNaNs != 0 || inf && flags&ir.NoInfs != 0 {
			return false
		}
	}
	return true
}

// promise is a value that must satisfy the flags nnan and ninf. A phi, a select or a call with these flags passes the value on without computing it.
type promise struct {
	flags ir.Flags
	value slot
}

// promises returns the promise for each value that is a float, by the flags of a phi, a select or a call.
func promises(flags ir.Flags, values ...slot) []promise {
	var list []promise
	if flags &= ir.NoNaNs | ir.NoInfs; flags != 0 {
		for _, v := range values {
			if lane, _ := v.s.lane(); lane.typ.Float() {
				list = append(list, promise{flags, v})
			}
		}
	}
	return list
}

// broken reports whether a lane of the value violates the flags.
func (p promise) broken(w []word, lane *shape) bool {
	return defined(w) && !promised(p.flags, lane.typ.Kind, w)
}

// enforce makes the lanes of the value that violate the flags poison.
func (p promise) enforce(words []word) {
	lane, n := p.value.s.lane()
	for k := range n {
		if w := words[k*lane.words : (k+1)*lane.words]; p.broken(w, lane) {
			poisonWords(w, lane.bits)
		}
	}
}

// kept reports whether all lanes of the value satisfy the flags.
func (p promise) kept(fr *frame) bool {
	lane, n := p.value.s.lane()
	for k := range n {
		if p.broken(p.value.in(fr)[k*lane.words:(k+1)*lane.words], lane) {
			return false
		}
	}
	return true
}

// callPromise holds the arguments and the result of a call that must satisfy its flags nnan and ninf. A lane of the result may depend on any
// argument, so a single argument that violates the flags makes the whole result poison.
type callPromise struct {
	args   []promise
	result promise
}

// callPromises returns the promises of a call, or nil if the call has neither nnan nor ninf.
func callPromises(i *ir.Instr, args []slot, out slot) *callPromise {
	result := promises(i.Flags, out)
	if result == nil {
		return nil
	}
	return &callPromise{promises(i.Flags, args...), result[0]}
}

// debt holds the work to do when a call returns.
type debt struct {
	result promise
	broken bool   // an argument violated the flags
	given  []span // memory that becomes undefined
}

// owed checks the arguments of a call, and returns the work to do when the call returns. It returns nil for a call without flags.
func (c *callPromise) owed(fr *frame) *debt {
	if c == nil {
		return nil
	}
	return c.debt(fr)
}

// debt is [callPromise.owed] for a call with flags.
func (c *callPromise) debt(fr *frame) *debt {
	d := &debt{result: c.result}
	for _, p := range c.args {
		d.broken = d.broken || !p.kept(fr)
	}
	return d
}

// with merges the debt of a musttail callee with that of the caller whose frame the callee replaces.
func (d *debt) with(callers *debt) *debt {
	if d == nil || callers == nil {
		return cmp.Or(d, callers)
	}
	if d.result.value.s == nil {
		d.result.value = callers.result.value
	}
	d.result.flags |= callers.result.flags
	d.broken = d.broken || callers.broken
	d.given = append(d.given, callers.given...)
	return d
}

// enforce makes the result poison if the result or an argument violates the flags.
func (d *debt) enforce(words []word) {
	switch {
	case d == nil || len(words) == 0 || d.result.value.s == nil:
	case d.broken:
		d.result.value.s.fillPoison(words)
	default:
		d.result.enforce(words)
	}
}
