// Package condition is the language in which a user says at which exit something is to happen: %i > 100 && (%p == 0 || %x + 1 < %y).
// Its main type is [Condition].
//
// # Language
//
// A slot is called as the output calls it, with % or without: %i, i, %"a name", loc0; #0 is the first slot, whatever its name. A name
// with anything in it but letters, digits, dots, _ and $ needs the quotation marks. Values of a virtual machine's frames are called
// local[2], stack[0], caller[1].local[0], object[4].x. Numbers are decimal, 0x, 0o or 0b, or floating-point
// ones, inf and nan. What joins them, the tighter first:
//
//	! -                ! before what is true or false, - before a number
//	* / %
//	+ -
//	<< >>
//	&
//	^
//	|
//	== != < <= > >=    between two numbers; == and != between two of what is true or false
//	&&
//	||
//
// as in Python, and as in C but that & ^ | are tighter than comparisons. Parentheses do what they do elsewhere.
//
// # Values
//
// Integers are those of mathematics: nothing overflows. A slot of iN is signed (an i1 is 0 or 1), a pointer and a slot without a type
// are not. / goes towards zero and % has the sign of what is divided, & | ^ are of two's complement without end, and >> keeps the
// sign. A float is the number that the output shows, as a float64, and so is what comes of a float and an integer; comparisons of
// both are exact.
//
// Where a slot is compared by == or != with a number that is written down, it is equal to the number too that its bits
// would be with the other sign: an i8 of 0x80 is -128 and 128. Two slots of one width are equal where their bits are. An i1 is
// compared with true and false, too.
//
// What cannot be had is neither true nor false: a slot that is unavailable, undefined, no number, or that there is not; a division by
// zero. What does not depend on it is decided all the same: true || it is true, false && it is false (Kleene's logic).
//
// # Security
//
// A text may be anything. How deep it nests is bounded, and so is the size of numbers: by the length of the text.
package condition

import (
	"fmt"
	"strings"

	"reframe/deopt/frame"
)

// Condition is one that was read.
type Condition struct {
	Text string
	root *node
}

// Error says what is wrong with the text of a condition.
type Error struct {
	Text string
	At   int // bytes into it
	Why  string
}

func (e *Error) Error() string {
	if e.At >= len(e.Text) {
		return fmt.Sprintf("%s: at its end: %s", e.Text, e.Why)
	}
	return fmt.Sprintf("%s: at %q: %s", e.Text, e.Text[e.At:], e.Why)
}

// Answer is what a condition is of some slots.
type Answer int

// The answers.
const (
	No Answer = iota
	Yes
	Undecided // it depends on a value that cannot be had
	Absent    // it depends on a slot that there is not
)

// Of reports whether the condition holds of the slots of a frame, and of [Undecided], why that cannot be told: of the first value that
// it depends on.
func (c *Condition) Of(slots []frame.Slot) (a Answer, why string) {
	v := c.root.truth(slots)
	switch {
	case v.known && v.is:
		return Yes, ""
	case v.known:
		return No, ""
	case v.absent:
		return Absent, v.why
	}
	return Undecided, v.why
}

// Name is a slot that a condition asks for.
type Name struct {
	Text  string // as it was written, without % and quotation marks; "" where it is a number
	Index int    // of the slot, where it is a number
	at    int
}

// Names lists the slots that the condition asks for, each once, in their order.
func (c *Condition) Names() (list []Name) {
	seen := map[Name]bool{}
	c.root.each(func(n *node) {
		if key := (Name{Text: n.name.Text, Index: n.name.Index}); n.op == slotOp && !seen[key] {
			seen[key] = true
			list = append(list, n.name)
		}
	})
	return list
}

// Wrong is an error about a slot that the condition asks for.
func (c *Condition) Wrong(n Name, why string) error { return &Error{c.Text, n.at, why} }

// Possible reports whether the condition can hold where there are only the slots of which has says so, whatever their values.
func (c *Condition) Possible(has func(Name) bool) bool {
	yes, _ := c.root.possible(has)
	return yes
}

// Plain is a name of a slot without what may be left out of it.
func Plain(name string) string {
	name = strings.TrimPrefix(name, "%")
	if n := len(name); n >= 2 && name[0] == '"' && name[n-1] == '"' {
		name = name[1 : n-1]
	}
	return name
}
