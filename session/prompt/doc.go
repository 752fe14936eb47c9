// Package prompt is a debugging session's face for people: commands in the manner of gdb and dlv, read line by line.
//
// Its main type is [Prompt], which has a session and does what a line says. How frames look is the business of a [Printer]; what is asked of a
// session package session knows.
//
// # Security
//
// Who types is trusted. Text of the target is made printable before it is written, as control characters in it would be obeyed by a terminal.
package prompt
