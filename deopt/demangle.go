package deopt

import "github.com/ianlancetaylor/demangle"

// maxDemangled bounds what a mangled name may become: 2 to that power characters. A name of 400
// bytes can stand for one of 2⁴⁰, because its parts may repeat each other (Itanium C++ ABI,
// 5.1.10).
const maxDemangled = 12

// Demangled returns a symbol's name as its author spelled it, or as it is where it is not mangled.
func Demangled(name string, options ...demangle.Option) string {
	return demangle.Filter(name, append(options, demangle.MaxLength(maxDemangled))...)
}
