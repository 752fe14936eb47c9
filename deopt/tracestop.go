package deopt

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"reframe/deopt/frame"
)

// StopCondition is a condition on the slots of an exit: comparisons all of which hold.
type StopCondition struct {
	Text  string
	terms []comparisonOf
}

// comparisonOf compares one slot with a constant.
type comparisonOf struct {
	name     string // as the source spells it; "" for a number
	index    int    // of the slot, where there is no name
	operator string
	number   *big.Int // nil where the constant is none
	float    float64
	truth    string // true or false, or ""
}

// StopError says what is wrong with the text of a condition.
type StopError struct {
	Text string
	At   int // bytes into it
	Why  string
}

func (e *StopError) Error() string {
	if e.At == len(e.Text) {
		return fmt.Sprintf("%s: at its end: %s", e.Text, e.Why)
	}
	return fmt.Sprintf("%s: at %q: %s", e.Text, e.Text[e.At:], e.Why)
}

// operators, the longer first where one begins with another.
var operators = []string{"==", "!=", "<=", ">=", "<", ">"}

// ParseStop reads a condition such as "%i > 100 && %acc <= 0x10": names of slots as the output has
// them (#0 is the first slot of any name), each compared with a number, or with true or false. The error
// is a [*StopError].
func ParseStop(text string) (*StopCondition, error) {
	c := &StopCondition{Text: text}
	p := stopParser{text: text}
	for {
		term, why := p.comparison()
		if why != "" {
			return nil, &StopError{text, p.at, why}
		}
		c.terms = append(c.terms, term)
		p.space()
		if p.at == len(text) {
			return c, nil
		}
		if !p.take("&&") {
			return nil, &StopError{text, p.at, "&& or the end belongs here"}
		}
	}
}

type stopParser struct {
	text string
	at   int
}

func (p *stopParser) space() { p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], " \t")) }

// take steps over a token that comes next, if it does.
func (p *stopParser) take(token string) bool {
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *stopParser) comparison() (t comparisonOf, why string) {
	p.space()
	if why := p.slot(&t); why != "" {
		return t, why
	}
	p.space()
	for _, op := range operators {
		if p.take(op) {
			t.operator = op
			p.space()
			return t, p.constant(&t)
		}
	}
	return t, "a comparison belongs here: ==, !=, <, <=, > or >="
}

// slot reads the name of a slot: %i, %"a name", loc0, #0.
func (p *stopParser) slot(t *comparisonOf) (why string) {
	const what = "the name of a slot belongs here, such as %i, loc0 or #0"
	rest := p.text[p.at:]
	if strings.HasPrefix(rest, `%"`) {
		end := strings.IndexByte(rest[2:], '"')
		if end < 0 {
			return "the quotation mark is not closed"
		}
		t.name = rest[:end+3]
		p.at += len(t.name)
		return ""
	}
	n := len(rest) - len(strings.TrimLeft(rest, "%#abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789$._-"))
	word := rest[:n]
	switch {
	case strings.HasPrefix(word, "#"):
		index, err := strconv.Atoi(word[1:])
		if err != nil || index < 0 {
			return what
		}
		t.index = index
	case len(word) > 1 && word[0] == '%', strings.HasPrefix(word, "loc") && len(word) > 3:
		t.name = word
	default:
		return what
	}
	p.at += n
	return ""
}

func (p *stopParser) constant(t *comparisonOf) (why string) {
	rest := p.text[p.at:]
	word := rest
	if n := strings.IndexAny(rest, " \t&"); n >= 0 {
		word = rest[:n]
	}
	switch number, ok := new(big.Int).SetString(word, 0); {
	case ok && len(word) <= maxNumber:
		t.number = number
		t.float, _ = new(big.Float).SetInt(number).Float64()
	case word == "true" || word == "false":
		if t.operator != "==" && t.operator != "!=" {
			return word + " is compared by == or !="
		}
		t.truth = word
	default:
		f, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return "a number belongs here, or true or false"
		}
		t.float = f
	}
	p.at += len(word)
	return ""
}

// maxNumber bounds the digits of a number, which can be those of an integer of 1024 bits.
const maxNumber = 320

// holds says whether the condition holds. missing is the first slot of those it asks for whose value is not
// there, or that cannot be compared; absent says that there is no such slot at all.
func (c *StopCondition) holds(f *Frame) (holds bool, missing string, absent bool) {
	for i := range c.terms {
		t := &c.terms[i]
		s := t.find(f)
		if s == nil {
			return false, "", true
		}
		if s.Status != frame.OK {
			return false, s.Reason, false
		}
		ok, why := t.compare(s)
		if why != "" {
			return false, why, false
		}
		if !ok {
			return false, "", false
		}
	}
	return true, "", false
}

func (t *comparisonOf) find(f *Frame) *frame.Slot {
	if f == nil {
		return nil
	}
	if t.name == "" {
		if t.index < len(f.Slots) {
			return &f.Slots[t.index]
		}
		return nil
	}
	for i := range f.Slots {
		if f.Slots[i].Name == t.name {
			return &f.Slots[i]
		}
	}
	return nil
}

// compare compares a value by the text of its type: integers are signed, pointers and values
// without a type are not.
func (t *comparisonOf) compare(s *frame.Slot) (holds bool, why string) {
	switch {
	case t.truth != "":
		if s.Type.Kind != frame.Int || s.Type.Bits != 1 {
			return false, "it is no i1"
		}
		return (s.Value == t.truth) == (t.operator == "=="), ""
	case s.Type.Kind == frame.Float || s.Type.Kind == frame.BFloat:
		v, err := strconv.ParseFloat(s.Value, 64)
		if err != nil && v == 0 {
			return false, "its text is no number"
		}
		return t.float64s(v), ""
	case t.number == nil:
		return false, "it is no floating-point number"
	}
	n, ok := new(big.Int).SetString(string(s.Hex), 0)
	if !ok {
		return false, "it has no bits"
	}
	bits := uint(8 * len(s.Bytes))
	if !s.Type.IsZero() {
		bits = uint(s.Type.Bits)
	}
	want := t.number
	modulus := new(big.Int).Lsh(big.NewInt(1), bits)
	if t.operator == "==" || t.operator == "!=" {
		// A negative number stands for its bits, and the other way round.
		if want.Sign() < 0 {
			want = new(big.Int).Add(want, modulus)
		}
	} else if s.Type.Kind == frame.Int && bits > 1 && n.Bit(int(bits)-1) == 1 {
		n.Sub(n, modulus)
	}
	return t.ordered(n.Cmp(want)), ""
}

// ordered says whether the comparison holds of what compares so.
func (t *comparisonOf) ordered(cmp int) bool {
	switch t.operator {
	case "==":
		return cmp == 0
	case "!=":
		return cmp != 0
	case "<":
		return cmp < 0
	case "<=":
		return cmp <= 0
	case ">":
		return cmp > 0
	}
	return cmp >= 0
}

// float64s is [comparisonOf.ordered] of floating-point numbers, of which NaN compares as
// nothing.
func (t *comparisonOf) float64s(v float64) bool {
	switch {
	case v < t.float:
		return t.ordered(-1)
	case v > t.float:
		return t.ordered(1)
	case v == t.float:
		return t.ordered(0)
	}
	return t.operator == "!="
}
