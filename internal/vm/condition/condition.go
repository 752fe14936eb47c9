// Package condition parses and evaluates conditions with which a user selects exits: %i > 100 && (%p == 0
// %x + 1 < %y). Its main type is [Condition].
//
// # Language
//
// A slot has the name that the output shows, with or without %: %i, i, %"a name", loc0; #0 is the first slot, whatever its name. A name with
// characters other than letters, digits, dots, _ and $ needs quotation marks. Values of a virtual machine's frames are named local[2], stack[0],
// caller[1].local[0], object[4].x. Numbers are decimal, 0x, 0o or 0b, or floating-point, inf and nan. The operators, in descending precedence:
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
// as in Python, and as in C except that & ^ | bind tighter than comparisons. Parentheses group as usual.
//
// # Values
//
// Integers have arbitrary precision: nothing overflows. A slot of iN is signed (an i1 is 0 or 1), a pointer and a slot without a type are not. /
// rounds towards zero and % has the sign of the dividend, & | ^ work on two's complement of unlimited width, and >> keeps the sign. A float is the
// number that the output shows, as a float64, and so is the result of an operation on a float and an integer; comparisons between the two are
// exact.
//
// A slot that is compared by == or != with a literal number also equals the number with the same bits and the other sign: an i8 of 0x80 equals -128
// and 128. Two slots of one width are equal if their bits are. An i1 can be compared with true and false, too.
//
// A missing value is neither true nor false: a slot that is unavailable, undefined, not a number, or missing; a division by zero. The result is still
// determined if it does not depend on the value: true
// it is true, false && it is false (Kleene's logic).
//
// # Security
//
// The text is not trusted. The nesting depth is bounded, and so is the size of numbers, by the length of the text.
package condition

import (
	"fmt"
	"strings"

	"example.com/reframe/deopt/frame"
)

// Condition is a parsed condition.
type Condition struct {
	Text string
	root *node
}

// Error is an error in the text of a condition.
type Error struct {
	Text string
	At   int // offset in Text, in bytes
	Why  string
}

func (e *Error) Error() string {
	if e.At >= len(e.Text) {
		return fmt.Sprintf("%s: at its end: %s", e.Text, e.Why)
	}
	return fmt.Sprintf("%s: at %q: %s", e.Text, e.Text[e.At:], e.Why)
}

// Answer is the result of a condition for some slots.
type Answer int

// The answers.
const (
	No Answer = iota
	Yes
	Undecided // it depends on a value that is unavailable
	Absent    // it depends on a slot that does not exist
)

// Of evaluates the condition for the slots of a frame. For [Undecided], why is the reason of the first missing value.
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

// Name is a slot that a condition uses.
type Name struct {
	Text  string // as in the text, without % and quotation marks; "" for a number
	Index int    // number of the slot, if Text is empty
	at    int
}

// Names returns the slots that the condition uses, without duplicates, in order.
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

// Wrong returns an error about a slot of the condition.
func (c *Condition) Wrong(n Name, why string) error { return &Error{c.Text, n.at, why} }

// Possible reports whether the condition can hold if only slots for which has returns true exist, with any values.
func (c *Condition) Possible(has func(Name) bool) bool {
	yes, _ := c.root.possible(has)
	return yes
}

// Plain returns the canonical name of a slot, without optional characters.
func Plain(name string) string {
	name = strings.TrimPrefix(name, "%")
	if n := len(name); n >= 2 && name[0] == '"' && name[n-1] == '"' {
		name = name[1 : n-1]
	}
	return name
}
