package interp

import (
	"math/big"

	"example.com/reframe/internal/llvm/ir"
)

// laneOp computes one lane of a result from one lane of each operand.
type laneOp func(dst, a, b []word) error

// rmw returns the operation of an atomicrmw (LangRef, "atomicrmw"), which computes next from the old value and the operand.
func rmw(op string, s *shape) (func(next, old, v []word) error, error) {
	if op == "xchg" {
		return func(next, old, v []word) error { copy(next, v); return nil }, nil
	}
	lane, n := s.lane()
	var f laneOp
	switch {
	case lane.typ.Float():
		f = floatRMW(op, lane)
	case lane.typ.Kind == ir.IntKind:
		f = intRMW(op, lane)
	}
	if f == nil {
		return nil, unsupported("", "atomicrmw %s of %v", op, s.typ)
	}
	return func(next, old, v []word) error {
		for k := range n {
			from, to := k*lane.words, (k+1)*lane.words
			if err := f(next[from:to], old[from:to], v[from:to]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

var floatRMWs = map[string]ir.Op{"fadd": ir.OpFAdd, "fsub": ir.OpFSub}

var extremumRMWs = map[string]extremum{
	"fmax": {1, true}, "fmin": {-1, true}, "fmaximum": {1, false}, "fminimum": {-1, false},
}

func floatRMW(op string, lane *shape) laneOp {
	kind := lane.typ.Kind
	f := floatLanes(floatRMWs[op], kind)
	if x, ok := extremumRMWs[op]; ok {
		f = func(dst, a, b []word) { setFloat(kind, dst, x.of(floatNumber(kind, a), floatNumber(kind, b))) }
	} else if floatRMWs[op] == ir.OpNone {
		return nil
	}
	return func(dst, a, b []word) error {
		if !defined(a) || !defined(b) {
			unknownWords(dst, lane.bits, a, b)
			return nil
		}
		f(dst, a, b)
		return nil
	}
}

var intRMWs = map[string]ir.Op{"add": ir.OpAdd, "sub": ir.OpSub, "and": ir.OpAnd, "or": ir.OpOr, "xor": ir.OpXor}

// chosenRMWs are the operations on unsigned integers; the result is reduced to the width.
var chosenRMWs = map[string]func(width int, old, v *big.Int) *big.Int{
	"nand": func(_ int, old, v *big.Int) *big.Int { r := new(big.Int).And(old, v); return r.Not(r) },
	"umax": func(_ int, old, v *big.Int) *big.Int { return greater(old, v) },
	"umin": func(_ int, old, v *big.Int) *big.Int { return lesser(old, v) },
	"max":  func(w int, old, v *big.Int) *big.Int { return greater(signed(old, w), signed(v, w)) },
	"min":  func(w int, old, v *big.Int) *big.Int { return lesser(signed(old, w), signed(v, w)) },
	"uinc_wrap": func(_ int, old, v *big.Int) *big.Int {
		if old.Cmp(v) >= 0 {
			return new(big.Int)
		}
		return new(big.Int).Add(old, big.NewInt(1))
	},
	"udec_wrap": func(_ int, old, v *big.Int) *big.Int {
		if old.Sign() == 0 || old.Cmp(v) > 0 {
			return v
		}
		return new(big.Int).Sub(old, big.NewInt(1))
	},
	"usub_cond": func(_ int, old, v *big.Int) *big.Int {
		if old.Cmp(v) < 0 {
			return old
		}
		return new(big.Int).Sub(old, v)
	},
	"usub_sat": func(_ int, old, v *big.Int) *big.Int { return greater(new(big.Int), new(big.Int).Sub(old, v)) },
}

func intRMW(op string, lane *shape) laneOp {
	if f, ok := intRMWs[op]; ok {
		if lane.words > 1 {
			return wideArith(f, lane.bits, 0)
		}
		g := narrowArith(f, lane.bits, 0)
		return func(dst, a, b []word) (err error) { dst[0], err = g(a[0], b[0]); return err }
	}
	f, ok := chosenRMWs[op]
	if !ok {
		return nil
	}
	return func(dst, a, b []word) error {
		if !defined(a) || !defined(b) {
			unknownWords(dst, lane.bits, a, b)
			return nil
		}
		setBig(dst, f(lane.bits, toBig(a), toBig(b)), lane.bits)
		return nil
	}
}
