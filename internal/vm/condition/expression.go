package condition

import (
	"fmt"
	"strconv"

	"example.com/reframe/deopt/frame"
)

// Expression is an expression over slots, with a number or a truth value: %acc + 1, local[2] > 3.
type Expression struct {
	Text string
	root *node
}

// ParseExpression parses an expression, in the language of conditions. The error is an [*Error].
func ParseExpression(text string) (*Expression, error) {
	p := &parser{text: text}
	e := &Expression{Text: text, root: p.outermost()}
	p.ends()
	if p.err != nil {
		return nil, p.err
	}
	return e, nil
}

// Slot returns the name of the slot, if the expression is just one slot.
func (e *Expression) Slot() (n Name, ok bool) { return e.root.name, e.root.op == slotOp }

// Of returns the value of the expression for the slots of a frame, as text: true or false, an integer, or a floating-point number. hex holds the bits
// of a non-negative integer. The error names the missing value, and the reason.
func (e *Expression) Of(slots []frame.Slot) (text, hex string, err error) {
	if e.root.bool {
		v := e.root.truth(slots)
		if !v.known {
			return "", "", fmt.Errorf("%s: %s", e.Text, v.why)
		}
		return strconv.FormatBool(v.is), "", nil
	}
	v := e.root.number(slots)
	switch {
	case v.why != "":
		return "", "", fmt.Errorf("%s: %s", e.Text, v.why)
	case v.float:
		return strconv.FormatFloat(v.f, 'g', -1, 64), "", nil
	case v.n.Sign() >= 0:
		hex = fmt.Sprintf("%#x", v.n)
	}
	return v.n.String(), hex, nil
}
