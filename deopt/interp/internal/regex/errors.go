package regex

import "fmt"

// Error is an error code of regcomp and regexec, with glibc's numbers.
type Error int

// The codes of <regex.h>.
const (
	NoMatch      Error = 1
	BadPattern   Error = 2
	BadCollation Error = 3
	BadClass     Error = 4
	BadEscape    Error = 5
	BadBackRef   Error = 6
	BadBracket   Error = 7
	BadParen     Error = 8
	BadBrace     Error = 9
	BadBound     Error = 10
	BadRange     Error = 11
	NoSpace      Error = 12
	BadRepeat    Error = 13
	TooBig       Error = 15
)

// Texts holds the texts that regerror returns, by code.
var Texts = [...]string{
	"Success", "No match", "Invalid regular expression", "Invalid collation character", "Invalid character class name",
	"Trailing backslash", "Invalid back reference", "Unmatched [, [^, [:, [., or [=", "Unmatched ( or \\(", "Unmatched \\{",
	"Invalid content of \\{\\}", "Invalid range end", "Memory exhausted", "Invalid preceding regular expression",
	"Premature end of regular expression", "Regular expression too big", "Unmatched ) or \\)",
}

// Error is the text of regerror.
func (e Error) Error() string { return Texts[e] }

// Unsupported is an expression that glibc takes and this package does not.
type Unsupported struct{ What string }

// Error names the unsupported feature of the expression.
func (e *Unsupported) Error() string { return e.What }

func unsupported(format string, args ...any) *Unsupported {
	return &Unsupported{fmt.Sprintf(format, args...)}
}
