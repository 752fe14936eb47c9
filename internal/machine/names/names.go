// Package names handles the names of functions: it demangles symbols, finds the symbols that a pattern of the user matches, and suggests near ones
// for a misspelled name.
//
// Its main type is [Pattern].
//
// # Security
//
// Symbols are hostile: what a mangled name becomes is bounded, and so is the work that is done on one.
package names

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled bounds what a mangled name may become: 2 to that power characters. A name of 400
// bytes can stand for one of 2⁴⁰, because its parts may repeat each other (Itanium C++ ABI,
// 5.1.10).
const maxDemangled = 12

// Demangled returns a symbol's name as its author spelled it, or as it is where it is not mangled. The names are those
// of C++ (Itanium ABI) and Rust.
func Demangled(name string, options ...demangle.Option) string {
	return demangle.Filter(name, append(options, demangle.MaxLength(maxDemangled))...)
}

// IfMangled returns a symbol's name as its author spelled it, or "" where it is not mangled: what `demangled` is in JSON.
func IfMangled(name string) string {
	if plain := Demangled(name); plain != name {
		return plain
	}
	return ""
}

// Short returns a symbol's name without the parameters of the function: ns::f.
func Short(name string) string { return Demangled(name, demangle.NoParams) }

// Pattern is which functions a user means. A function has up to three forms: the symbol as the image spells it
// (_ZN2ns1fEi), that as its author spelled it (ns::f(int)), and that without its parameters (ns::f).
type Pattern struct {
	Text  string // as it was typed
	exact string // what one of the forms is; "" where there is only an expression
	re    *regexp.Regexp
}

// Exact makes a pattern of a name in one of its forms, or of /a regular expression/ that a part of one fits.
func Exact(text string) (*Pattern, error) { return parse(text, false, "", "") }

// Loose makes one that takes text for a regular expression, too, which a part of a form fits.
func Loose(text string) (*Pattern, error) { return parse(text, true, "", "") }

// Whole is Loose, but the whole of a form has to fit text; a part has to where it is /a regular expression/.
func Whole(text string) (*Pattern, error) { return parse(text, true, "^(?:", ")$") }

func parse(text string, loose bool, before, after string) (*Pattern, error) {
	p := &Pattern{Text: text, exact: text}
	var err error
	switch {
	case text == "":
		return nil, fmt.Errorf("a name, or /a regular expression/")
	case len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/':
		p.exact = ""
		p.re, err = regexp.Compile(text[1 : len(text)-1])
	case loose:
		switch _, err = regexp.Compile(text); {
		case err == nil:
			p.re = regexp.MustCompile(before + text + after)
		case isName(text):
			err = nil // operator[], f(int*): a name that is no expression
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// isName reports whether text may be the name of a function, which a regular expression that is broken is mostly not: its
// parentheses and brackets match, and it ends with a letter, a parenthesis or an operator's sign.
func isName(text string) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return utf8.ValidString(text) && depth == 0 && strings.Trim(text, "*+?\\|") == text || strings.Contains(text, "operator")
}

// Name returns the one name that is meant, or "" where it is an expression.
func (p *Pattern) Name() string {
	if p.re != nil {
		return ""
	}
	return p.exact
}

// Match reports whether a symbol is meant.
func (p *Pattern) Match(symbol string) bool {
	if p.exact != "" && symbol == p.exact || p.re != nil && p.re.MatchString(symbol) {
		return true
	}
	if !mangled(symbol) || !p.may(symbol) {
		return false
	}
	full, short := Demangled(symbol), Short(symbol)
	return p.exact != "" && (full == p.exact || short == p.exact) || p.re != nil && (p.re.MatchString(full) || p.re.MatchString(short))
}

// MatchAny reports whether one of several names of a function is meant.
func (p *Pattern) MatchAny(symbols ...string) bool {
	for _, s := range symbols {
		if s != "" && p.Match(s) {
			return true
		}
	}
	return false
}

// mangled reports whether a symbol may be mangled, at little cost: C++, Rust, and both on macOS, whose symbols have an underscore more.
func mangled(symbol string) bool {
	s := strings.TrimPrefix(symbol, "_")
	return strings.HasPrefix(s, "Z") || strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "R") || strings.HasPrefix(s, "_R") || strings.HasPrefix(s, "__Z")
}

// may reports whether a mangled symbol can be of the exact name, without demangling it: libLLVM has 100,000. A mangled name holds the
// last identifier of the name as it is, but for operators, lambdas and what has an abbreviation (Itanium C++ ABI, 5.1.10).
func (p *Pattern) may(symbol string) bool {
	if p.re != nil {
		return true
	}
	short := p.exact
	if n := strings.IndexAny(short, "(<"); n > 0 {
		short = short[:n]
	}
	last := short[strings.LastIndexByte(short, ':')+1:]
	last = strings.TrimPrefix(last[strings.LastIndexByte(last, ' ')+1:], "~")
	switch last {
	case "", "allocator", "basic_string", "string", "istream", "ostream", "iostream", "basic_istream", "basic_ostream", "basic_iostream":
		return true
	}
	for _, c := range []byte(last) {
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return true
		}
	}
	return strings.HasPrefix(last, "operator") || strings.Contains(symbol, last)
}
