package condition

import (
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"example.com/reframe/deopt/frame"
)

var errOrder = errors.New("a text can only be compared with == and !=")

// spelled returns the number that a text spells; any other value unchanged.
func spelled(v starlark.Value) starlark.Value {
	if s, ok := v.(starlark.String); ok && len(s) <= 20 {
		if n, ok := new(big.Int).SetString(string(s), 10); ok {
			return starlark.MakeBigInt(n)
		}
	}
	return v
}

// texts compares two values if at least one is a text that does not spell a number. It returns nil if neither is such a text.
func texts(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	x, y = spelled(x), spelled(y)
	a, isX := x.(starlark.String)
	b, isY := y.(starlark.String)
	switch {
	case !isX && !isY:
		return nil, nil
	case op != syntax.EQL && op != syntax.NEQ:
		return nil, errOrder
	}
	return starlark.Bool((isX && isY && a == b) == (op == syntax.EQL)), nil
}

// Names of facts about the frames of a virtual machine ([frame.Frame.Facts]).
var (
	isText   = regexp.MustCompile(`^(caller\[\d+\]\.)?(method|resume)$`)
	isNumber = regexp.MustCompile(`^(caller\[\d+\]\.)?position$`)
	isInfo   = regexp.MustCompile(`^(caller\[\d+\]\.)?info\.`)
)

// Fact reports whether a slot is a fact about the frames of a virtual machine, and not a value in them.
func (n Name) Fact() bool {
	return isText.MatchString(n.Text) || isNumber.MatchString(n.Text) || isInfo.MatchString(n.Text)
}

var resumes = []string{frame.Reexecute, frame.Completed, frame.Calling, frame.Rethrow}

// impossible returns a part of an expression that makes it false at all exits, with the reason; "" if none is found. equal holds the values that slots
// have according to other parts.
func (e *Expression) impossible(part syntax.Expr, equal map[Name]string) (syntax.Expr, string) {
	switch part := part.(type) {
	case *syntax.ParenExpr:
		return e.impossible(part.X, equal)
	case *syntax.BinaryExpr:
		switch part.Op {
		case syntax.AND:
			if equal == nil {
				equal = map[Name]string{}
			}
			if at, why := e.impossible(part.X, equal); why != "" {
				return at, why
			}
			return e.impossible(part.Y, equal)
		case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
			return part, e.impossibleComparison(part, equal)
		}
	}
	return part, ""
}

func (e *Expression) impossibleComparison(part *syntax.BinaryExpr, equal map[Name]string) string {
	name, found := e.slot(part.X)
	other := part.Y
	if !found {
		name, found = e.slot(part.Y)
		other = part.X
	}
	literal, constant := unparenthesized(other).(*syntax.Literal)
	if !found || !constant || strings.HasPrefix(e.Text[name.at:], "%") { // with a %, the name is that of a module's value and not a fact
		return ""
	}
	text, quoted := literal.Value.(string)
	_, number := spelled(starlark.String(text)).(starlark.Int)
	isText, isNumber := isText.MatchString(name.Text), isNumber.MatchString(name.Text)
	switch {
	case (isText || quoted && !number) && part.Op != syntax.EQL && part.Op != syntax.NEQ:
		return errOrder.Error()
	case part.Op != syntax.EQL:
		return ""
	case isText && !quoted:
		return name.Text + " is a text, never a number"
	case isNumber && quoted && !number:
		return name.Text + " is a number, never a text"
	case strings.HasSuffix(name.Text, "resume") && isText && !slices.Contains(resumes, text):
		return fmt.Sprintf("%s is never %q: it is reexecute, after, in-call or rethrow", name.Text, text)
	case equal == nil || !name.Fact():
		return ""
	}
	name.at = 0
	value := fmt.Sprint(literal.Value)
	if was, known := equal[name]; known && was != value {
		return name.Text + " cannot have two values"
	}
	equal[name] = value
	return ""
}

func unparenthesized(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// offset returns the offset of a part in the text. Each token is on its own line for Starlark's parser.
func (e *Expression) offset(part syntax.Expr) int {
	start, _ := part.Span()
	return append(e.places, len(e.Text))[min(max(int(start.Line)-2, 0), len(e.places))]
}

var place = regexp.MustCompile(`^\s*(\S+)\s+@\s+(-?\d{1,18})\s*$`)

// Place parses a place in the program of a virtual machine, "Point.norm @ 17", as a condition. ok is false for any other text.
func Place(text string) (c *Condition, ok bool) {
	m := place.FindStringSubmatch(text)
	if m == nil || strings.ContainsAny(m[1], `"\\`) {
		return nil, false
	}
	c, err := Parse(fmt.Sprintf(`method == "%s" and position == %s`, m[1], m[2]))
	return c, err == nil
}

// Line returns the condition that the innermost frame of a virtual machine is at a line of a source file, according to the entries line and file (or
// source) of the layout's info. That file name may lack its folder.
func Line(file string, line int) (*Condition, error) {
	quoted := func(s string) string {
		return `"` + strings.NewReplacer(`"`, "", `\`, "", "\n", "", "\r", "").Replace(s) + `"`
	}
	base := quoted(filepath.Base(file))
	return Parse(fmt.Sprintf("info.line == %d and (info.file == %s or info.file == %s or info.source == %s or info.source == %s)", line, quoted(file), base, quoted(file), base))
}
