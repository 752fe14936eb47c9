// Package condition evaluates expressions of Starlark over the slots of a frame, with which a user selects exits: %i > 100 && (%p == 0 ||
// %x + 1 < %y). Its main type is [Condition].
//
// # Language
//
// An expression consists of slots, numbers, texts, true, false, operators and parentheses. It is a part of Starlark (go.starlark.net), without calls,
// lists, lambdas and comprehensions. A tokenizer translates the names of slots, and C's operators && || !, because Starlark's parser cannot read
// them. Starlark's functions then compute the operators. The language differs from Starlark in some points:
//
//   - The operators and, or and not give true or false. A missing value makes the result unknown only if the result depends on it (Kleene's logic).
//   - true and false are also the numbers 1 and 0.
//   - == and != compare the bits of a slot, see [wrapped].
//   - Texts are compared only by == and !=. A text of a virtual machine's layout equals the number that it spells.
//   - NaN is not equal to, below or above any number, as in C.
//
// `reframe help conditions` describes the language to users.
//
// # Security
//
// The text is not trusted. The length of the text, its nesting (by Starlark's parser), the distance of a shift (511) and the size of numbers are
// bounded, and nothing in an expression repeats.
package condition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"example.com/reframe/deopt/frame"
)

// Condition is a parsed condition.
type Condition struct{ Expression }

// Answer is the result of a condition for some slots.
type Answer int

// The answers.
const (
	No Answer = iota
	Yes
	Undecided // the result depends on a value that is unavailable
	Absent    // the result depends on a slot that does not exist
)

// Of evaluates the condition for the slots of a frame. For [Undecided] and [Absent], why is the reason.
func (c *Condition) Of(slots []frame.Slot) (a Answer, why string) {
	r := run{&c.Expression, slots}
	switch v := logic(c.root, r.truth); {
	case v.yes:
		return Yes, ""
	case v.no:
		return No, ""
	case isAbsent(v.err):
		return Absent, v.err.Error()
	default:
		return Undecided, v.err.Error()
	}
}

// Possible reports whether the condition can hold if only slots for which has returns true exist, with any values.
func (c *Condition) Possible(has func(Name) bool) bool {
	return logic(c.root, func(part syntax.Expr) verdict {
		uses := c.uses(part)
		if len(uses) == 0 {
			return (&run{&c.Expression, nil}).truth(part)
		}
		missing := func(n Name) bool { return !has(n) }
		exist := !slices.ContainsFunc(uses, missing)
		if !exist && hasLogic(part) { // one operand of `and` or `or` may decide the result alone
			exist = slices.ContainsFunc(uses, has)
		}
		return verdict{yes: exist, no: exist}
	}).yes
}

// hasLogic reports whether an expression contains the operator `and`, `or` or `not`.
func hasLogic(e syntax.Expr) (found bool) {
	syntax.Walk(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryExpr:
			found = found || n.Op == syntax.AND || n.Op == syntax.OR
		case *syntax.UnaryExpr:
			found = found || n.Op == syntax.NOT || n.Op == cNot
		}
		return true
	})
	return found
}

// verdict is the set of results that a condition can have. If it is empty, err is the reason.
type verdict struct {
	yes, no bool
	err     error
}

// logic evaluates the operators `and`, `or` and `not`. It calls leaf for each part that has none of them as its operator.
func logic(e syntax.Expr, leaf func(syntax.Expr) verdict) verdict {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return logic(e.X, leaf)
	case *syntax.UnaryExpr:
		if e.Op == syntax.NOT || e.Op == cNot {
			x := logic(e.X, leaf)
			return verdict{x.no, x.yes, x.err}
		}
	case *syntax.BinaryExpr:
		if e.Op != syntax.AND && e.Op != syntax.OR {
			break
		}
		x, y := logic(e.X, leaf), logic(e.Y, leaf)
		if e.Op == syntax.AND {
			return verdict{x.yes && y.yes, x.no || y.no, first(x.err, y.err)}
		}
		return verdict{x.yes || y.yes, x.no && y.no, first(x.err, y.err)}
	}
	return leaf(e)
}

// Expression is an expression over slots, with a number or a truth value: %acc + 1, local[2] > 3.
type Expression struct {
	Text   string
	root   syntax.Expr
	names  []Name // the slots of the identifiers s0, s1 …
	places []int  // offsets of the tokens in Text
}

// Value returns the value of the expression for the slots of a frame, as text: true or false, an integer, or a floating-point number. hex holds the
// bits of a non-negative integer. The error names the missing value, and the reason.
func (e *Expression) Value(slots []frame.Slot) (text, hex string, err error) {
	v, err := (&run{e, slots}).value(e.root)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", e.Text, err)
	}
	switch v := v.(type) {
	case starlark.Bool:
		return strconv.FormatBool(bool(v)), "", nil
	case starlark.String:
		return string(v), "", nil
	case starlark.Float:
		return strconv.FormatFloat(float64(v), 'g', -1, 64), "", nil
	case starlark.Int:
		if v.Sign() >= 0 {
			hex = fmt.Sprintf("%#x", v.BigInt())
		}
	}
	return v.String(), hex, nil
}

// Slot returns the name of the slot, if the expression is just one slot.
func (e *Expression) Slot() (n Name, ok bool) { return e.slot(e.root) }

// slot returns the name of the slot, if a part of the expression is just one slot.
func (e *Expression) slot(part syntax.Expr) (n Name, ok bool) {
	switch part := part.(type) {
	case *syntax.ParenExpr:
		return e.slot(part.X)
	case *syntax.Ident:
		if k, err := strconv.Atoi(part.Name[1:]); err == nil { // an identifier of a slot is s and a number; other words contain no number
			return e.names[k], true
		}
	}
	return Name{}, false
}

// uses lists the slots that a part of the expression uses.
func (e *Expression) uses(part syntax.Expr) (list []Name) {
	syntax.Walk(part, func(n syntax.Node) bool {
		if ident, ok := n.(*syntax.Ident); ok {
			if name, ok := e.slot(ident); ok {
				list = append(list, name)
			}
		}
		return true
	})
	return list
}

// Names returns the slots that the expression uses, without duplicates, in order.
func (e *Expression) Names() []Name { return e.names }

// Wrong returns an error about a slot of the expression.
func (e *Expression) Wrong(n Name, why string) error { return &Error{e.Text, n.at, why} }

// Name is a slot that an expression uses.
type Name struct {
	Text  string // the name as in the text, without % and quotation marks; "" for a number
	Index int    // number of the slot, if Text is empty
	at    int
}

// String returns the name as the output shows it, or a form that the user may type.
func (n Name) String() string {
	if n.Text == "" {
		return fmt.Sprintf("#%d", n.Index)
	}
	return n.Text
}

// Find returns the named slot; nil if it does not exist.
func (n Name) Find(slots []frame.Slot) (found *frame.Slot) {
	for i := range slots {
		s := &slots[i]
		if n.Text == "" && i != n.Index || n.Text != "" && Plain(s.Name) != n.Text {
			continue
		}
		if found == nil || found.Status != frame.OK { // a record may hold a value twice: prefer the available slot
			found = s
		}
	}
	return found
}

// Plain returns the name of a slot without % and without quotation marks, which are optional.
func Plain(name string) string {
	name = strings.TrimPrefix(name, "%")
	if n := len(name); n >= 2 && name[0] == '"' && name[n-1] == '"' {
		name = name[1 : n-1]
	}
	return name
}
