package condition

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// node is a part of a condition. Its op is an operator as in the text, or one of those below.
type node struct {
	op       string
	x, y     *node // operands; a prefix operator has only x
	at, end  int   // range in the text
	bool     bool  // a truth value, not a number
	name     Name  // of a slot
	constant value // of a literal, or computed from literals
	is       bool  // of true and false
}

const (
	slotOp     = "slot"
	constantOp = "number"
	truthOp    = "truth"
	negateOp   = "negate"
)

// Bounds of a text.
const (
	maxText   = 1 << 16 // bytes
	maxDepth  = 200
	maxNumber = 320 // digits, enough for an integer of 1024 bits
)

// Parse parses a condition. The error is an [*Error].
func Parse(text string) (*Condition, error) {
	p := &parser{text: text}
	c := &Condition{Text: text, root: p.whole()}
	if p.err != nil {
		return nil, p.err
	}
	return c, nil
}

// parser keeps the first error, and ignores the rest of the text after it.
type parser struct {
	text  string
	at    int
	depth int
	err   error
}

func (p *parser) fail(at int, format string, args ...any) *node {
	if p.err == nil {
		p.err = &Error{p.text, at, fmt.Sprintf(format, args...)}
	}
	return &node{op: truthOp, bool: true}
}

func (p *parser) space() { p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], " \t\n")) }

// take skips a token and reports whether it was next.
func (p *parser) take(token string) bool {
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) whole() *node {
	n := p.outermost()
	if p.ends(); p.err != nil {
		return n
	}
	p.wantTruth(n)
	asks := false
	n.each(func(part *node) { asks = asks || part.op == slotOp })
	if !asks {
		return p.fail(0, "it asks for no slot")
	}
	return n
}

// outermost parses the whole text.
func (p *parser) outermost() *node {
	if len(p.text) > maxText {
		return p.fail(0, "over %d KiB", maxText>>10)
	}
	return p.binary(0)
}

// ends requires the end of the text.
func (p *parser) ends() {
	p.space()
	switch {
	case p.err != nil || p.at == len(p.text):
	case p.text[p.at] == '=':
		p.fail(p.at, "what compares is ==")
	default:
		p.fail(p.at, "an operator or the end belongs here")
	}
}

// levels lists the binary operators, lowest precedence first. Within a level, a longer operator comes before its prefix.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!=", "<=", ">=", "<", ">"}, {"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

// comparing is the level of comparisons.
const comparing = 2

// operator skips an operator of a level, and returns it; "" if none is next.
func (p *parser) operator(level int) string {
	rest := p.text[p.at:]
	for _, longer := range []string{"||", "&&", "<<", ">>"} { // operators that start with one of another level
		if strings.HasPrefix(rest, longer) && !slices.Contains(levels[level], longer) {
			return ""
		}
	}
	for _, op := range levels[level] {
		if p.take(op) {
			return op
		}
	}
	return ""
}

func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.prefix()
	}
	x := p.binary(level + 1)
	for n := 0; p.err == nil; n++ {
		p.space()
		at := p.at
		op := p.operator(level)
		if op == "" {
			break
		}
		if level == comparing && n > 0 {
			return p.fail(at, "comparisons do not follow each other; && joins them")
		}
		y := p.binary(level + 1)
		x = p.join(op, at, level, x, y)
	}
	return x
}

// join makes a node of an operator and two operands, if their types allow it.
func (p *parser) join(op string, at, level int, x, y *node) *node {
	n := &node{op: op, x: x, y: y, at: x.at, end: y.end, bool: level <= comparing}
	switch {
	case p.err != nil:
	case level < comparing:
		p.wantTruth(x)
		p.wantTruth(y)
	case level > comparing:
		p.wantNumber(x)
		p.wantNumber(y)
		if x.op == constantOp && y.op == constantOp {
			return p.folded(n, at)
		}
	case !x.bool && !y.bool:
	case op != "==" && op != "!=":
		for _, part := range []*node{x, y} {
			if part.bool {
				return p.fail(part.at, "true or false is compared by == or !=")
			}
		}
	case x.bool != y.bool:
		// An i1 is a number and a truth value.
		if number := map[bool]*node{true: y, false: x}[x.bool]; number.op != slotOp {
			return p.fail(number.at, "a slot of type i1 belongs here, as it is compared with what is true or false")
		}
	}
	return n
}

// folded computes the value of an expression of literals.
func (p *parser) folded(n *node, at int) *node {
	v := n.number(nil)
	if v.why != "" {
		return p.fail(at, "%s", v.why)
	}
	v.written = true
	return &node{op: constantOp, constant: v, at: n.at, end: n.end}
}

