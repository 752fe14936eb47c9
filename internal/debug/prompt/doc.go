// Package prompt is the command line of a debugging session: commands as in gdb and dlv, read line by line.
//
// Its main type is [Prompt], which runs the command of a line in a session. Package session supplies the data, and package text formats it.
//
// # Security
//
// The user at the prompt is trusted. Text of the target is made printable before it is written: a terminal would obey control characters in it.
package prompt
