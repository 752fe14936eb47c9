package condition

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"example.com/reframe/deopt/frame"
)

// value is a number, or the reason why it is missing.
type value struct {
	n       *big.Int
	f       float64
	float   bool
	bits    int  // width of the slot; 0: not the value of a slot
	bit     bool // the slot is an i1
	untyped bool // the slot has no type
	written bool // a literal
	why     string
	absent  bool
}

func missing(format string, args ...any) value { return value{why: fmt.Sprintf(format, args...)} }

// number evaluates a numeric node.
func (n *node) number(slots []frame.Slot) value {
	switch n.op {
	case constantOp:
		return n.constant
	case slotOp:
		return n.name.of(slots)
	case negateOp:
		x := n.x.number(slots)
		switch {
		case x.why != "":
			return x
		case x.float:
			return value{f: -x.f, float: true}
		}
		return value{n: new(big.Int).Neg(x.n)}
	}
	x, y := n.x.number(slots), n.y.number(slots)
	switch {
	case x.why != "":
		return x
	case y.why != "":
		return y
	case x.float || y.float:
		return floats(n.op, x, y)
	}
	return integers(n.op, x.n, y.n)
}

// Bounds of integers, in bits: of a shift, and of a result.
const (
	maxShift = 1024
	maxBits  = 1 << 16
)

// integers applies an operator to two integers.
func integers(op string, x, y *big.Int) value {
	out := new(big.Int)
	switch op {
	case "+":
		out.Add(x, y)
	case "-":
		out.Sub(x, y)
	case "*":
		out.Mul(x, y)
	case "/", "%":
		if y.Sign() == 0 {
			return missing("division by zero")
		}
		if op == "/" {
			out.Quo(x, y)
		} else {
			out.Rem(x, y)
		}
	case "&":
		out.And(x, y)
	case "|":
		out.Or(x, y)
	case "^":
		out.Xor(x, y)
	case "<<", ">>":
		if y.Sign() < 0 || y.Cmp(big.NewInt(maxShift)) > 0 {
			return missing("a shift by %s bits: 0 to %d are possible", shortened(y.String()), maxShift)
		}
		if op == "<<" {
			out.Lsh(x, uint(y.Uint64()))
		} else {
			out.Rsh(x, uint(y.Uint64()))
		}
	}
	if out.BitLen() > maxBits {
		return missing("a number of over %d bits", maxBits)
	}
	return value{n: out}
}

// floats applies an operator to two numbers, of which at least one is a float.
func floats(op string, x, y value) value {
	a, b, why := x.asFloat(), y.asFloat(), cmp.Or(x.noFloat(), y.noFloat())
	if why != "" {
		return missing("%s", why)
	}
	switch op {
	case "+":
		a += b
	case "-":
		a -= b
	case "*":
		a *= b
	case "/":
		a /= b
	case "%":
		a = math.Mod(a, b)
	default:
		return missing("%s is for integers", op)
	}
	return value{f: a, float: true}
}

func (v *value) asFloat() float64 {
	if v.float {
		return v.f
	}
	f, _ := new(big.Float).SetInt(v.n).Float64()
	return f
}

// noFloat returns the reason why a value cannot be used with a float, or "".
func (v *value) noFloat() string {
	if v.untyped {
		return "it has no type, so it is no floating-point number"
	}
	return ""
}

// of returns the value of the named slot.
func (n Name) of(slots []frame.Slot) value {
	found := n.Find(slots)
	if found == nil {
		return value{why: "there is no " + n.String(), absent: true}
	}
	return slotValue(found)
}

// Find returns the named slot; nil if it does not exist.
func (n Name) Find(slots []frame.Slot) (found *frame.Slot) {
	for i := range slots {
		s := &slots[i]
		if n.Text == "" && i != n.Index || n.Text != "" && Plain(s.Name) != n.Text {
			continue
		}
		if found == nil || found.Status != frame.OK { // a record may hold a value twice
			found = s
		}
	}
	return found
}

// String returns the name as the output shows it, if that is known.
func (n Name) String() string {
	if n.Text == "" {
		return fmt.Sprintf("#%d", n.Index)
	}
	return n.Text
}

func slotValue(s *frame.Slot) value {
	switch {
	case s.Status == frame.Undefined:
		return missing("%s", cmp.Or(s.Reason, "it is undefined"))
	case s.Status != frame.OK:
		return missing("%s", cmp.Or(s.Reason, "it is unavailable"))
	case s.Type.Kind == frame.Float || s.Type.Kind == frame.BFloat:
		f, err := strconv.ParseFloat(s.Value, 64)
		if err != nil && f == 0 {
			return missing("its text is no number")
		}
		return value{f: f, float: true}
	case !s.Type.IsZero() && s.Type.Kind != frame.Int && s.Type.Kind != frame.Pointer:
		return missing("it is no number: its type is %s", s.Type.Source)
	}
	n, ok := new(big.Int).SetString(string(s.Hex), 0)
	v := value{n: n, bits: s.Type.Bits, untyped: s.Type.IsZero()}
	if v.untyped {
		v.bits = 8 * len(s.Bytes)
	}
	if !ok || v.bits == 0 {
		return missing("it has no bits")
	}
	if s.Type.Kind == frame.Int {
		if v.bit = v.bits == 1; !v.bit && n.Bit(v.bits-1) == 1 {
			n.Sub(n, v.modulus())
		}
	}
	return v
}

// modulus returns 2 to the power of the slot's width.
func (v *value) modulus() *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(v.bits)) }
