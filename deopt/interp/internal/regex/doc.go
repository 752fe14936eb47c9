// Package regex compiles and matches the regular expressions of <regex.h> (POSIX.1-2017, XBD chapter 9) as
// glibc's regcomp and regexec do in the locale "C": basic and extended ones, with GNU's additions.
//
// Where POSIX leaves something open, or glibc does something else, glibc's answer is given, as programs were compiled to
// run with it. What that is was found by experiment and in glibc's source, and is held against the glibc of the machine by
// the tests. Most of it follows from how glibc looks for the parts that parentheses matched: among the ways
// through an automaton that end where the longest match does, the one that takes the lower-numbered node at each branch, and leaves a loop that
// it went round without a byte. POSIX asks for the longest part at each place; for (a|ab)(c|bcd) on abcd both agree, for
// others they do not.
//
// Back references are refused: glibc's answers for them follow no rule that could be held against it.
//
// Its main type is [Program], which [Compile] makes.
//
// # Security
//
// Expressions and subjects are hostile. The size of a Program is bounded by [MaxNodes] and its nesting by [MaxNest];
// time and memory of a match are asked for by a [Budget], and grow with the product of both sizes at most, for each place
// where a match may begin. Nothing panics.
package regex
