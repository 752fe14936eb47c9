package condition

import (
	"cmp"
	"math"
	"math/big"

	"example.com/reframe/deopt/frame"
)

// verdict is true, false, or the reason why it is undecided.
type verdict struct {
	known, is bool
	why       string
	absent    bool
}

func said(is bool) verdict { return verdict{known: true, is: is} }

// unknown returns the verdict for a missing value.
func unknown(v value) verdict { return verdict{why: v.why, absent: v.absent} }

// truth evaluates a boolean node.
func (n *node) truth(slots []frame.Slot) verdict {
	switch n.op {
	case truthOp:
		return said(n.is)
	case "!":
		x := n.x.truth(slots)
		x.is = !x.is
		return x
	case "&&", "||":
		// A false operand decides &&, and a true one
		// , whatever the other is.
		x, y := n.x.truth(slots), n.y.truth(slots)
		deciding := n.op == "||"
		switch {
		case x.known && x.is == deciding:
			return x
		case y.known && y.is == deciding, x.known:
			return y
		}
		return x
	}
	if n.x.bool || n.y.bool {
		return n.sameTruth(slots)
	}
	return n.compare(n.x.number(slots), n.y.number(slots))
}

// sameTruth compares two truth values, or an i1 with one.
func (n *node) sameTruth(slots []frame.Slot) verdict {
	var both [2]verdict
	for i, part := range []*node{n.x, n.y} {
		if part.bool {
			both[i] = part.truth(slots)
			continue
		}
		switch v := part.number(slots); {
		case v.why != "":
			both[i] = unknown(v)
		case !v.bit:
			both[i] = verdict{why: "it is no i1"}
		default:
			both[i] = said(v.n.Sign() != 0)
		}
	}
	for _, v := range both {
		if !v.known {
			return v
		}
	}
	return said((both[0].is == both[1].is) == (n.op == "=="))
}

// compare compares two numbers.
func (n *node) compare(x, y value) verdict {
	switch {
	case x.why != "":
		return unknown(x)
	case y.why != "":
		return unknown(y)
	case x.float || y.float:
		if why := cmp.Or(x.noFloat(), y.noFloat()); why != "" {
			return verdict{why: why}
		}
		if math.IsNaN(x.f) || math.IsNaN(y.f) { // an integer has f = 0
			return said(n.op == "!=")
		}
		return said(ordered(n.op, compareFloats(x, y)))
	}
	if n.op == "==" || n.op == "!=" {
		return said(equal(x, y) == (n.op == "=="))
	}
	return said(ordered(n.op, x.n.Cmp(y.n)))
}

// equal compares two integers. It compares the bits of slots of the same width, and of a slot with a literal.
func equal(x, y value) bool {
	if y.bits != 0 && x.written {
		x, y = y, x
	}
	switch {
	case x.bits != 0 && y.written:
		m := x.modulus()
		least := new(big.Int).Neg(new(big.Int).Rsh(m, 1))
		if y.n.Cmp(least) < 0 || y.n.Cmp(m) >= 0 {
			return false
		}
	case x.bits == 0 || x.bits != y.bits:
		return x.n.Cmp(y.n) == 0
	}
	difference := new(big.Int).Sub(x.n, y.n)
	return difference.Mod(difference, x.modulus()).Sign() == 0
}

// compareFloats compares two numbers exactly. At least one is a float, and none is NaN.
func compareFloats(x, y value) int {
	switch {
	case x.float && y.float:
		return cmp.Compare(x.f, y.f)
	case x.float && math.IsInf(x.f, 0):
		return int(math.Copysign(1, x.f))
	case y.float && math.IsInf(y.f, 0):
		return -int(math.Copysign(1, y.f))
	}
	exact := func(v value) *big.Float {
		if v.float {
			return big.NewFloat(v.f)
		}
		return new(big.Float).SetInt(v.n)
	}
	return exact(x).Cmp(exact(y))
}

// ordered reports whether a comparison operator holds for a result of cmp.Compare.
func ordered(op string, order int) bool {
	switch op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// each calls f for a node and all its descendants.
func (n *node) each(f func(*node)) {
	if n == nil {
		return
	}
	f(n)
	n.x.each(f)
	n.y.each(f)
}

// possible reports whether a node can be true, and whether it can be false, if only slots for which has returns true exist. They may have any value.
func (n *node) possible(has func(Name) bool) (yes, no bool) {
	switch n.op {
	case truthOp:
		return n.is, !n.is
	case "!":
		yes, no = n.x.possible(has)
		return no, yes
	case "&&", "||":
		xYes, xNo := n.x.possible(has)
		yYes, yNo := n.y.possible(has)
		if n.op == "&&" {
			return xYes && yYes, xNo || yNo
		}
		return xYes || yYes, xNo && yNo
	}
	decidable := true
	n.each(func(part *node) { decidable = decidable && (part.op != slotOp || has(part.name)) })
	return decidable, decidable
}