func (p *parser) wantTruth(n *node) {
	if !n.bool {
		p.fail(n.end, "a comparison belongs here: ==, !=, <, <=, > or >=")
	}
}

func (p *parser) wantNumber(n *node) {
	if n.bool {
		p.fail(n.at, "a number or a slot belongs here, nothing that is true or false")
	}
}

func (p *parser) prefix() *node {
	p.space()
	at := p.at
	if p.depth++; p.depth > maxDepth {
		return p.fail(at, "it nests deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.take("!"):
		x := p.prefix()
		if p.err == nil && !x.bool {
			return p.fail(x.at, "! is for what is true or false: a comparison in parentheses")
		}
		return &node{op: "!", x: x, at: at, end: x.end, bool: true}
	case p.take("-"):
		x := p.prefix()
		if p.err != nil {
			return x
		}
		p.wantNumber(x)
		n := &node{op: negateOp, x: x, at: at, end: x.end}
		if x.op == constantOp {
			return p.folded(n, at)
		}
		return n
	case p.take("("):
		x := p.binary(0)
		p.space()
		if p.err == nil && !p.take(")") {
			return p.fail(p.at, "the parenthesis is not closed: ) or an operator belongs here")
		}
		inside := *x
		inside.at, inside.end = at, p.at
		return &inside
	}
	return p.operand()
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"
const digits = "0123456789"

// operand parses a slot, a number, or true or false.
func (p *parser) operand() *node {
	const what = "a slot such as %%i, loc0 or #0, or a number belongs here"
	at, rest := p.at, p.text[p.at:]
	made := func(n *node, length int) *node {
		p.at += length
		n.at, n.end = at, p.at
		return n
	}
	switch {
	case rest == "":
		return p.fail(at, what)
	case strings.HasPrefix(rest, `%"`):
		end := strings.IndexByte(rest[2:], '"')
		switch {
		case end < 0:
			return p.fail(at, "the quotation mark is not closed")
		case end == 0:
			return p.fail(at, what)
		}
		return made(&node{op: slotOp, name: Name{Text: rest[2 : end+2], at: at}}, end+3)
	case rest[0] == '%':
		if n := path(rest[1:]); n > 0 {
			return made(&node{op: slotOp, name: Name{Text: rest[1 : n+1], at: at}}, n+1)
		}
	case rest[0] == '#':
		n := span(rest[1:], digits)
		if index, err := strconv.Atoi(rest[1 : n+1]); err == nil {
			return made(&node{op: slotOp, name: Name{Index: index, at: at}}, n+1)
		}
	case strings.IndexByte(digits+".", rest[0]) >= 0:
		word := numeral(rest)
		if v, ok := number(word); ok {
			return made(&node{op: constantOp, constant: v}, len(word))
		}
		return p.fail(at, "%s is no number that can be read", shortened(word))
	case span(rest, letters) > 0:
		word := rest[:path(rest)]
		switch word {
		case "true", "false":
			return made(&node{op: truthOp, is: word == "true", bool: true}, len(word))
		case "inf", "nan":
			v, _ := number(word)
			return made(&node{op: constantOp, constant: v}, len(word))
		}
		return made(&node{op: slotOp, name: Name{Text: word, at: at}}, len(word))
	}
	return p.fail(at, what)
}

// path returns the length of the name at the start of a text: letters, digits, dots, and numbers in brackets, as in object[4].x.
func path(text string) int {
	n := span(text, letters+digits+".")
	for n > 0 && n < len(text) && text[n] == '[' {
		inside := span(text[n+1:], digits)
		if inside == 0 || !strings.HasPrefix(text[n+1+inside:], "]") {
			break
		}
		n += inside + 2
		n += span(text[n:], letters+digits+".")
	}
	return n
}

// span returns the length of the prefix of a text with characters of a set.
func span(text, set string) int { return len(text) - len(strings.TrimLeft(text, set)) }

// numeral returns the length of the prefix that looks like a number. The exponent of a floating-point number may have a sign.
func numeral(text string) string {
	hex := strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X")
	exponent := "eE"
	if hex {
		exponent = "pP"
	}
	n := 0
	for n < len(text) {
		n += span(text[n:], letters+digits+".")
		if n == 0 || n >= len(text) || !strings.ContainsRune(exponent, rune(text[n-1])) || text[n] != '+' && text[n] != '-' {
			break
		}
		n++
	}
	return text[:n]
}

// number parses a literal number.
func number(word string) (v value, ok bool) {
	if len(word) > maxNumber {
		return value{}, false
	}
	if n, ok := new(big.Int).SetString(word, 0); ok {
		return value{n: n, written: true}, true
	}
	f, err := strconv.ParseFloat(word, 64)
	return value{f: f, float: true, written: true}, err == nil
}

// shortened returns the start of a text, for a message.
func shortened(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}
