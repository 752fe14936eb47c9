package condition

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

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

// maxText bounds the length of a text in bytes.
const maxText = 8 << 10

// cNot is the operator that replaces ! in the text for Starlark's parser: the unary +. As in C, ! binds tighter than the operators between two
// operands, and so does Starlark's unary +, but not Starlark's `not`. A user cannot write a unary +, because the tokenizer rejects it.
const cNot = syntax.PLUS

// operand matches a token at a position where an operand is expected, operator one where an operator is expected. A name contains numbers in
// brackets, as in object[4].x.
var (
	operand = regexp.MustCompile(`^(?:0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?` +
		`|"[^"\\\r\n]*"|[-~!(]|%"([^"]+)"|%?([\w.$]+(?:\[\d+\][\w.$]*)*)|#(\d{1,9}))`)
	operator = regexp.MustCompile(`^(?:&&|\|\||[=!<>]=|<<|>>|//|[-+*/%&|^<>)]|(?:and|or)\b)`)
)

// spellings maps tokens to their spelling in Starlark, if it differs.
var spellings = map[string]string{"&&": "and", "||": "or", "!": cNot.String()}

// words lists the names that do not denote slots, and their values.
var words = map[string]starlark.Value{
	"and": nil, "or": nil, "not": nil, "True": starlark.True, "true": starlark.True, "False": starlark.False, "false": starlark.False,
	"inf": starlark.Float(math.Inf(1)), "nan": starlark.Float(math.NaN()),
}

// Parse parses a condition. The error is an [*Error].
func Parse(text string) (*Condition, error) {
	e, err := ParseExpression(text)
	if err != nil {
		return nil, err
	}
	c := &Condition{*e}
	if part, why := e.impossible(e.root, nil); why != "" {
		return nil, &Error{text, e.offset(part), why}
	}
	if len(e.names) == 0 {
		return nil, &Error{text, 0, "it asks for no slot"}
	}
	// Without slots, only the numbers in the text are computed. If that fails, the condition never holds.
	if a, why := c.Of(nil); a == Undecided {
		return nil, &Error{text, 0, why}
	}
	return c, nil
}

// ParseExpression parses an expression. The error is an [*Error].
func ParseExpression(text string) (*Expression, error) {
	if len(text) > maxText {
		return nil, &Error{text[:40] + "…", 0, fmt.Sprintf("it is longer than %d KiB", maxText>>10)}
	}
	// For Starlark, each token is on its own line, so that an error in line n is about token n-2. Lines in parentheses are one expression.
	lines, places := []string{"("}, []int(nil)
	e := &Expression{Text: text}
	space := func(at int) int { return len(text) - len(strings.TrimLeft(text[at:], " \t\r\n")) }
	for at, wantOperand := space(0), true; wantOperand || at < len(text); at = space(at) {
		tokens, expected := operator, "expected an operator or the end"
		if wantOperand {
			tokens, expected = operand, "expected a slot such as %i, loc0 or #0, a number, or a text in quotation marks"
		}
		found := append(tokens.FindStringSubmatch(text[at:]), "", "", "", "")
		token := found[0]
		switch _, word := words[token]; {
		case token == "" && text[at:] != "" && text[at] == '=':
			return nil, &Error{text, at, "a comparison is written =="}
		case token == "":
			return nil, &Error{text, at, expected}
		case !word && found[1]+found[2]+found[3] != "":
			index, _ := strconv.Atoi(found[3]) // nine digits at most
			lines = append(lines, e.identifier(Name{found[1] + found[2], index, at}))
		default:
			lines = append(lines, cmp.Or(spellings[token], token))
		}
		if wantOperand {
			wantOperand = slices.Contains([]string{"-", "~", "!", "(", "not"}, token)
		} else {
			wantOperand = token != ")"
		}
		places, at = append(places, at), at+len(token)
	}
	var err error
	if e.root, err = (&syntax.FileOptions{}).ParseExpr("", strings.Join(append(lines, ")"), "\n"), 0); err != nil {
		var wrong syntax.Error
		errors.As(err, &wrong)
		return nil, &Error{text, append(places, len(text))[min(max(int(wrong.Pos.Line)-2, 0), len(places))], wrong.Msg}
	}
	e.places = places
	return e, nil
}

// identifier returns the identifier of a slot in the text for Starlark's parser.
func (e *Expression) identifier(n Name) string {
	k := slices.IndexFunc(e.names, func(is Name) bool { return is.Text == n.Text && is.Index == n.Index })
	if k < 0 {
		k = len(e.names)
		e.names = append(e.names, n)
	}
	return fmt.Sprintf("s%d", k)
}
