// Package vmframes compares the frames of a virtual machine that a trace reports with the log of the machine's plain interpreter: random programs of
// examples/tinyvm, each exit of their compiled code, and mutants of the layout and of the compiler. All of it is tests, and it has no main type: its
// main functions are those that hold a run against its log. What is compiled and run there is this repository's own and is trusted.
package vmframes
