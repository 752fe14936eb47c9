// Package names handles the names of functions. It demangles symbols, matches symbols against a user's pattern, and suggests names that resemble a
// misspelled one.
//
// Its main type is [Pattern].
//
// # Security
//
// Symbols are hostile: the length of a demangled name and the work to demangle it are limited.
package names

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled limits a demangled name to 2 to that power characters. A mangled name of 400 bytes can expand to 2⁴⁰ characters, because parts of a
// name can refer to earlier parts (Itanium C++ ABI, 5.1.10).
const maxDemangled = 12

// Demangled returns the demangled name of a C++ (Itanium ABI) or Rust symbol, or the name unchanged if it is not mangled.
func Demangled(name string, options ...demangle.Option) string {
	return demangle.Filter(name, append(options, demangle.MaxLength(maxDemangled))...)
}

// IfMangled returns the demangled name, or "" if the name is not mangled. It is the member `demangled` in JSON.
func IfMangled(name string) string {
	if plain := Demangled(name); plain != name {
		return plain
	}
	return ""
}

// Short returns the demangled name without the function's parameters: ns::f.
func Short(name string) string { return Demangled(name, demangle.NoParams) }

// Pattern selects functions. It is compared with up to three forms of a function's name: the symbol (_ZN2ns1fEi), the demangled name (ns::f(int)), and that
// without parameters (ns::f).
type Pattern struct {
	Text  string // as the user typed it
	exact string // a name that equals one of the forms; "" if the pattern is only a regular expression
	re    *regexp.Regexp
}

// Exact parses a pattern: a name that equals one of the forms, or /a regular expression/ that matches part of a form.
func Exact(text string) (*Pattern, error) { return parse(text, false, "", "") }

// Loose parses a pattern that is a name or, with or without slashes, a regular expression that matches part of a form.
func Loose(text string) (*Pattern, error) { return parse(text, true, "", "") }

// Whole is like Loose, but a regular expression without slashes must match a whole form.
func Whole(text string) (*Pattern, error) { return parse(text, true, "^(?:", ")$") }

func parse(text string, loose bool, before, after string) (*Pattern, error) {
	p := &Pattern{Text: text, exact: text}
	var err error
	switch {
	case text == "":
		return nil, fmt.Errorf("expected a name or /a regular expression/")
	case len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/':
		p.exact = ""
		p.re, err = regexp.Compile(text[1 : len(text)-1])
	case loose:
		switch _, err = regexp.Compile(text); {
		case err == nil:
			p.re = regexp.MustCompile(before + text + after)
		case isName(text):
			err = nil // text is the name of a function, such as operator[] or f(int*), and not a valid regular expression
		}
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// isName reports whether an invalid regular expression is likely the name of a function. Its brackets match and it does not begin or end with a special
// character of regular expressions, or it contains "operator".
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

// Name returns the name that the pattern consists of, or "" if it is a regular expression.
func (p *Pattern) Name() string {
	if p.re != nil {
		return ""
	}
	return p.exact
}

// Match reports whether the pattern matches a symbol.
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

// MatchAny reports whether the pattern matches one of several names of a function.
func (p *Pattern) MatchAny(symbols ...string) bool {
	for _, s := range symbols {
		if s != "" && p.Match(s) {
			return true
		}
	}
	return false
}

// mangled is a cheap test of whether a symbol may be mangled: by C++ or Rust. Symbols on macOS have one more underscore at the start.
func mangled(symbol string) bool {
	s := strings.TrimPrefix(symbol, "_")
	return strings.HasPrefix(s, "Z") || strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "R") || strings.HasPrefix(s, "_R") || strings.HasPrefix(s, "__Z")
}

// may is a cheap test of whether a mangled symbol can have the exact name; it avoids demangling (libLLVM has 100,000 symbols). A mangled name contains the
// last identifier of the name unchanged, except for operators, lambdas and standard abbreviations (Itanium C++ ABI, 5.1.10).
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
